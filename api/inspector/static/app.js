// The page: a question on the left, its reading on the right.

import { get, getText, post, setKey } from "./api.js";
import { $, digits, element, fail } from "./dom.js";
import { showLark } from "./lark.js";
import { Live, begin, keepUp } from "./live.js";
import { showStep } from "./panels.js";
import { Reading } from "./reading.js";
import { Strip } from "./strip.js";

const TYPING = 200; // ms without a key after which a text is read
let about = null;
let reading = null;
let place = 0;
let waiting = null;
let asking = null;

const strip = new Strip($("strip"), go);
new Live($("live"), $("turns"), follow);

// --- stepping ---

function go(to) {
  if (reading === null) return;
  place = Math.max(0, Math.min(to, reading.count - 1));
  $("place").max = reading.count - 1;
  $("place").value = place;
  $("number").textContent = `${place + 1} of ${reading.count}`;
  const wanted = place;
  const [start, end] = Strip.around(reading, place);
  const missing = [place, start, end - 1].filter((at) => !reading.step(at));
  if (reading.step(place)) draw();
  if (!missing.length) return;
  const shown = reading;
  Promise.all(missing.map((at) => shown.load(at)))
    .then(() => shown === reading && wanted === place && draw())
    .catch((error) => fail(error.message));
}

function draw() {
  if (!reading.step(place)) return;
  showStep(reading, place);
  strip.show(reading, place);
}

function open(page, at) {
  reading = new Reading(page);
  strip.clear();
  $("save").disabled = false;
  stale(false);
  verdict();
  go(at ?? 0);
}

// What is shown may be the reading of an earlier question.
function stale(is) {
  $("steps").classList.toggle("stale", is);
}

function verdict() {
  const { refused, refusal, complete, growing, unread } = reading;
  let text = growing ? "running" : complete ? "a whole turn" : "allowed so far, but not a whole turn";
  if (refused) text = unread ? `refused; ${unread} more tokens were not read` : "refused";
  for (const each of refusal?.wanted ?? []) {
    const whose = each.in_request ? "request" : (each.tool ?? "");
    const place = `${whose} ${each.pointer || "at its root"}`.trim();
    text += `\n${each.pointer.endsWith(each.keyword) ? "" : `${each.keyword}: `}${each.message} (${place})`;
  }
  $("verdict").textContent = text;
  $("verdict").className = refused ? "bad" : complete ? "good" : "";
}

// --- the question ---

function question() {
  const text = $("tools").value.trim();
  let given = [];
  try {
    given = text ? JSON.parse(text) : [];
  } catch (error) {
    throw new Error(`The tools are not JSON: ${error.message}`);
  }
  const request = Array.isArray(given) ? { tools: given } : { ...given };
  const wrap = (tool) => (tool && tool.name !== undefined && !tool.function ? { type: "function", function: tool } : tool);
  if (Array.isArray(request.tools)) request.tools = request.tools.map(wrap);
  request.model ??= about.model;
  request.messages ??= [{ role: "user", content: "?" }];
  request.tool_format = $("format").value;
  delete request.stream_options;
  offer(request.tools);
  const choice = $("choice").value;
  const named = !["auto", "required", "none"].includes(choice);
  if (Array.isArray(given) || choice !== "auto") {
    request.tool_choice = named ? { type: "function", function: { name: choice } } : choice;
  }
  if (Array.isArray(request.tools) && !request.tools.length) {
    delete request.tools;
    delete request.tool_choice;
  }
  const tokenizer = $("tokenizer").value;
  return { request, mode: $("mode").value, in_reasoning: $("reasoning").checked, tokenizer };
}

// The names of tools as choices.
function offer(tools) {
  const names = ["auto", "required", "none"];
  for (const tool of Array.isArray(tools) ? tools : []) names.push(String(tool?.function?.name ?? ""));
  const known = [...$("choice").options].map((option) => option.value);
  if (JSON.stringify(known) === JSON.stringify(names)) return;
  const chosen = $("choice").value;
  $("choice").replaceChildren(...names.map(choiceOf));
  $("choice").value = names.includes(chosen) ? chosen : "auto";
}

function choiceOf(name) {
  const option = element("option", name);
  option.value = name;
  return option;
}

async function ask() {
  clearTimeout(waiting);
  asking?.abort();
  const mine = (asking = new AbortController());
  try {
    const asked = question();
    const followed = reading === null || place >= reading.count - (reading.refused ? 2 : 1);
    const page = await post("read", { ...asked, text: $("text").value }, mine.signal);
    fail("");
    open(page, followed ? page.count - 1 : Math.min(place, page.count - 1));
    if (followed && reading.refused) go(reading.count - 2);
    if ($("grammar").open) await showGrammar();
  } catch (error) {
    if (error.name === "AbortError") return;
    fail(error.message);
    stale(true);
  }
}

async function showGrammar() {
  try {
    showLark($("lark"), (await post("grammar", question())).lark);
  } catch (error) {
    showLark($("lark"), "");
    fail(error.message);
  }
}

function soon() {
  clearTimeout(waiting);
  waiting = setTimeout(ask, TYPING);
}

// --- live turns and cases ---

async function follow(id) {
  try {
    asking?.abort();
    open(await begin(id), 0);
    const shown = reading;
    go(reading.count - 1);
    await keepUp(
      shown,
      () => reading === shown,
      () => {
        verdict();
        // Whoever looks at the last step goes on with the turn; whoever stepped back stays there.
        go(place >= Number($("place").max) ? shown.count - 1 : place);
      },
    );
  } catch (error) {
    fail(error.message);
  }
}

async function save() {
  try {
    const line = await getText(`case?session=${encodeURIComponent(reading.session)}`);
    const link = element("a");
    link.href = URL.createObjectURL(new Blob([line], { type: "application/jsonl" }));
    link.download = "case.jsonl";
    link.click();
    URL.revokeObjectURL(link.href);
  } catch (error) {
    fail(error.message);
  }
}

async function openCase(file) {
  try {
    const record = JSON.parse((await file.text()).split("\n").find((line) => line.trim()) ?? "");
    $("tools").value = JSON.stringify(record.tools ?? [], null, 2);
    $("text").value = record.text ?? (record.chunks ?? []).join("");
    if (about.formats.includes(record.format)) $("format").value = record.format;
    $("mode").value = record.mode === "compat" ? "compat" : record.build === "strict" ? "schema" : "open";
    $("reasoning").checked = Boolean(record.prompt_tail);
    await ask();
  } catch (error) {
    fail(`The case cannot be read: ${error.message}`);
  }
}

function example() {
  $("tools").value = JSON.stringify(about.example.tools, null, 2);
  $("text").value = about.example.texts[$("format").value];
  ask();
}

// --- beginning ---

const KEYS = {
  ArrowLeft: () => place - 1,
  ArrowRight: () => place + 1,
  PageUp: () => place - 20,
  PageDown: () => place + 20,
  Home: () => 0,
  End: () => reading.count - 1,
};

document.addEventListener("keydown", (event) => {
  const writes = event.target.closest?.("textarea, input, select, pre");
  if (reading === null || writes || event.ctrlKey || event.metaKey || event.altKey || !(event.key in KEYS)) return;
  event.preventDefault();
  go(KEYS[event.key]());
});

$("first").addEventListener("click", () => go(0));
$("back").addEventListener("click", () => go(place - 1));
$("forward").addEventListener("click", () => go(place + 1));
$("last").addEventListener("click", () => go(reading?.count - 1));
$("place").addEventListener("input", () => go(Number($("place").value)));
for (const id of ["tools", "text"]) $(id).addEventListener("input", soon);
for (const id of ["format", "mode", "tokenizer", "choice", "reasoning"]) $(id).addEventListener("change", ask);
$("grammar").addEventListener("toggle", () => $("grammar").open && showGrammar());
$("example").addEventListener("click", example);
$("save").addEventListener("click", save);
$("open").addEventListener("change", () => {
  const [file] = $("open").files;
  if (file) openCase(file);
  $("open").value = "";
});
$("key").addEventListener("submit", (event) => {
  event.preventDefault();
  setKey($("key-value").value);
  begins();
});

async function begins() {
  try {
    about = await get("about");
  } catch (error) {
    $("key").hidden = error.status !== 401;
    fail(error.message);
    return;
  }
  fail("");
  $("key").hidden = true;
  $("about").textContent = `${about.model}, ${digits(about.tokens)} tokens`;
  $("format").replaceChildren(...about.formats.map(choiceOf));
  $("format").value = about.format;
  $("mode").replaceChildren(...about.modes.map(choiceOf));
  $("tokenizer").replaceChildren(...about.tokenizers.map(choiceOf));
  offer([]);
  if (!$("tools").value && !$("text").value) example();
}

begins();
