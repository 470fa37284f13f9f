// Lark text with its parts in colour.

import { element } from "./dom.js";

const HIGHLIGHTED = 200_000; // characters; what comes after stays plain
const PART =
  /(?<comment>\/\/[^\n]*)|(?<string>"(?:[^"\\\n]|\\.)*"i?)|(?<regex>\/(?:[^\/\\\n]|\\.)+\/[imslux]*)|(?<terminal>\b_?[A-Z][A-Z0-9_]*\b)|(?<rule>\b_?[a-z][a-z0-9_]*\b)/g;

export function showLark(box, text) {
  const drawn = document.createDocumentFragment();
  const coloured = text.slice(0, HIGHLIGHTED);
  let end = 0;
  for (const found of coloured.matchAll(PART)) {
    const kind = Object.keys(found.groups).find((name) => found.groups[name] !== undefined);
    if (found.index > end) drawn.append(coloured.slice(end, found.index));
    drawn.append(element("span", found[0], kind));
    end = found.index + found[0].length;
  }
  drawn.append(text.slice(end));
  box.replaceChildren(drawn);
}
