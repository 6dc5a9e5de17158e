// The tree of a conversation: a stretch is what follows each other between two partings of the way.
// Keys as in the WAI-ARIA pattern for trees.

class Tree {
  constructor(view) {
    this.view = view;
    this.box = document.getElementById("tree");
    this.box.addEventListener("keydown", (key) => this.key(key));
  }

  show(conversation) {
    this.conversation = conversation;
    const below = new Map();
    for (const stretch of conversation.stretches) add(below, stretch.parent, stretch);
    // What leads to the tip goes on at its level; what was left stands under the stretch that it leaves.
    const chain = (stretch, level) => {
      const items = [];
      for (let at = stretch; at; ) {
        const after = below.get(at.entries[1]) ?? [];
        const main = after.find((each) => each.current) ?? after[after.length - 1];
        const left = after.filter((each) => each !== main).flatMap((each) => chain(each, level + 1));
        items.push(this.stretch(at, level, left));
        at = main;
      }
      return items;
    };
    this.box.replaceChildren(...(below.get(null) ?? []).flatMap((root) => chain(root, 1)));
    const first = this.box.querySelector("[role=treeitem]");
    if (first) first.tabIndex = 0;
  }

  stretch(told, level, left) {
    const [first, last] = told.turns;
    const words = last ? turns(Math.max(first, 1), last) : "head";
    const answer = told.answered ? ` → ${line(told.answered, 50)}` : "";
    const said = `${line(told.asked, 60)}${answer}`.trim();
    const events = told.events.filter((event) => event.kind !== "report").map((event) =>
      this.item(this.event(event.entry), event.entry, level + 1, `event ${event.kind}`, []));
    const item = this.item(words, told.entries[0], level, "stretch", [...events, ...left], said, told.tip ? "tip" : "");
    item.dataset.last = told.entries[1];
    return item;
  }

  event(id) {
    const entry = this.conversation.byId.get(id);
    const name = KIND_WORDS[entry.kind] ?? entry.kind;
    if (!this.conversation.passes[id] || entry.kind !== "compaction") return `${name} ${line(eventWords(entry), 70)}`;
    return `${name} (${entry.told.why}): ${number(entry.told.before.tokens)} → ${number(entry.told.after.tokens)} tokens`;
  }

  item(words, entry, level, kind, inside, said = "", badge = "") {
    const row = el("div", { class: "row" },
      el("span", { class: "twist", "aria-hidden": "true" }),
      el("span", { class: "label" }, el("span", { class: "name" }, words), badge ? el("span", { class: "badge" }, badge) : null,
        said ? el("span", { class: "said-short", dir: "auto" }, said) : null));
    const item = el("li", {
      role: "treeitem", class: kind, tabindex: -1, "data-entry": entry, "aria-level": level, "aria-selected": "false",
      "aria-expanded": inside.length ? String(kind.startsWith("stretch")) : null,
      "aria-label": [words, badge, said].filter(Boolean).join(", "),
    }, row);
    if (inside.length) item.append(el("ul", { role: "group" }, ...inside));
    row.addEventListener("click", (click) => {
      if (click.target.classList.contains("twist") && inside.length) this.fold(item, item.getAttribute("aria-expanded") !== "true");
      else this.view.go(entry);
      this.focus(item);
    });
    return item;
  }

  // Marks what leads to the leaf that is shown, and the stretch or event of the entry at hand.
  select(leaf, id) {
    const way = new Set(this.conversation.path(leaf).map((entry) => entry.id));
    let best = null;
    for (const item of this.box.querySelectorAll("[role=treeitem]")) {
      const entry = Number(item.dataset.entry);
      item.classList.toggle("shown", way.has(entry));
      item.setAttribute("aria-selected", "false");
      const inside = item.dataset.last ? entry <= id && id <= Number(item.dataset.last) : entry === id;
      if (way.has(entry) && inside) best = item;
    }
    if (best) best.setAttribute("aria-selected", "true");
  }

  fold(item, open) {
    item.setAttribute("aria-expanded", String(open));
  }

  focus(item) {
    for (const old of this.box.querySelectorAll("[tabindex='0']")) old.tabIndex = -1;
    item.tabIndex = 0;
    item.focus();
  }

  key(key) {
    const item = key.target.closest("[role=treeitem]");
    if (!item || key.ctrlKey || key.metaKey || key.altKey) return;
    const seen = [...this.box.querySelectorAll("[role=treeitem]")].filter((each) => !each.parentElement.closest("[aria-expanded=false]"));
    const at = seen.indexOf(item);
    const open = item.getAttribute("aria-expanded");
    const move = (to) => to && this.focus(to);
    const actions = {
      ArrowDown: () => move(seen[at + 1]),
      ArrowUp: () => move(seen[at - 1]),
      Home: () => move(seen[0]),
      End: () => move(seen[seen.length - 1]),
      ArrowRight: () => (open === "false" ? this.fold(item, true) : open === "true" ? move(seen[at + 1]) : null),
      ArrowLeft: () => (open === "true" ? this.fold(item, false) : move(item.parentElement.closest("[role=treeitem]"))),
      Enter: () => this.view.go(Number(item.dataset.entry)),
      " ": () => this.view.go(Number(item.dataset.entry)),
    };
    if (!actions[key.key]) return;
    key.preventDefault();
    actions[key.key]();
  }
}
