// The thread: an article for each entry, in order, with marks for how its parts stood in the call at hand.

const FORM_WORDS = {
  placeholder: "only a line stood for it",
  marker: "only a line stood for the image",
  shortened: "shortened",
  page: "on pages",
  not_drawn: "left off the pages",
  summary: "in a summary",
  omitted: "left out",
  other_wire: "not carried by the wire",
  elsewhere: "compacted by the session itself",
  branch: "on a branch that was left",
};

const KIND_WORDS = {
  compaction: "Compacted",
  undo: "Undone",
  trim: "Trimmed",
  pin: "Pinned",
  unpin: "Unpinned",
  report: "Report",
  label: "Checkpoint",
  label_loss: "Checkpoint lost",
  failure: "Failure",
  interruption: "Interrupted",
  claim: "Claim",
  import: "Import",
  fork: "Fork",
  move: "Tip moved",
  started: "Call started",
};

const formWords = (reduced) => {
  const where = reduced.pages.length ? ` ${reduced.pages.length === 1 ? "page" : "pages"} ${reduced.pages.join(", ")}` : "";
  if (reduced.form === "page") return `on${where}`;
  return FORM_WORDS[reduced.form] + (where ? ` (${where.trim()})` : "");
};

function title(entry, view) {
  if (!entry.parts) return KIND_WORDS[entry.kind] ?? entry.kind;
  const who = entry.role === "tool" ? "results" : entry.role;
  const turn = entry.turn ? `Turn ${number(entry.turn)}` : "Head";
  return `${turn} · ${entry.kind === "report" ? "report" : who}`;
}

// What an event was, without the word that its title has already.
const eventWords = (entry) =>
  entry.what.replace(/^(compacted|pinned|claimed:|failed:|checkpoint|forked|imported|import:|tip moved|report|the session's own compaction) */, "");

// An article for an entry. `prefix` keeps ids apart where the same entry stands in two columns.
function article(entry, view, prefix = "e") {
  const event = !entry.parts;
  const name = title(entry, view);
  const heading = el("header", {},
    el("h3", { id: `${prefix}${entry.id}-title` }, name),
    el("span", { class: "when" }, entry.time.replace("T", " ").replace("Z", " UTC")),
    entry.parts && view.conversation.calls[entry.id] ? el("span", { class: "when" }, "context recorded") : null,
    el("span", { class: "when not-yet" }, "said later"),
    button(`Entry ${entry.id}`, (click) => { click.stopPropagation(); view.open(entry.id); },
      { class: "open", "aria-label": `Details of entry ${entry.id}, ${name}` }));
  const body = el("div", { class: "body" });
  if (event) {
    body.append(el("p", { class: "what", dir: "auto" }, eventWords(entry)));
    if (entry.kind === "compaction" && view.conversation.passes[entry.id]) {
      const pages = view.conversation.passes[entry.id].sheets.length;
      const told = pages ? `Receipt and ${plural(pages, "page")}` : "Receipt";
      body.append(button(told, (click) => { click.stopPropagation(); view.open(entry.id); }, { class: "more" }));
    }
  } else {
    entry.parts.forEach((part, at) => body.append(partOf(entry, part, at, view, prefix)));
  }
  const kind = event ? `event ${entry.kind}` : `message ${entry.role}${entry.kind === "report" ? " report" : ""}`;
  return el("article", {
    id: `${prefix}${entry.id}`, class: kind, tabindex: -1, "data-entry": entry.id,
    "aria-labelledby": `${prefix}${entry.id}-title`,
  }, heading, body);
}

function partOf(entry, part, at, view, prefix) {
  const marks = el("span", { class: "marks", "data-marks": prefix === "e" ? keyOf(entry.id, at, -1) : null });
  const box = el("div", { class: `part ${part.type}` });
  const head = (...words) => el("div", { class: "part-head" }, ...words, marks);
  switch (part.type) {
    case "text":
      box.append(head(), block(part.text, "said"));
      break;
    case "call":
      box.append(head(el("strong", {}, "calls "), el("code", {}, line(part.name, 80))), block(pretty(part.arguments), "code"));
      break;
    case "result":
      box.append(head(el("strong", part.error ? { class: "bad" } : {}, part.error ? "error from " : "result of "),
        el("code", {}, line(part.name || part.call, 80))));
      part.parts.forEach((inside, inner) => box.append(insideOf(entry, inside, at, inner, view, prefix)));
      if (part.error) box.classList.add("error");
      break;
    case "reasoning":
      box.append(head(el("strong", {}, "reasoning"), part.signed ? " (signed by its provider)" : ""));
      box.append(part.text ? block(part.text, "said quiet") : el("p", { class: "quiet" }, "kept by its provider"));
      break;
    case "image":
      box.append(head(el("strong", {}, "image")), picture(part, view));
      break;
    default:
      box.append(head(el("strong", {}, part.kind ?? part.type)), el("p", { class: "quiet" }, "carried through as it came"));
  }
  return box;
}

function insideOf(entry, part, at, inner, view, prefix) {
  if (part.type === "text") return block(part.text, "code");
  const marks = el("span", { class: "marks", "data-marks": prefix === "e" ? keyOf(entry.id, at, inner) : null });
  if (part.type === "image") return el("div", { class: "part image" }, el("div", { class: "part-head" }, marks), picture(part, view));
  return el("div", { class: "part" }, el("div", { class: "part-head" }, el("strong", {}, part.kind ?? part.type), marks));
}

function pretty(text) {
  if (Array.isArray(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 1);
  } catch {
    return text;
  }
}

function picture(part, view) {
  const size = part.width ? `${part.width}×${part.height}` : "size unknown";
  const told = `${part.media_type}, ${size}`;
  const kept = part.digest ? view.images[part.digest] : null;
  if (!kept) {
    const where = part.digest ? "kept in the record; not in this page" : "not in the record: its provider or its address has it";
    return el("p", { class: "quiet" }, `${told}; ${where}`);
  }
  const image = el("img", {
    class: "picture", alt: `Image of the transcript, ${told}`, decoding: "async",
    width: part.width || null, height: part.height || null,
  });
  view.whenNear(image, () => { image.src = `data:${kept.type};base64,${kept.data}`; });
  return image;
}

// A line in the thread where other branches leave it.
function parting(entry, view, next) {
  const others = (view.conversation.children.get(entry.id) ?? []).filter((each) => each.id !== next);
  if (!others.length) return null;
  return el("div", { class: "parting", role: "group", "aria-label": "Other branches from here" },
    el("span", {}, others.length === 1 ? "Another branch leaves here:" : `${others.length} other branches leave here:`),
    others.map((each) => button(`${each.turn ? `turn ${each.turn}` : "entry"} · ${view.conversation.gist(each, 60)}`,
      () => view.go(each.id), { class: "link" })));
}

class Thread {
  constructor(view) {
    this.view = view;
    this.box = document.getElementById("thread");
    this.note = document.getElementById("lens");
    this.leaf = undefined;
    this.marked = [];
    this.box.addEventListener("click", (click) => {
      const found = click.target.closest("article");
      const chosen = String(window.getSelection());
      if (found && !click.target.closest("button, a, img, summary") && !chosen) view.open(Number(found.dataset.entry), { stay: true });
    });
    this.box.addEventListener("keydown", (key) => this.key(key));
  }

  show(leaf) {
    if (leaf === this.leaf && this.conversation === this.view.conversation) return;
    this.leaf = leaf;
    this.conversation = this.view.conversation;
    this.current = null;
    this.marked = [];
    const shown = this.conversation.thread(leaf);
    const path = this.conversation.path(leaf);
    const next = new Map(path.map((entry, at) => [entry.id, path[at + 1]?.id]));
    const made = document.createDocumentFragment();
    let last = null;
    for (const entry of shown) {
      if (last !== null && onPath(entry)) {
        const here = parting(last, this.view, next.get(last.id));
        if (here) made.append(here);
        last = null;
      }
      made.append(article(entry, this.view));
      if (onPath(entry)) last = entry;
    }
    if (last) {
      const here = parting(last, this.view, undefined);
      if (here) made.append(here);
    }
    if (!shown.length) made.append(el("p", { class: "quiet" }, "Nothing was said yet."));
    this.box.replaceChildren(made);
    const first = this.box.querySelector("article");
    if (first) first.tabIndex = 0;
  }

  // Makes an entry the current one; gives its article, if the thread has one.
  select(id) {
    const found = document.getElementById(`e${id}`);
    for (const old of this.box.querySelectorAll("article[tabindex='0'], article.current")) {
      old.tabIndex = -1;
      old.classList.remove("current");
      old.removeAttribute("aria-current");
    }
    if (!found) return null;
    found.tabIndex = 0;
    found.classList.add("current");
    found.setAttribute("aria-current", "true");
    return found;
  }

  // Marks every part that did not stand word for word in what was seen.
  mark(seen) {
    for (const node of this.marked) node.replaceChildren();
    this.marked = [];
    for (const node of this.box.querySelectorAll("article.later")) node.classList.remove("later");
    this.note.replaceChildren();
    if (!seen) return;
    const call = seen.call ? "the call" : "the context";
    this.note.append(el("span", {}, `Marks tell how each part stood in ${call} of entry ${seen.entry.id}; what was said later is dotted.`),
      button("Take marks off", () => this.view.lens(null), { class: "link" }));
    for (const each of seen.reduced) {
      const node = this.box.querySelector(`[data-marks="${keyOf(each.entry.id, each.part, each.inner)}"]`);
      if (!node) continue;
      node.append(button(`${formWords(each)} · since entry ${each.since}`, (click) => { click.stopPropagation(); this.view.go(each.since); },
        { class: `mark ${each.form}` }));
      this.marked.push(node);
    }
    for (const node of this.box.querySelectorAll("article.message")) {
      const id = Number(node.dataset.entry);
      if (id >= seen.entry.id && !seen.said.has(id) && id !== seen.entry.id) node.classList.add("later");
    }
  }

  key(key) {
    const here = key.target.closest("article");
    if (!here || key.target !== here || key.ctrlKey || key.metaKey || key.altKey) return;
    const step = (from, forward, wanted) => {
      let at = from;
      do at = forward ? at.nextElementSibling : at.previousElementSibling;
      while (at && !at.matches(wanted));
      if (at) this.view.go(Number(at.dataset.entry), { focus: true });
    };
    const actions = {
      j: () => step(here, true, "article"),
      k: () => step(here, false, "article"),
      n: () => step(here, true, "article.compaction, article.undo, article.trim"),
      p: () => step(here, false, "article.compaction, article.undo, article.trim"),
      Enter: () => this.view.open(Number(here.dataset.entry)),
    };
    if (!actions[key.key] || (key.key.length === 1 && !this.view.letters)) return;
    key.preventDefault();
    actions[key.key]();
  }
}
