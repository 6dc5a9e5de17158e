// What the record says: paths, what stands beside them, and what a call saw of them. Told of entries alone.

const EVENTS = new Set(["label", "label_loss", "failure", "interruption", "claim", "import"]);
const onPath = (entry) => "parent" in entry;
const keyOf = (entry, part, inner) => `${entry} ${part} ${inner}`;

class Conversation {
  constructor(told, forms) {
    Object.assign(this, told);
    this.forms = forms;
    this.byId = new Map(told.entries.map((entry) => [entry.id, entry]));
    this.children = new Map();
    this.beside = new Map();
    this.byTurn = new Map();
    for (const entry of told.entries) {
      if (onPath(entry)) add(this.children, entry.parent, entry);
      if (entry.parts) add(this.byTurn, entry.turn, entry);
      if (EVENTS.has(entry.kind)) {
        // A lost label stands where it stood, an interruption where the call was started.
        const far = entry.kind === "label_loss" || entry.kind === "interruption";
        const about = far ? (this.byId.get(entry.about) ?? entry).about : entry.about;
        add(this.beside, about ?? null, entry);
      } else if (entry.kind === "fork") {
        this.beside.set(null, [entry, ...(this.beside.get(null) ?? [])]);
      }
    }
    this.leaves = told.entries.filter((entry) => onPath(entry) && !this.children.has(entry.id)).map((entry) => entry.id);
    if (this.tip !== null && !this.leaves.includes(this.tip)) this.leaves.push(this.tip);
    this.way = new Set(this.path(this.tip).map((entry) => entry.id));
  }

  // The path entries from the root to an entry.
  path(tip) {
    const found = [];
    for (let at = tip; at !== null && at !== undefined; at = this.byId.get(at).parent) found.push(this.byId.get(at));
    return found.reverse();
  }

  // What a reader of a path sees, in order: its entries, and behind each what is about it.
  thread(tip) {
    const shown = [...(this.beside.get(null) ?? [])];
    for (const entry of this.path(tip)) shown.push(entry, ...(this.beside.get(entry.id) ?? []));
    return shown;
  }

  // The leaf to show an entry on: the one shown now if it is on the way there, the tip, else the newest.
  leafOf(id, now) {
    const entry = this.byId.get(id);
    const at = onPath(entry) ? id : this.place(entry);
    if (at === null || at === undefined) return now;
    for (const leaf of [now, this.tip, ...[...this.leaves].reverse()]) {
      if (leaf !== null && this.path(leaf).some((each) => each.id === at)) return leaf;
    }
    return now;
  }

  // The path entry that a side entry stands behind.
  place(entry) {
    const far = entry.kind === "label_loss" || entry.kind === "interruption";
    return far ? (this.byId.get(entry.about) ?? entry).about : entry.about;
  }

  // The events of a path folded: the forms of parts, the newest pass.
  fold(at) {
    const path = this.path(at);
    const forms = new Map();
    let pass = null;
    for (const entry of path) {
      const left = this.passes[entry.id];
      if (!left) continue;
      pass = entry.id;
      for (const [of, part, inner, form, since, pages, why] of left.changed) {
        const key = keyOf(of, part, inner);
        if (form === null) forms.delete(key);
        else forms.set(key, { form: this.forms[form][0], since, pages, why });
      }
    }
    return { path, forms, pass, standing: pass === null ? null : this.passes[pass] };
  }

  // Entries that had been left when an entry was written, each with the move that left it.
  left(before) {
    const gone = new Map();
    for (const entry of this.entries) {
      if (entry.kind !== "move" || entry.id >= before) continue;
      const stays = new Set(this.path(entry.about).map((each) => each.id));
      for (const each of this.path(entry.told.from)) if (!stays.has(each.id)) gone.set(each.id, entry.id);
    }
    return gone;
  }

  // What was seen at an entry, and in which form what had been said stood. Of an entry without a recorded
  // context: the plan in force before it.
  seen(id) {
    const entry = this.byId.get(id);
    const call = this.calls[id] ?? null;
    const at = call ? call.at : onPath(entry) ? entry.parent : entry.about;
    const { path, forms, pass, standing } = this.fold(at);
    const said = path.filter((each) => each.parts);
    const newest = said.length ? said[said.length - 1].wire : "";
    const wire = call ? call.wire : (standing && standing.wire) || newest;
    // What a session brought along was seen as its own compactions before it left it.
    const before = entry.brought ? path.filter((each) => each.kind === "compaction" && each.told.why === "import") : [];
    const reduced = [];
    let verbatim = 0;
    const tell = (of, part, inner, what, found) =>
      reduced.push({ entry: of, part, inner, turn: of.turn ?? 0, kind: what.type, size: what.size, ...found });
    for (const each of said) {
      each.parts.forEach((what, part) => {
        const found = forms.get(keyOf(each.id, part, -1));
        const other = each.wire !== wire && what.carried === false;
        if (found) tell(each, part, -1, what, found);
        if (other) tell(each, part, -1, what, { form: "other_wire", since: id, pages: [], why: "" });
        const own = before.find((one) => one.told.span[0] <= (each.turn ?? 0) && (each.turn ?? 0) <= one.told.span[1] && each.id < one.id);
        if (own) tell(each, part, -1, what, { form: "elsewhere", since: own.id, pages: [], why: "" });
        if (!found && !other && !own) verbatim += 1;
        (what.parts ?? []).forEach((inside, inner) => {
          const within = forms.get(keyOf(each.id, part, inner));
          if (within) tell(each, part, inner, inside, within);
        });
      });
    }
    const here = new Set(said.map((each) => each.id));
    // Messages that were pending when the context was made, and are on the path now.
    const pending = call && entry.kind === "message"
      ? this.path(entry.parent).filter((each) => each.parts && !here.has(each.id) && each.id > (at ?? 0)) : [];
    for (const each of pending) verbatim += each.parts.length;
    for (const [gone, move] of this.left(id)) {
      const each = this.byId.get(gone);
      if (here.has(gone) || !each.parts) continue;
      each.parts.forEach((what, part) => tell(each, part, -1, what, { form: "branch", since: move, pages: [], why: "" }));
    }
    reduced.sort((a, b) => a.turn - b.turn || a.entry.id - b.entry.id || a.part - b.part || a.inner - b.inner);
    const pages = standing ? standing.sheets.slice(standing.left_out) : [];
    return { entry, call, at, pass, standing, reduced, verbatim, pages, said: new Set([...here, ...pending.map((each) => each.id)]) };
  }

  // Pins of a path: those in force at its end, and those that were let go.
  pins(tip) {
    const pins = new Map();
    for (const entry of this.path(tip)) {
      if (entry.kind === "pin") pins.set(entry.id, { entry, gone: null });
      if (entry.kind === "unpin" && pins.has(entry.about)) pins.get(entry.about).gone = entry.id;
    }
    return [...pins.values()];
  }

  // Claims that were made about the turn of an entry.
  claimsOf(entry) {
    return this.entries.filter((each) => {
      if (each.kind !== "claim" || each.about === null) return false;
      const about = this.byId.get(each.about);
      return about && about.turn === entry.turn;
    });
  }

  // All words of an entry, for the search.
  words(entry) {
    const found = [entry.what ?? ""];
    const walk = (parts) => {
      for (const part of parts) {
        if (part.name) found.push(part.name);
        if (part.arguments) found.push(whole(part.arguments));
        if (part.text) found.push(whole(part.text));
        if (part.parts) walk(part.parts);
      }
    };
    walk(entry.parts ?? []);
    return found.join("\n");
  }

  // What an entry is, in a line.
  gist(entry, most = 90) {
    if (!entry.parts) return line(entry.what ?? entry.kind, most);
    const found = [];
    for (const part of entry.parts) {
      if (part.type === "text") found.push(whole(part.text));
      else if (part.type === "call") found.push(`${part.name}(${whole(part.arguments)})`);
      else if (part.type === "result") {
        const inside = part.parts.map((each) => (each.type === "text" ? whole(each.text) : `[${each.type}]`)).join(" ");
        found.push(`${part.error ? "error: " : ""}${inside}`);
      } else found.push(`[${part.type}]`);
      if (found.join(" ").length > 4 * most) break;
    }
    return line(found.join(" · "), most);
  }
}

function add(map, key, value) {
  if (map.has(key)) map.get(key).push(value);
  else map.set(key, [value]);
}
