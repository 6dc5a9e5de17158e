// A page as the model saw it. Its bars are buttons that lead to the turn; so does the text behind each.

class Sheets {
  constructor(view) {
    this.view = view;
    this.dialog = document.getElementById("page");
    this.stage = this.dialog.querySelector(".stage");
    this.dialog.querySelector(".before").addEventListener("click", () => this.step(-1));
    this.dialog.querySelector(".behind").addEventListener("click", () => this.step(1));
    this.dialog.querySelector(".close").addEventListener("click", () => this.dialog.close());
    this.size = this.dialog.querySelector(".size");
    this.size.addEventListener("click", () => {
      const whole = this.stage.classList.toggle("actual");
      this.size.setAttribute("aria-pressed", String(whole));
    });
    this.dialog.addEventListener("close", () => this.stage.replaceChildren());
    this.dialog.addEventListener("keydown", (key) => {
      if (key.key === "ArrowLeft" && key.target.closest("button, .stage")) this.step(-1);
      if (key.key === "ArrowRight" && key.target.closest("button, .stage")) this.step(1);
    });
  }

  // A button with a small picture, for lists of pages.
  thumb(at, all, pass, shown = true) {
    const page = this.view.pages[at];
    const words = `Page ${page.number} · ${turns(...page.turns)}${shown ? "" : " · not shown"}`;
    const image = el("img", { alt: "", width: 168, height: Math.round((168 * page.height) / page.width), decoding: "async" });
    if (page.png) this.view.whenNear(image, () => { image.src = `data:image/png;base64,${page.png}`; });
    return el("button", { type: "button", class: `thumb${shown ? "" : " out"}`, "data-page": page.number,
      onclick: () => this.open(at, all, pass) }, page.png ? image : null, el("span", {}, words));
  }

  open(at, all, pass) {
    this.all = all;
    this.pass = pass;
    this.show(all.indexOf(at));
    if (!this.dialog.open) this.dialog.showModal();
    this.stage.focus();
  }

  step(by) {
    const at = this.at + by;
    if (at >= 0 && at < this.all.length) this.show(at);
  }

  show(at) {
    this.at = at;
    const page = this.view.pages[this.all[at]];
    const words = `Page ${page.number} · ${turns(...page.turns)}`;
    this.dialog.querySelector("h2").textContent = words;
    this.dialog.querySelector(".about").replaceChildren(
      `as the pass of entry ${this.pass} left it · ${page.width}×${page.height} pixels, ${page.depth} bit${page.depth === 1 ? "" : "s"} each · SHA-256 of its pixels `,
      el("code", {}, page.digest));
    this.dialog.querySelector(".before").disabled = at === 0;
    this.dialog.querySelector(".behind").disabled = at === this.all.length - 1;
    this.stage.replaceChildren();
    if (!page.png) {
      const why = page.redrawn
        ? "This page is not in the file, to keep it small: microfiche view with fewer conversations, or the record, has it."
        : "The font of this version draws this page otherwise, so it is not shown. Its digest stands on record; its turns stand in the thread.";
      this.stage.append(el("p", {}, why));
    } else {
      this.stage.append(this.drawn(page, words));
    }
    const on = [...new Set((page.bars ?? []).map((bar) => bar[0]))];
    if (!on.length) for (let turn = page.turns[0]; turn <= page.turns[1]; turn += 1) if (this.view.conversation.byTurn.has(turn)) on.push(turn);
    this.dialog.querySelector(".on-it").replaceChildren(el("span", {}, "Turns on it: "),
      ...on.map((turn) => button(number(turn), () => this.land(turn), { class: "link", "data-turn": turn, "aria-label": `Turn ${turn}` })));
  }

  drawn(page, words) {
    const sheet = el("div", { class: "sheet" });
    const image = el("img", { alt: `${words}, as it was drawn for the model. The originals stand in the thread.`, width: page.width, height: page.height, decoding: "async" });
    image.src = `data:image/png;base64,${page.png}`;
    image.addEventListener("click", (click) => {
      const box = image.getBoundingClientRect();
      const scale = page.width / box.width;
      this.behind(page, (click.clientX - box.left) * scale, (click.clientY - box.top) * scale);
    });
    sheet.append(image);
    page.bars.forEach(([turn, kind, boxes]) => {
      boxes.forEach(([left, top, width, height], nth) => {
        const place = el("button", { type: "button", class: "bar", "data-turn": turn, "aria-label": `Turn ${turn}, ${kind}`, title: `Turn ${turn}, ${kind}`,
          tabindex: nth ? -1 : null, "aria-hidden": nth ? "true" : null, onclick: () => this.land(turn, kind) });
        place.style.left = `${(100 * left) / page.width}%`;
        place.style.top = `${(100 * top) / page.height}%`;
        place.style.width = `${(100 * width) / page.width}%`;
        place.style.height = `${(100 * height) / page.height}%`;
        sheet.append(place);
      });
    });
    return sheet;
  }

  // The text at a point belongs to the bar before it in reading order.
  behind(page, x, y) {
    const row = Math.floor(y / page.cell[1]);
    let found = -1;
    page.bars.forEach((bar, at) => {
      const [left, top] = bar[2][0];
      const barRow = Math.floor(top / page.cell[1]);
      if (barRow < row || (barRow === row && left <= x)) found = at;
    });
    if (found < 0) this.land(page.turns[0]);
    else this.land(page.bars[found][0], page.bars[found][1]);
  }

  // Goes to the message of a turn that a bar stands for.
  land(turn, kind = "") {
    const entries = this.view.conversation.byTurn.get(turn) ?? [];
    const wanted = kind.startsWith("call ") ? "call" : kind.startsWith("result ") ? "result" : "";
    const found = entries.find((entry) => !wanted || entry.parts.some((part) => part.type === wanted)) ?? entries[0];
    this.dialog.close();
    if (found) this.view.go(found.id, { focus: true });
  }
}
