// The tokens around the current step, coloured by how free each one was. They stand in rows of a fixed number,
// so that a step makes one row anew at most.

import { digits, element, visible } from "./dom.js";

const ROW = 50;
const BEFORE = 2; // rows
const AFTER = 3;

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
    this.rows = new Map();
    this.current = null;
  }

  // The places whose tokens should be here when `place` is shown.
  static around(reading, place) {
    const row = Math.floor(place / ROW);
    return [Math.max(0, row - BEFORE) * ROW, Math.min(reading.count, (row + AFTER + 1) * ROW)];
  }

  // Rows are made anew as long as steps of theirs are still to come.
  show(reading, place) {
    const [start, end] = Strip.around(reading, place);
    for (const [at, row] of this.rows) {
      if (at >= start && at < end && row.dataset.whole) continue;
      row.remove();
      this.rows.delete(at);
    }
    for (let at = start; at < end; at += ROW) {
      if (!this.rows.has(at)) this.insert(at, rowOf(reading, at, Math.min(at + ROW, end)));
    }
    this.mark(this.rows.get(place - (place % ROW))?.children[place % ROW]);
  }

  insert(at, row) {
    const next = [...this.rows.keys()].filter((other) => other > at).sort((a, b) => a - b)[0];
    this.box.insertBefore(row, next === undefined ? null : this.rows.get(next));
    this.rows.set(at, row);
  }

  mark(token) {
    this.current?.removeAttribute("aria-current");
    this.current = token ?? null;
    if (this.current === null) return;
    this.current.setAttribute("aria-current", "step");
    // Only the box scrolls, never the page.
    const [at, box] = [this.current.getBoundingClientRect(), this.box.getBoundingClientRect()];
    if (at.top < box.top || at.bottom > box.bottom) {
      this.box.scrollTop += at.top - box.top - box.height / 3;
    }
  }
}

function rowOf(reading, start, end) {
  const row = element("div");
  const steps = Array.from({ length: end - start }, (_, index) => reading.step(start + index));
  if (steps.every(Boolean) && (!reading.growing || end < reading.count)) row.dataset.whole = "yes";
  for (let at = start; at < end; at++) {
    const step = steps[at - start];
    const token = element("span", step ? (step.token === null ? "■" : visible(step.text) || "∅") : "…", "token");
    if (step) token.classList.add(...kinds(step));
    if (step?.allowed !== undefined) token.title = `${digits(step.allowed)} may come`;
    token.dataset.place = at;
    row.append(token);
  }
  return row;
}

function kinds(step) {
  const found = [];
  if (step.allowed !== undefined) found.push(step.allowed === 1 ? "forced" : step.allowed < 100 ? "narrow" : "wide");
  if (step.special) found.push("special");
  if (step.refused) found.push("refused");
  return found;
}
