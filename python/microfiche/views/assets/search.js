// The search: every word of every branch, case and accents aside.

const MOST_HITS = 200;
const squeezed = (text) => text.replace(/\s+/gu, " ").replace(HIDDEN, sign);
const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
// Without half a character at either end, where a text was cut.
const unbroken = (text) => text.replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, "");

// Where in a text the character begins that stands at a place of its plain form. ASCII keeps its length in it.
function placeIn(text, at) {
  let from = 0;
  let plainly = 0;
  for (const run of text.matchAll(/[^\x00-\x7f]+/gu)) {
    if (plainly + run.index - from >= at) break;
    plainly += run.index - from;
    from = run.index;
    const length = plain(run[0]).length;
    if (plainly + length > at) {
      for (const character of run[0]) {
        plainly += plain(character).length;
        if (plainly > at) break;
        from += character.length;
      }
      return from;
    }
    plainly += length;
    from += run[0].length;
  }
  return Math.min(from + at - plainly, text.length);
}

class Search {
  constructor(view) {
    this.view = view;
    this.field = document.getElementById("search");
    this.box = document.getElementById("results");
    this.words = new Map();
    let waiting = null;
    this.field.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => this.run(), 120);
    });
    this.field.addEventListener("keydown", (key) => {
      if (key.key === "Escape") this.clear();
      if (key.key === "Enter" || key.key === "ArrowDown") {
        key.preventDefault();
        clearTimeout(waiting);
        this.run();
        this.box.querySelector("li button")?.focus();
      }
    });
    this.box.addEventListener("keydown", (key) => {
      const buttons = [...this.box.querySelectorAll("li button")];
      const at = buttons.indexOf(key.target);
      if (key.key === "ArrowDown") buttons[at + 1]?.focus();
      else if (key.key === "ArrowUp") (buttons[at - 1] ?? this.field).focus();
      else if (key.key === "Escape") this.clear();
      else return;
      key.preventDefault();
    });
  }

  clear() {
    this.field.value = "";
    this.run();
    this.field.focus();
  }

  run() {
    const asked = this.field.value.trim();
    this.box.replaceChildren();
    this.box.hidden = !asked;
    if (!asked) return;
    const { conversation } = this.view;
    if (this.of !== conversation) {
      this.of = conversation;
      this.words = new Map(conversation.entries.map((entry) => [entry.id, plain(conversation.words(entry))]));
    }
    const hits = [];
    const exact = /^(entry|turn)?\s*#?(\d[\d,]*)$/i.exec(asked);
    if (exact) {
      const which = Number(exact[2].replaceAll(",", ""));
      const kind = (exact[1] ?? "").toLowerCase();
      if (kind !== "turn" && conversation.byId.has(which)) hits.push([conversation.byId.get(which), `Entry ${which}`]);
      if (kind !== "entry" && conversation.byTurn.has(which)) hits.push([conversation.byTurn.get(which)[0], `Turn ${which}`]);
    }
    const wanted = plain(asked);
    let count = hits.length;
    for (const entry of conversation.entries) {
      const words = this.words.get(entry.id);
      const at = words.indexOf(wanted);
      if (at < 0) continue;
      count += 1;
      if (hits.length >= MOST_HITS) continue;
      const said = conversation.words(entry);
      const [from, to] = [placeIn(said, at), placeIn(said, at + wanted.length)];
      hits.push([entry, null, unbroken(said.slice(Math.max(0, from - 40), from)), said.slice(from, to), unbroken(said.slice(to, to + 60))]);
    }
    const more = count > hits.length ? `, the first ${hits.length} listed` : "";
    this.box.append(el("h2", { "aria-live": "polite" }, count ? `${plural(count, "hit")}${more}` : "No hit"),
      el("ol", {}, hits.map(([entry, name, before, found, behind]) => {
        const branch = onPath(entry) && !conversation.way.has(entry.id) ? " · other branch" : "";
        const words = name ? [el("strong", {}, name), ` ${conversation.gist(entry, 80)}`]
          : [squeezed(before), el("mark", {}, squeezed(found)), squeezed(behind)];
        return el("li", {}, el("button", { type: "button", "data-entry": entry.id, onclick: () => this.view.go(entry.id, { focus: true }) },
          el("span", { class: "hit-title" }, `${title(entry, this.view)} · entry ${entry.id}${branch}`), el("span", { class: "hit", dir: "auto" }, words)));
      })));
  }
}
