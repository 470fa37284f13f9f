// Elements from values. Whatever a model or a user wrote is only ever text: nothing here reads markup.

export const $ = (id) => document.getElementById(id);

export function element(name, text = "", className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

// A number with commas. One formatter for all of them: making one takes longer than a step may.
const NUMBERS = new Intl.NumberFormat("en");
export const digits = (number) => NUMBERS.format(number);

// A token as people can see it: line ends, blanks at its sides and control characters as pictures.
export function visible(text) {
  return text
    .replace(/\n/g, "⏎")
    .replace(/\t/g, "⇥")
    .replace(/^ +| +$/g, (blanks) => "·".repeat(blanks.length))
    .replace(/[\u0000-\u001f]/g, (found) => String.fromCharCode(0x2400 + found.charCodeAt(0)))
    .replace(/[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

export function fail(message) {
  $("error").textContent = message;
  $("error").hidden = !message;
}
