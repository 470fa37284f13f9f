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
  $("about").textContent = `${reading.tokenizer}, ${digits(reading.tokens)} tokens`;
  strip.clear();
  $("save").disabled = false;
  $("key").hidden = true;
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
  const alone = given && (given.function !== undefined || given.name !== undefined);
  const request = Array.isArray(given) ? { tools: given } : alone ? { tools: [given] } : { ...given };
  request.tools ??= request.functions;
  delete request.functions;
  if (Array.isArray(request.tools)) request.tools = request.tools.map(shaped);
  request.model ??= about.model;
  request.messages ??= [{ role: "user", content: "?" }];
  request.tool_format = $("format").value;
  delete request.stream_options;
  offer(request.tools);
  const choice = $("choice").value;
  const named = !["auto", "required", "none"].includes(choice);
  if (Array.isArray(given) || alone || choice !== "auto") {
    request.tool_choice = named ? { type: "function", function: { name: choice } } : choice;
  }
  if (!request.tools || (Array.isArray(request.tools) && !request.tools.length)) {
    delete request.tools;
    delete request.tool_choice;
  }
  const tokenizer = $("tokenizer").value;
  return { request, mode: $("mode").value, in_reasoning: $("reasoning").checked, tokenizer };
}

// A tool in OpenAI's shape: its function may stand alone, with Anthropic's name for its parameters.
function shaped(tool) {
  if (!tool || tool.name === undefined || tool.function) return tool;
  const { type, input_schema, ...rest } = tool;
  return { type: "function", function: input_schema === undefined ? rest : { parameters: input_schema, ...rest } };
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
  let shown = null;
  try {
    asking?.abort();
    open(await begin(id), 0);
    shown = reading;
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
    if (shown !== null && reading === shown) {
      shown.growing = false; // nobody follows it any more
      verdict();
    }
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
    const record = recordOf(await file.text());
    const text = textOf(record);
    if (!about.formats.includes(record.format)) throw new Error(`there is no format ${record.format}`);
    $("tools").value = JSON.stringify(record.tools ?? [], null, 2);
    $("text").value = text;
    $("format").value = record.format;
    $("mode").value = record.mode === "compat" ? "compat" : record.build === "strict" ? "schema" : "open";
    const opens = about.reasoning[record.format]?.trimEnd();
    $("reasoning").checked = Boolean(opens && record.prompt_tail?.trimEnd().endsWith(opens));
    await ask();
  } catch (error) {
    fail(`The case cannot be read: ${error.message}`);
  }
}

// One object, or the first of several, each on a line of its own.
function recordOf(text) {
  let record = null;
  try {
    record = JSON.parse(text);
  } catch {
    record = JSON.parse(text.split("\n").find((line) => line.trim()) ?? "");
  }
  if (record === null || typeof record !== "object" || Array.isArray(record)) throw new Error("it is no object");
  return record;
}

function textOf({ text, chunks, chunks_hex: hex }) {
  if (typeof text === "string") return text;
  if (Array.isArray(chunks)) return chunks.join("");
  if (!Array.isArray(hex)) throw new Error("it has no text, chunks or chunks_hex");
  return new TextDecoder().decode(Uint8Array.from(hex.join("").match(/../g) ?? [], (pair) => parseInt(pair, 16)));
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
  const key = $("key-value").value.trim();
  if (/[^!-~]/.test(key)) return fail("An API key has letters, digits and signs of ASCII, and no blanks.");
  setKey(key);
  begins();
});
document.addEventListener("key-wanted", () => ($("key").hidden = false));

async function begins() {
  const before = about;
  try {
    about = await get("about");
  } catch (error) {
    fail(error.message);
    if (error.status === 401) $("key-value").select();
    return;
  }
  fail("");
  $("key").hidden = true;
  if (before !== null) return ask(); // another key: the question stays
  $("about").textContent = `${about.model}, ${digits(about.tokens)} tokens`;
  $("format").replaceChildren(...about.formats.map(choiceOf));
  $("format").value = about.format;
  $("mode").replaceChildren(...about.modes.map(choiceOf));
  $("tokenizer").replaceChildren(...about.tokenizers.map(choiceOf));
  offer([]);
  if (!$("tools").value && !$("text").value) example();
}

begins();
