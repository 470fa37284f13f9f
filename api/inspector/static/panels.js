// What is known of the current step.

import { $, digits, element, visible } from "./dom.js";
import { tail } from "./reading.js";

const LONGEST = 300; // characters of a terminal's definition

export function showStep(reading, place) {
  const step = reading.step(place);
  const number = `${digits(place + 1)} of ${digits(reading.count)}`;
  $("token").textContent =
    step.token === null ? `${number}: the end` : `${number}: ${visible(step.text) || "∅"}  (token ${step.token})`;
  showMask(step, reading.tokens, reading.refused && place === reading.count - 1);
  showTerminals(reading.terminals(place));
  $("events").replaceChildren(...step.events.map((event) => element("li", JSON.stringify(event))));
  $("deltas").replaceChildren(...step.deltas.map((delta) => element("li", JSON.stringify(delta))));
  showAssembled(reading.assembled(place));
}

function showMask(step, width, behind) {
  const known = step.allowed !== undefined;
  $("meter").hidden = !known;
  $("few").textContent = "";
  if (!known) {
    $("allowed").textContent = behind
      ? "the token before is refused: nothing was read from here on"
      : "no mask: nothing was enforced here";
    return;
  }
  $("meter").value = Math.log(step.allowed) / Math.log(width);
  const tokens = `${digits(step.allowed)} of ${digits(width)} tokens may come`;
  $("allowed").textContent = `${tokens}${step.allowed === 1 ? ": forced" : ""}; the stack is ${step.stack} deep`;
  if (step.few) $("few").textContent = step.few.map((text) => visible(text)).join("  ");
}

function showTerminals(terminals) {
  $("live-terminals").hidden = !terminals.length;
  $("terminals").replaceChildren(
    ...terminals.map(({ name, role, text }) => {
      const row = element("tr");
      const shown = text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
      row.append(element("td", name), element("td", role), element("td", shown));
      return row;
    }),
  );
}

function showAssembled({ content, reasoning, calls, added }) {
  const parts = [];
  if (reasoning.length) parts.push(["reasoning", reasoning]);
  if (content.length) parts.push(["content", content]);
  const skipped = Math.max(0, calls.length - 8);
  if (skipped) parts.push([`${skipped} calls before`, null]);
  calls.slice(skipped).forEach((call, index) => parts.push([`call ${skipped + index}: ${call.name}`, call]));
  const drawn = document.createDocumentFragment();
  for (const [title, part] of parts) {
    drawn.append(element("h3", title));
    if (part) drawn.append(textOf(part, added?.target === part ? added.text : ""));
  }
  if (!parts.length) drawn.append(element("p", "nothing yet"));
  $("assembled").replaceChildren(drawn);
}

function textOf(part, added) {
  const { text, left } = tail(part);
  const box = element("pre", left > 0 ? `… ${digits(left)} characters before …\n` : "");
  const fresh = added.slice(-text.length);
  box.append(fresh ? text.slice(0, -fresh.length) : text);
  if (fresh) box.append(element("mark", fresh));
  return box;
}
