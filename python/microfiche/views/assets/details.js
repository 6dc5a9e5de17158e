// What there is to know of one entry: of a call what it saw, of a pass its receipt, of a claim its evidence.

const RUNG_WORDS = {
  carry: "what the written form cannot hold",
  unsendable: "images the model does not take",
  plan: "the plan before, and pins",
  elide: "old tool results",
  images: "old screenshots",
  reasoning: "old reasoning",
  snapshot: "the middle as pages",
  summary: "the oldest turns as a summary",
  newest: "a newest result too large",
  omit: "left out",
  write: "frame and repairs",
};

const REASON_WORDS = {
  nothing_old: "none that may go",
  no_vision: "the model does not read images",
  does_not_pay: "pages would cost as much as the text",
  would_grow: "it would have grown",
  no_room: "no room for a summary",
  off: "switched off",
};

class Details {
  constructor(view) {
    this.view = view;
    this.box = document.getElementById("details");
  }

  show(id) {
    const entry = this.view.conversation.byId.get(id);
    const made = [el("h2", { tabindex: -1 }, `${title(entry, this.view)} · entry ${id}`)];
    made.push(this.facts([["When", entry.time.replace("T", " ").replace("Z", " UTC")], ["Kind", entry.kind.replace("_", " ")],
      ["Conversation", this.view.conversation.name], ["Leaf", el("code", {}, entry.leaf)]]));
    if (!entry.parts) made.splice(1, 0, el("p", { class: "what", dir: "auto" }, eventWords(entry)));
    if (entry.kind === "compaction") made.push(...(this.view.conversation.passes[id] ? this.receipt(entry) : this.summary(entry.told.summary)));
    if (entry.kind === "claim") made.push(...this.evidence(entry));
    if (entry.kind === "move") made.push(this.links("It left", [entry.told.from]), this.links("It went to", [entry.about]));
    if (entry.kind === "undo" || entry.kind === "unpin") made.push(this.links("It is about", [entry.about]));
    const known = this.view.conversation.calls[id] || entry.role === "assistant" || this.view.conversation.passes[id];
    if (known) made.push(...this.seen(id));
    if (entry.parts) made.push(...this.claims(entry), ...this.forms(entry));
    this.box.replaceChildren(...made.filter(Boolean));
    this.contents();
    this.box.scrollTop = 0;
  }

  // A line of links to the headings, where there are several.
  contents() {
    const headings = [...this.box.querySelectorAll("h3")];
    if (headings.length < 3) return;
    const links = headings.map((heading) => button(heading.textContent, () => heading.scrollIntoView({ block: "start" }), { class: "link" }));
    this.box.querySelector("h2").after(el("nav", { class: "contents", "aria-label": "In these details" }, links));
  }

  facts(rows) {
    return el("dl", { class: "facts" }, rows.filter((row) => row[1] !== null && row[1] !== undefined).map(([name, value]) =>
      [el("dt", {}, name), el("dd", {}, value)]));
  }

  link(id, words) {
    if (id === null || id === undefined) return el("span", {}, "the beginning");
    const there = this.view.find(id);
    if (!there) return el("span", {}, words ?? `entry ${id}`);
    return button(words ?? `entry ${id}`, () => this.view.go(id, { focus: true }), { class: "link", "data-to": id });
  }

  links(words, ids) {
    return el("p", {}, `${words}: `, ids.map((id) => this.link(id)));
  }

  // A call

  seen(id) {
    const seen = this.view.conversation.seen(id);
    const { call } = seen;
    const made = [];
    const pass = this.view.conversation.passes[id];
    const name = !call ? "What the plan before it showed" : pass ? "What the model saw from here on" : "What this call saw";
    made.push(el("h3", { id: "saw" }, name));
    if (call) {
      made.push(this.facts([
        ["Context", el("code", {}, call.context)],
        ["Proof", this.proof(call, id)],
        ["Model", `${call.model} (${call.wire})`],
        ["Tokens", call.reported === null ? `${number(call.estimate)} estimated` : `${number(call.estimate)} estimated, ${number(call.reported)} reported by the provider`],
        ["Pass in force", seen.pass === null ? "none" : this.link(seen.pass)],
      ]));
    } else {
      made.push(el("p", { class: "quiet" }, "No context was recorded with this message. This is how everything before it stood by the newest pass on its path."));
    }
    const counts = new Map([["verbatim", seen.verbatim]]);
    for (const each of seen.reduced) counts.set(each.form, (counts.get(each.form) ?? 0) + 1);
    made.push(el("table", { class: "counts" },
      el("caption", {}, "Parts of what had been said, by the form in which they stood"),
      el("tbody", {}, [...counts].map(([form, count]) => el("tr", { "data-form": form },
        el("th", { scope: "row" }, form === "verbatim" ? "word for word" : FORM_WORDS[form]), el("td", {}, number(count)))))));
    if (seen.pages.length) {
      made.push(el("p", {}, `${plural(seen.pages.length, "page")} shown:`), this.thumbs(seen.pages, seen.pass));
    }
    made.push(el("h3", { id: "not-considered" }, pass ? "What it does not show word for word" : "What it had stopped considering"));
    made.push(...this.missing(seen));
    return made;
  }

  proof(call, id) {
    if (call.proven === undefined) {
      return el("span", {}, "not made again for this page; ", el("code", {}, `microfiche audit --at ${id}`), " does it");
    }
    if (!call.proven) return el("span", { class: "bad" }, "NOT PROVEN: made again from the record it has another digest");
    return el("span", { class: "good" }, "proven: made again from the record it has this digest");
  }

  thumbs(pages, pass, hidden = new Set()) {
    return el("div", { class: "thumbs" }, pages.map((at) => this.view.sheets.thumb(at, pages, pass, !hidden.has(at))));
  }

  // Parts that did not stand word for word, by the event since which they do not.
  missing(seen) {
    if (!seen.reduced.length) return [el("p", {}, "Nothing: all that was said before it stood word for word.")];
    const groups = new Map();
    for (const each of seen.reduced) add(groups, each.since, each);
    const ordered = [...groups].sort((a, b) => a[0] - b[0]);
    return ordered.map(([since, all]) => {
      const event = this.view.conversation.byId.get(since);
      const name = event ? (KIND_WORDS[event.kind] ?? "Call") : "Event";
      const summary = el("summary", {}, `Since entry ${since} · ${name.toLowerCase()}${event ? `, ${event.time.slice(0, 19).replace("T", " ")}` : ""}: `,
        el("strong", {}, plural(all.length, "part")));
      const list = el("ul", { class: "parts" });
      const box = el("details", { class: "since", "data-since": since }, summary, el("p", {}, "By ", this.link(since), event && event.what ? `: ${line(event.what, 200)}` : ""), list);
      const fill = () => list.replaceChildren(...all.map((each) => el("li", { "data-turn": each.turn, "data-entry": each.entry.id, "data-form": each.form },
        this.link(each.entry.id, each.turn ? `Turn ${each.turn}` : "Head"), ` ${each.kind}${each.size ? `, ${plural(each.size, "character")}` : ""}: `,
        el("span", { class: `form ${each.form}` }, formWords(each)), each.why ? ` (${each.why})` : "")));
      box.addEventListener("toggle", () => { if (box.open && !list.firstChild) fill(); });
      if (ordered.length === 1 || all.length <= 8) {
        fill();
        box.open = true;
      }
      return box;
    });
  }

  // A message

  claims(entry) {
    const claims = this.view.conversation.claimsOf(entry);
    if (!claims.length) return [];
    return [el("h3", { id: "claims" }, "Claims made here"), ...claims.flatMap((each) =>
      [el("p", { class: "what", dir: "auto" }, each.told.text, " (", this.link(each.id), ")"), ...this.evidence(each, false)])];
  }

  // How the parts of a message stood from each event on.
  forms(entry) {
    const { conversation } = this.view;
    const steps = [];
    const now = new Map();
    for (const each of conversation.path(this.view.leaf)) {
      const left = conversation.passes[each.id];
      if (!left || each.id < entry.id) continue;
      const changed = left.changed.filter((change) => change[0] === entry.id);
      if (!changed.length) continue;
      for (const [, part, inner, form, , pages, why] of changed) {
        if (form === null) now.delete(keyOf(entry.id, part, inner));
        else now.set(keyOf(entry.id, part, inner), { form: conversation.forms[form][0], pages, why });
      }
      const words = [...new Set([...now.values()].map(formWords))];
      steps.push(el("li", {}, this.link(each.id), `: ${words.length ? words.join("; ") : "word for word again"}`));
    }
    return [el("h3", {}, "Its way on this branch"), el("ol", { class: "way" }, el("li", {}, `entry ${entry.id}: said, word for word`), ...steps)];
  }

  // A claim

  evidence(claim, heading = true) {
    const rows = [];
    const waiting = [[claim, 0]];
    const met = new Set([claim.id]);
    while (waiting.length) {
      const [of, depth] = waiting.shift();
      for (const rest of of.told.rests_on ?? []) {
        const on = this.view.find(rest.entry);
        const branch = on && on.conversation === this.view.conversation && !this.onWay(on.entry) ? " · on a branch that was left" : "";
        const words = on ? on.conversation.gist(on.entry, 220) : "in a conversation that is not in this page";
        rows.push(el("li", { class: `depth-${Math.min(depth, 3)}`, "data-kind": rest.kind, "data-entry": rest.entry },
          el("strong", {}, rest.kind), " ", this.link(rest.entry), branch, depth ? ` (for claim ${of.id})` : "", el("div", { class: "excerpt", dir: "auto" }, words)));
        if (on && on.entry.kind === "claim" && !met.has(rest.entry)) {
          met.add(rest.entry);
          waiting.push([on.entry, depth + 1]);
        }
      }
    }
    const made = heading ? [el("h3", { id: "evidence" }, "What it rests on")] : [];
    made.push(rows.length ? el("ul", { class: "evidence" }, rows) : el("p", { class: "bad" }, "It names nothing that it rests on."));
    return made;
  }

  onWay(entry) {
    const { conversation } = this.view;
    return conversation.way.has(onPath(entry) ? entry.id : conversation.place(entry));
  }

  // A pass

  receipt(entry) {
    const { told } = entry;
    const left = this.view.conversation.passes[entry.id];
    const money = (amount) => (amount.money === null || amount.money === undefined ? "unknown" : amount.money.toFixed(4));
    const row = (name, tokens, change, images, cost, note) => el("tr", {}, el("th", { scope: "row" }, name, note ? el("div", { class: "quiet" }, note) : null),
      el("td", {}, number(tokens)), el("td", {}, change), el("td", {}, images), el("td", {}, cost));
    const rows = [row("given", told.before.tokens, "", number(told.before.images), money(told.before), "")];
    let at = told.before.tokens;
    for (const [rung, reason, tokens] of told.rungs) {
      const change = tokens - at;
      rows.push(row(RUNG_WORDS[rung] ?? rung, tokens, reason ? "" : `${change > 0 ? "+" : ""}${number(change)}`, "", "", REASON_WORDS[reason] ?? reason.replace(/_/g, " ")));
      at = tokens;
    }
    rows.push(row("sent", told.after.tokens, number(told.after.tokens - told.before.tokens), number(told.after.images), money(told.after), ""));
    const head = el("thead", {}, el("tr", {}, ["", "tokens", "change", "images", "USD"].map((name) => el("th", { scope: "col" }, name))));
    const made = [el("h3", {}, "Receipt"), this.facts([["Why", told.why], ["For", told.model], ["Turns", told.span[1] ? span(...told.span) : "none"],
      ["Versions", Object.entries(told.versions ?? {}).map(([name, value]) => `${name} ${value}`).join(", ")]]),
      el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Receipt by rung" }, el("table", { class: "receipt" }, head, el("tbody", {}, rows))),
      el("p", { class: "quiet" }, "Tokens are estimates; USD is input at the price that the catalogue of this version names.")];
    made.push(...this.summary(told.summary));
    const went = new Map();
    for (const [of, , , form] of left ? left.changed : []) {
      const name = form === null ? "word for word again" : FORM_WORDS[this.view.conversation.forms[form][0]];
      const told = went.get(name) ?? [0, new Set()];
      told[0] += 1;
      told[1].add(this.view.conversation.byId.get(of).turn ?? 0);
      went.set(name, told);
    }
    made.push(el("h3", {}, "What went where"));
    made.push(went.size ? el("table", { class: "counts" }, el("tbody", {}, [...went].map(([name, [count, where]]) => el("tr", {},
      el("th", { scope: "row" }, name), el("td", {}, plural(count, "part")), el("td", {}, ranges([...where].sort((a, b) => a - b)))))))
      : el("p", {}, "No part changed its form."));
    if (left && left.sheets.length) {
      const hidden = new Set(left.sheets.slice(0, left.left_out));
      made.push(el("h3", {}, `Its pages (${number(left.sheets.length)})`), this.thumbs(left.sheets, entry.id, hidden));
    }
    return made;
  }

  summary(lines) {
    if (!lines.length) return [];
    return [el("h3", {}, "Summary it brought"), el("ul", { class: "summary" }, lines.map((each) =>
      el("li", {}, el("strong", {}, each.kind.replace("_", " ")), " ", el("span", { class: "what", dir: "auto" }, whole(each.text)), " ", (each.turns ?? []).map((turn) => this.turn(turn)))))];
  }

  turn(number) {
    const [first] = this.view.conversation.byTurn.get(number) ?? [];
    return first ? this.link(first.id, `turn ${number}`) : el("span", {}, `turn ${number}`);
  }

  // The record

  held(told) {
    if (!told.verify)
      return [el("p", {}, "The record was made for this page, of a session file, and proves nothing of that. To keep one:"),
        el("pre", { class: "block code" }, "microfiche import SESSION RECORD")];
    const against = `Every hash was made anew; ${told.against}. A record that was rewritten together with the list beside it shows only against a head kept elsewhere.`;
    return [...(told.sound ? [el("p", {}, against)] : []),
      el("p", {}, "That was so when this page was written. To check the file as it is now against a head that you keep:"),
      el("pre", { class: "block code" }, told.verify)];
  }

  record() {
    const told = this.view.record;
    const state = told.sound ? el("p", { class: "good" }, `Sound: all ${number(told.size)} entries are what was written.`)
      : el("p", { class: "bad" }, `NOT SOUND: ${told.where ? `${told.where}: ` : ""}${told.reason}`);
    this.box.replaceChildren(el("h2", { tabindex: -1 }, "Does the record verify?"), state,
      this.facts([["File", told.name], ["Entries", number(told.size)], ["Root", el("code", {}, told.root)],
        ["Made by", this.view.by]]),
      ...this.held(told));
    this.box.scrollTop = 0;
  }
}

function ranges(numbers) {
  const found = [];
  for (const each of numbers) {
    const last = found[found.length - 1];
    if (last && each === last[1] + 1) last[1] = each;
    else found.push([each, each]);
  }
  const many = numbers.length > 1 ? "turns" : "turn";
  return `${many} ${found.map(([first, last]) => span(first, last)).join(", ")}`;
}
