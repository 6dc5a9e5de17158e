// Building elements. Nothing from a record is ever parsed as HTML: text goes in as text, and attributes
// that hold words of a record are labels only.

// Characters that are not seen or that turn the order of others around; with the u flag the last range
// is lone surrogates only.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}\ud800-\udfff]/gu;

function sign(character) {
  const code = character.codePointAt(0);
  if (code < 0x20 || code === 0x7f) return `^${String.fromCodePoint(code ^ 0x40)}`;
  return `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

// Appends a text to a node, with what would not be seen written out.
function put(node, text) {
  let from = 0;
  for (const found of text.matchAll(HIDDEN)) {
    if (found.index > from) node.append(text.slice(from, found.index));
    const shown = document.createElement("span");
    shown.className = "hidden-character";
    shown.textContent = sign(found[0]);
    node.append(shown);
    from = found.index + found[0].length;
  }
  if (from < text.length) node.append(from ? text.slice(from) : text);
  return node;
}

// A text on one line, for labels and lists.
function line(text, most = 160) {
  const short = text.slice(0, 4 * most).replace(/\s+/gu, " ").trim();
  const points = Array.from(short);
  const cut = points.length > most ? `${points.slice(0, most).join("")}…` : short;
  return cut.replace(HIDDEN, sign);
}

// el("button", { class: "x", onclick: f, "aria-label": "…" }, "text", node, …)
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    if (child instanceof Node) node.append(child);
    else put(node, String(child));
  }
  return node;
}

const number = (value) => value.toLocaleString("en-US");
const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
const button = (words, onclick, attributes = {}) => el("button", { type: "button", onclick, ...attributes }, words);

// A span of numbers: "4", "4–9".
const span = (first, last) => (first === last ? number(first) : `${number(first)}–${number(last)}`);
const turns = (first, last) => (first === last ? `turn ${number(first)}` : `turns ${span(first, last)}`);

// A text of the record: a string, or its beginning, how much is between, and its end.
const whole = (text) => (Array.isArray(text) ? `${text[0]}\n${text[2]}` : text);

const FEW_LINES = 12;
const FEW_CHARACTERS = 1600;

// A text as a block that begins folded if it is long.
function block(text, kind) {
  const [begin, between, end] = Array.isArray(text) ? text : [text, 0, ""];
  const box = el("div", { class: `block ${kind}`, dir: "auto" });
  const all = () => {
    put(box, begin);
    if (between) {
      const left = `${number(between)} characters are not in this page; microfiche show prints them`;
      box.append(el("em", { class: "between" }, left));
      put(box, end);
    }
  };
  const lines = begin.split("\n", FEW_LINES + 1);
  const short = lines.length > FEW_LINES ? lines.slice(0, FEW_LINES).join("\n") : begin;
  if (short.length === begin.length && begin.length <= 1.5 * FEW_CHARACTERS && !between) {
    all();
    return box;
  }
  const few = short.length > FEW_CHARACTERS ? Array.from(short.slice(0, FEW_CHARACTERS + 1)).slice(0, -1).join("") : short;
  const size = plural(begin.length + between + end.length, "character");
  put(box, few);
  const toggle = button(`Show all ${size}`, () => {
    const open = toggle.getAttribute("aria-expanded") === "true";
    box.replaceChildren();
    if (open) put(box, few);
    else all();
    toggle.setAttribute("aria-expanded", String(!open));
    toggle.textContent = open ? `Show all ${size}` : "Show less";
  }, { class: "more", "aria-expanded": "false" });
  return el("div", { class: "folded" }, box, toggle);
}
