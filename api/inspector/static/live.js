// The turns that the server runs: a list, and one that is followed while it grows.

import { get, post } from "./api.js";
import { element } from "./dom.js";

const LIST_EVERY = 1000; // ms
const STEP_EVERY = 150;

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export class Live {
  constructor(details, list, follow) {
    this.details = details;
    this.list = list;
    this.follow = follow;
    details.addEventListener("toggle", () => details.open && this.watch());
  }

  async watch() {
    if (this.watching) return;
    this.watching = true;
    while (this.details.open) {
      try {
        this.show(await get("live"));
      } catch (error) {
        this.shown = null;
        this.list.replaceChildren(element("li", error.message));
      }
      await pause(LIST_EVERY);
    }
    this.watching = false;
  }

  show(turns) {
    const key = JSON.stringify(turns);
    if (key === this.shown) return; // so that a focused button stays
    this.shown = key;
    const focused = document.activeElement?.dataset?.turn;
    const rows = turns.map((turn) => {
      const when = new Date(turn.began * 1000).toLocaleTimeString();
      const tools = turn.tools.length ? turn.tools.join(", ") : "no tools";
      const button = element("button", `${when} ${turn.model}, ${turn.format}, ${turn.tokens} tokens, ${turn.ended ?? "running"}: ${tools}`);
      button.type = "button";
      button.dataset.turn = turn.id;
      button.addEventListener("click", () => this.follow(turn.id));
      const row = element("li");
      row.append(button);
      return row;
    });
    this.list.replaceChildren(...(rows.length ? rows : [element("li", "none yet")]));
    if (focused) this.list.querySelector(`[data-turn="${CSS.escape(focused)}"]`)?.focus();
  }
}

export const begin = (id) => post(`live/${encodeURIComponent(id)}`, {});

// Calls `grown` whenever a reading has more, until it ends or `current` says that it is not shown any more.
export async function keepUp(reading, current, grown) {
  while (reading.growing && current()) {
    await pause(STEP_EVERY);
    if (!current()) return;
    const before = reading.count;
    await reading.refresh();
    if (reading.count !== before || !reading.growing) grown();
  }
}
