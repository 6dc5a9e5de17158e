// The page: one conversation, one branch of it, one entry at hand.

class View {
  constructor(told) {
    this.by = told.by;
    this.record = told.record;
    this.pages = told.pages;
    this.images = told.images;
    this.letters = true;
    this.conversations = told.conversations.map((each) => new Conversation(each, told.forms));
    this.near = new IntersectionObserver((met) => {
      for (const each of met) {
        if (!each.isIntersecting) continue;
        this.near.unobserve(each.target);
        this.loads.get(each.target)?.();
        this.loads.delete(each.target);
      }
    }, { rootMargin: "600px" });
    this.loads = new Map();
    this.sheets = new Sheets(this);
    this.details = new Details(this);
    this.thread = new Thread(this);
    this.tree = new Tree(this);
    this.search = new Search(this);
    this.compare = new Compare(this);
    this.frame();
    const asked = /^#e(\d+)$/.exec(window.location.hash);
    const start = asked && this.find(Number(asked[1]));
    this.use(start ? start.conversation : this.conversations[0]);
    if (start) this.go(start.entry.id, { quiet: true });
    else this.about();
  }

  // Does something once a node comes near the part of the page that is seen.
  whenNear(node, does) {
    this.loads.set(node, does);
    this.near.observe(node);
  }

  // An entry of any conversation of the page.
  find(id) {
    for (const conversation of [this.conversation, ...this.conversations]) {
      const entry = conversation?.byId.get(id);
      if (entry) return { conversation, entry };
    }
    return null;
  }

  frame() {
    const badge = document.getElementById("verdict");
    const { sound, size } = this.record;
    badge.classList.add(sound ? "good" : "bad");
    put(badge, sound ? `Record sound · ${plural(size, "entry").replace("entrys", "entries")}` : "Record NOT sound");
    badge.addEventListener("click", () => this.about(true));
    put(document.getElementById("file"), this.record.name);
    const choice = document.getElementById("conversation");
    choice.append(...this.conversations.map((each, at) => el("option", { value: at }, line(each.name, 80))));
    choice.addEventListener("change", () => {
      this.use(this.conversations[Number(choice.value)]);
      this.about();
    });
    const help = document.getElementById("help");
    document.getElementById("help-open").addEventListener("click", () => help.showModal());
    help.querySelector(".close").addEventListener("click", () => help.close());
    document.getElementById("letters").addEventListener("change", (change) => { this.letters = change.target.checked; });
    for (const each of document.querySelectorAll("#panes button")) each.addEventListener("click", () => this.pane(each.dataset.pane));
    window.addEventListener("popstate", () => {
      const asked = /^#e(\d+)$/.exec(window.location.hash);
      if (asked && this.find(Number(asked[1]))) this.go(Number(asked[1]), { quiet: true });
    });
    document.addEventListener("keydown", (key) => {
      if (!this.letters || key.ctrlKey || key.metaKey || key.altKey || key.target.closest("input, textarea, select, dialog")) return;
      const actions = {
        "/": () => { this.pane("branches"); this.search.field.focus(); },
        "?": () => help.showModal(),
        t: () => { this.pane("branches"); this.tree.box.querySelector("[tabindex='0']")?.focus(); },
        m: () => { this.pane("messages"); this.thread.box.querySelector("article[tabindex='0']")?.focus(); },
        d: () => { this.pane("about"); this.details.box.querySelector("h2")?.focus(); },
        v: () => this.about(true),
      };
      if (!actions[key.key]) return;
      key.preventDefault();
      actions[key.key]();
    });
  }

  // Shows a conversation from its tip.
  use(conversation) {
    this.conversation = conversation;
    this.leaf = conversation.tip ?? conversation.leaves[conversation.leaves.length - 1] ?? null;
    document.getElementById("conversation").value = String(this.conversations.indexOf(conversation));
    document.title = `${line(conversation.name, 60)} · microfiche`;
    this.compare.close();
    this.compare.fill(conversation);
    this.tree.show(conversation);
    this.search.run();
    this.branch(this.leaf);
  }

  branch(leaf) {
    this.leaf = leaf;
    this.thread.show(leaf);
    const entry = leaf === null ? null : this.conversation.byId.get(leaf);
    const name = !entry ? "Thread" : `To ${entry.turn ? `turn ${number(entry.turn)}` : "the head"}, entry ${leaf}${leaf === this.conversation.tip ? " (the tip)" : " (a branch that was left)"}`;
    document.getElementById("branch").replaceChildren(name);
    this.tree.select(leaf, leaf);
    this.lists();
  }

  // Passes, pins, claims and checkpoints, in the column of the tree.
  lists() {
    const { conversation } = this;
    const path = conversation.thread(this.leaf);
    const list = (id, rows) => {
      const box = document.getElementById(id);
      box.querySelector(".count").replaceChildren(` (${number(rows.length)})`);
      box.querySelector("ul").replaceChildren(...rows);
    };
    const row = (id, words, note = "") => el("li", {}, button(words, () => this.go(id, { focus: true }), { class: "link", "data-to": id }), note);
    list("passes", path.filter((each) => conversation.passes[each.id]).map((each) => row(each.id, each.kind === "undo"
      ? `Entry ${each.id}: took back ${each.about}`
      : `Entry ${each.id}: ${number(each.told.before.tokens)} → ${number(each.told.after.tokens)} tokens`, each.told.why ? ` ${each.told.why}` : "")));
    list("pins", conversation.pins(this.leaf).map(({ entry, gone }) =>
      row(entry.id, `${entry.told.kind}: ${line(entry.told.text, 120)}`, gone === null ? "" : ` (let go by entry ${gone})`)));
    list("claim-list", conversation.entries.filter((each) => each.kind === "claim").map((each) => row(each.id, line(each.told.text, 120))));
    list("labels", conversation.entries.filter((each) => each.kind === "label" || each.kind === "label_loss").map((each) => row(each.id, line(each.what, 120))));
    list("failures", conversation.entries.filter((each) => each.kind === "failure" || each.kind === "interruption").map((each) => row(each.id, line(each.what, 120))));
  }

  // Goes to an entry, on whatever branch or in whatever conversation it stands.
  go(id, how = {}) {
    const found = this.find(id);
    if (!found) return;
    if (found.conversation !== this.conversation) this.use(found.conversation);
    this.compare.close();
    const leaf = this.conversation.leafOf(id, this.leaf);
    if (leaf !== this.leaf) this.branch(leaf);
    this.open(id, { ...how, stay: false });
  }

  // Makes an entry the one at hand: its details, and the marks of what was seen there.
  open(id, how = {}) {
    const place = this.thread.select(id);
    if (place && !how.stay) {
      this.pane("messages");
      place.scrollIntoView({ block: "start" });
      // What comes into sight is laid out only now, which may have moved the place.
      requestAnimationFrame(() => place.scrollIntoView({ block: "start" }));
    }
    if (place && how.focus) place.focus({ preventScroll: true });
    this.details.show(id);
    this.tree.select(this.leaf, id);
    const call = this.conversation.calls[id];
    const seen = call || this.conversation.byId.get(id).role === "assistant" ? this.conversation.seen(id) : null;
    this.lens(seen && (call || seen.reduced.length) ? seen : null);
    if (!how.quiet && window.location.hash !== `#e${id}`) window.history.pushState(null, "", `#e${id}`);
  }

  lens(seen) {
    this.thread.mark(seen);
  }

  about(show = false) {
    this.details.record();
    if (show) {
      this.pane("about");
      this.details.box.querySelector("h2").focus();
    }
  }

  // On a narrow screen one column shows at a time.
  pane(name) {
    document.body.dataset.pane = name;
    for (const each of document.querySelectorAll("#panes button")) each.setAttribute("aria-pressed", String(each.dataset.pane === name));
  }
}

new View(JSON.parse(document.getElementById("record-data").textContent));
document.body.dataset.ready = "yes";
