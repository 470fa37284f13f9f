// The tokens around the current step, coloured by how free each one was.

import { element, visible } from "./dom.js";

const BEFORE = 120;
const AFTER = 180;
const MARGIN = 50;

export class Strip {
  constructor(box, go) {
    this.box = box;
    this.clear();
    box.addEventListener("click", (event) => {
      const place = event.target.dataset?.place;
      if (place !== undefined) go(Number(place));
    });
  }

  clear() {
    this.box.replaceChildren();
    this.start = this.end = 0;
    this.current = null;
  }

  // The places whose tokens should be here when `place` is shown.
  static around(reading, place) {
    return [Math.max(0, place - BEFORE), Math.min(reading.count, place + AFTER)];
  }

  show(reading, place, anew = false) {
    const near =
      place >= this.start + (this.start ? MARGIN : 0) && place < this.end - (this.end < reading.count ? MARGIN : 0);
    if (anew || !near) this.draw(reading, place);
    this.current?.removeAttribute("aria-current");
    this.current = this.box.children[place - this.start] ?? null;
    if (this.current === null) return;
    this.current.setAttribute("aria-current", "step");
    // Only the box scrolls, never the page.
    const { offsetTop, offsetHeight } = this.current;
    const top = offsetTop - this.box.offsetTop;
    if (top < this.box.scrollTop || top + offsetHeight > this.box.scrollTop + this.box.clientHeight) {
      this.box.scrollTop = top - this.box.clientHeight / 3;
    }
  }

  draw(reading, place) {
    [this.start, this.end] = Strip.around(reading, place);
    const drawn = document.createDocumentFragment();
    for (let at = this.start; at < this.end; at++) {
      const step = reading.step(at);
      const token = element("span", step ? (step.token === null ? "■" : visible(step.text) || "∅") : "…", "token");
      if (step) token.classList.add(...kinds(step));
      if (step?.allowed !== undefined) token.title = `${step.allowed.toLocaleString("en")} may come`;
      token.dataset.place = at;
      drawn.append(token);
    }
    this.box.replaceChildren(drawn);
  }
}

function kinds(step) {
  const found = [];
  if (step.allowed !== undefined) found.push(step.allowed === 1 ? "forced" : step.allowed < 100 ? "narrow" : "wide");
  if (step.special) found.push("special");
  if (step.refused) found.push("refused");
  return found;
}
