// The steps of one reading, fetched page by page, and what a client has assembled after each.

import { get } from "./api.js";

export const PAGE = 250;
const KEPT = 40; // pages
const TAIL = 4000; // characters of a text that are shown

export class Reading {
  constructor(page) {
    this.session = page.session;
    this.pages = new Map();
    this.asked = new Map();
    this.last = null;
    this.take(page);
  }

  take(page) {
    this.count = page.count;
    this.tokenizer = page.tokenizer;
    this.tokens = page.tokens;
    this.unread = page.unread;
    this.complete = page.complete;
    this.growing = page.growing;
    this.refusal = page.refusal ?? this.refusal;
    this.pages.delete(page.start);
    this.pages.set(page.start, page);
    if (this.pages.size > KEPT) this.pages.delete(this.pages.keys().next().value);
    if (this.last?.page.start === page.start) this.last = null;
  }

  // The step, if its page is here.
  step(place) {
    const start = place - (place % PAGE);
    return this.pages.get(start)?.steps[place - start];
  }

  terminals(place) {
    const page = this.pages.get(place - (place % PAGE));
    return (this.step(place)?.live ?? []).map((index) => page.terminals[index]);
  }

  // Its last token is refused: the place after it is none.
  get refused() {
    return this.unread > 0 || this.refusal !== undefined || Boolean(this.step(this.count - 2)?.refused);
  }

  // Fetches the page of a step that is not here; that of a live turn may be here in part.
  load(place) {
    const start = place - (place % PAGE);
    if (place < 0 || place >= this.count || this.step(place)) return Promise.resolve();
    if (!this.asked.has(start)) this.asked.set(start, this.fetch(start).finally(() => this.asked.delete(start)));
    return this.asked.get(start);
  }

  async fetch(start) {
    this.take(await get(`steps?session=${encodeURIComponent(this.session)}&start=${start}`));
  }

  // For a live turn: what came since.
  refresh() {
    const end = this.count - 1;
    return this.fetch(end - (end % PAGE));
  }

  // What a client has after the step, and what the step added.
  assembled(place) {
    const start = place - (place % PAGE);
    const page = this.pages.get(start);
    let from = start;
    let state = null;
    if (this.last?.page === page && this.last.place < place) {
      state = this.last.state;
      from = this.last.place + 1;
    } else {
      state = structuredClone(page.before);
    }
    let added = null;
    for (let at = from; at <= place; at++) {
      for (const delta of page.steps[at - start].deltas) {
        const target = grow(state, delta);
        if (at === place && target) added = { target, text: (added?.target === target ? added.text : "") + delta.text };
      }
    }
    this.last = { page, place, state };
    return { ...state, added };
  }
}

function grow(state, delta) {
  if (delta.kind === "call") {
    state.calls[delta.index] = { name: delta.name, text: "", length: 0 };
    return null;
  }
  const target = delta.kind === "arguments" ? state.calls[delta.index] : state[delta.kind];
  target.length += delta.text.length;
  target.text += delta.text;
  if (target.text.length > 2 * TAIL) target.text = target.text.slice(-TAIL);
  return target;
}

export function tail(part) {
  const text = part.text.slice(-TAIL);
  return { text, left: part.length - text.length };
}
