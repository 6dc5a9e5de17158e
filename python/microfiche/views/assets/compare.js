// Two branches side by side: what they share in a line, what each has of its own in full.

class Compare {
  constructor(view) {
    this.view = view;
    this.box = document.getElementById("compare");
    this.left = document.getElementById("branch-a");
    this.right = document.getElementById("branch-b");
    document.getElementById("compare-go").addEventListener("click", () => this.open());
    this.box.querySelector(".close").addEventListener("click", () => this.close());
  }

  fill(conversation) {
    const options = () => conversation.leaves.map((leaf) => {
      const entry = conversation.byId.get(leaf);
      const words = `${entry.turn ? `to turn ${entry.turn}` : "head"} (entry ${leaf})${leaf === conversation.tip ? ", tip" : ""}`;
      return el("option", { value: leaf }, words);
    });
    this.left.replaceChildren(...options());
    this.right.replaceChildren(...options());
    this.left.value = String(conversation.leaves.find((leaf) => leaf !== conversation.tip) ?? conversation.tip);
    this.right.value = String(conversation.tip);
    document.getElementById("compare-tool").hidden = conversation.leaves.length < 2;
  }

  open() {
    const { conversation } = this.view;
    const leaves = [Number(this.left.value), Number(this.right.value)];
    const paths = leaves.map((leaf) => conversation.path(leaf));
    let same = 0;
    while (same < paths[0].length && same < paths[1].length && paths[0][same] === paths[1][same]) same += 1;
    const last = same ? paths[0][same - 1] : null;
    const shared = last ? `Both share ${plural(same, "entry").replace("entrys", "entries")}, to entry ${last.id}${last.turn ? ` of turn ${last.turn}` : ""}. ` : "They share nothing. ";
    this.box.querySelector(".shared").replaceChildren(shared);
    this.box.querySelector(".columns").replaceChildren(...leaves.map((leaf, at) => {
      const own = new Set(paths[at].slice(same).map((entry) => entry.id));
      const thread = conversation.thread(leaf).filter((entry) => own.has(onPath(entry) ? entry.id : conversation.place(entry)));
      const pins = conversation.pins(leaf).filter((pin) => pin.gone === null).length;
      const messages = thread.filter((entry) => entry.parts).length;
      const passes = thread.filter((entry) => entry.kind === "compaction").length;
      const name = `${at ? "Right" : "Left"}: entry ${leaf}${leaf === conversation.tip ? ", the tip" : ""}`;
      const facts = `${plural(messages, "message")} and ${passes === 1 ? "1 pass" : `${passes} passes`} of its own; ${plural(pins, "pin")} in force at its end.`;
      return el("section", { class: "column", "aria-label": name, "data-leaf": leaf, tabindex: 0 }, el("h3", {}, name), el("p", { class: "quiet" }, facts),
        thread.length ? thread.map((entry) => article(entry, this.view, `${at ? "b" : "a"}`)) : el("p", {}, "Nothing of its own: the other goes on from its end."));
    }));
    document.body.classList.add("comparing");
    this.box.hidden = false;
    this.box.querySelector("h2").focus();
  }

  close() {
    document.body.classList.remove("comparing");
    this.box.hidden = true;
    this.box.querySelector(".columns").replaceChildren();
    this.view.thread?.box.querySelector("article.current")?.scrollIntoView({ block: "start" });
  }
}
