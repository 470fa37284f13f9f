"""Every wire format: what its masks allow is valid, what it writes is read back, open and strict agree."""

import json
from random import Random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from larksong.engine.engine import Engine
from larksong.engine.events import CallClose, FunctionOpen, ParseEvent
from larksong.engine.packed import allows
from larksong.engine.reading.reader import TextReader
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import CallPolicy, InvalidToolName, Tool, format_names, wire_format
from larksong.grammars.formats.deepseek_dsml import DSML
from tests.support.calls import Call, Turn, read
from tests.support.examples import times
from tests.support.formats import every_format
from tests.support.markers import BY_ID, BY_LETTERS, MARKERS
from tests.support.masks import allowed
from tests.support.schemas import meaning
from tests.support.turns import CALLS, TOOLS
from tests.support.vocabularies import cut_with_markers, text_of, vocabulary
from tests.support.walks import Walker

BOTH = pytest.mark.parametrize("of", [BY_LETTERS, BY_ID], ids=["markers in letters", "markers by id"])
ENGINES = {of: Engine(of) for of in (BY_LETTERS, BY_ID)}
POLICIES = (
    CallPolicy(),
    CallPolicy(required=True),
    CallPolicy(min_calls=2, max_calls=2),
    CallPolicy(required=True, max_calls=1, only="search"),
)
SCHEMAS = {tool.name: meaning(tool.parameters, closed=True) for tool in TOOLS}
ELEMENTS = (
    "qwen3_coder",
    "glm_4_5",
    "glm_4_7",
    "minimax_m2",
    "deepseek_v3_2",
    "deepseek_v4",
    "deepseek_v4_1",
)


def open_reader(name: str, of: Vocabulary, *, in_reasoning: bool = False) -> TextReader:
    wire, engine = wire_format(name), ENGINES[of]
    first, again, on = (
        engine.byte_automaton(wire.open_grammar(TOOLS, of, in_reasoning=inside, continued=continued))
        for inside, continued in ((in_reasoning, False), (False, False), (False, True))
    )
    return TextReader(first, again, on)


def told(events: Any) -> Turn:
    """The turn; JSON that holds raw strings (Gemma's) as the emitter puts it together."""
    from larksong.api.turns.deltas import ArgumentsDelta, CallDelta, ContentDelta, ReasoningDelta
    from larksong.api.turns.emitter import DeltaEmitter

    found = Turn()
    texts: list[str] = []
    for delta in DeltaEmitter().feed(events):
        match delta:
            case ContentDelta(text):
                found.content += text.encode()
            case ReasoningDelta(text):
                found.reasoning += text.encode()
            case CallDelta(_, _, called):
                found.calls.append(Call(called))
                texts.append("")
            case ArgumentsDelta(index, fragment):
                texts[index] += fragment
    for call, text in zip(found.calls, texts, strict=True):
        call.arguments = json.loads(text)
    return found


@every_format
@BOTH
@pytest.mark.parametrize("seed", range(3))
def test_calls_as_the_family_writes_them_are_allowed_and_read_back(
    name: str, of: Vocabulary, seed: int
) -> None:
    wire = wire_format(name)
    matcher = ENGINES[of].matcher(wire.grammar(TOOLS, CallPolicy(), of))
    events: list[ParseEvent] = []
    for token in [*cut_with_markers(of, wire.render_calls(CALLS).encode(), Random(seed)), min(of.eos_ids)]:
        assert allows(matcher.mask(), token)
        events += matcher.advance(token)
    assert matcher.finished
    found = told(events)
    assert [(call.name, call.arguments) for call in found.calls] == CALLS
    assert found.content == found.reasoning == b""
    assert sum(isinstance(event, CallClose) for event in events) == len(CALLS)


@pytest.mark.parametrize("name", ["deepseek_v3_2", "deepseek_v4", "deepseek_v4_1"])
def test_the_token_inside_dsmls_markers_may_be_written_and_is_data_in_values(name: str) -> None:
    of = vocabulary((DSML.encode(),), MARKERS)
    token = 256
    wire = wire_format(name)
    calls = [("write_file", {"path": f"a{DSML}b", "content": f"</{DSML}parameter> </{DSML}invoke>"})]
    ids = cut_with_markers(of, f"Hi {wire.render_calls(calls)}".encode())
    assert ids.count(token) == 11
    matcher = Engine(of).matcher(wire.grammar(TOOLS, CallPolicy(), of))
    events: list[ParseEvent] = []
    for each in ids:
        assert each in allowed(matcher.mask())
        events += matcher.advance(each)
    assert matcher.complete
    assert [(call.name, call.arguments) for call in told([*events, *matcher.finish()]).calls] == calls


@every_format
@BOTH
@pytest.mark.parametrize("seed", range(times(4)))
def test_walks_over_allowed_tokens_are_valid_and_the_open_build_reads_them_alike(
    name: str, of: Vocabulary, seed: int
) -> None:
    wire, policy, rng = wire_format(name), POLICIES[seed % 4], Random(seed)
    in_reasoning = seed % 4 == 1 and wire.reasoning is not None
    matcher = ENGINES[of].matcher(wire.grammar(TOOLS, policy, of, in_reasoning=in_reasoning))

    def compare(at: Any, choices: set[int]) -> None:
        if rng.random() < 0.05:
            assert choices == {token for token in range(of.width) if at.allows(token)}

    # A turn begins with a call that the family could have written, so that walks get into values.
    taken: list[int] = []
    begun = cut_with_markers(of, wire.render_calls(CALLS[4:6]).encode(), Random(seed))
    if policy.only is None and not in_reasoning:
        taken = begun[: rng.randrange(len(begun))]
    for token in taken:
        matcher.advance(token)
    assert matcher.fault is None
    more = Walker(of).walk(matcher.fork(), rng, wander=20, limit=300, visit=compare)
    matcher.rollback(len(taken))
    events = read(matcher, [*taken, *more])
    if not matcher.finished:
        return
    found = told(events)
    assert len(found.calls) >= max(policy.min_calls, int(policy.required))
    assert policy.max_calls is None or len(found.calls) <= policy.max_calls
    for call in found.calls:
        Draft202012Validator(SCHEMAS[call.name]).validate(call.arguments)
    reader = open_reader(name, of, in_reasoning=in_reasoning)
    again: list[ParseEvent] = []
    for token in [*taken, *more]:
        if token in of.eos_ids:
            break
        data = of.tokens[token]
        again += reader.feed(data) if data else reader.token(token)
    assert told([*again, *reader.finish()]) == found
    text = text_of(of, [*taken, *more])
    spelled = sum(text.count(marker.encode()) for marker in MARKERS)
    if spelled == sum(token in of.special.values() for token in [*taken, *more]) - 1:
        # No value or text spells a marker, so that the letters alone say the same.
        by_letters = open_reader(name, BY_LETTERS, in_reasoning=in_reasoning)
        assert told([*by_letters.feed(text), *by_letters.finish()]) == found


@every_format
@BOTH
def test_reasoning_comes_before_required_calls(name: str, of: Vocabulary) -> None:
    wire = wire_format(name)
    if wire.reasoning is None:
        pytest.skip("the family has no reasoning")
    opener, closer = wire.reasoning
    lead = "thought\n" if name == "gemma4" else ""
    after = "<|start|>assistant" if name == "harmony" else "\n\n"
    call = wire.render_calls(CALLS[:2])
    required = CallPolicy(required=True)
    for policy in (CallPolicy(), required):
        if policy is required and of is BY_LETTERS and name != "harmony":
            continue  # in letters the opener is text, and a turn of calls has none
        matcher = ENGINES[of].matcher(wire.grammar(TOOLS, policy, of))
        text = f"{opener}{lead}Well.{closer}{after}{call}"
        found = told(read(matcher, cut_with_markers(of, text.encode())))
        assert (found.reasoning, found.content, len(found.calls)) == (b"Well.", b"", 2)
    # The template has opened reasoning in the prompt.
    assert wire.ends_in_reasoning(f"x{opener}{lead}")
    assert not wire.ends_in_reasoning(f"x{opener}{lead}y{closer}")
    matcher = ENGINES[of].matcher(wire.grammar(TOOLS, required, of, in_reasoning=True))
    found = told(read(matcher, cut_with_markers(of, f"Well.{closer}{after}{call}".encode())))
    assert (found.reasoning, len(found.calls)) == (b"Well.", 2)


@every_format
@BOTH
def test_a_call_may_come_inside_reasoning(name: str, of: Vocabulary) -> None:
    wire = wire_format(name)
    if wire.reasoning is None or name == "harmony":
        pytest.skip("calls never stand in reasoning")
    matcher = ENGINES[of].matcher(wire.grammar(TOOLS, CallPolicy(), of, in_reasoning=True))
    found = told(read(matcher, cut_with_markers(of, f"I look. {wire.render_call(*CALLS[0])}".encode())))
    assert (found.reasoning, len(found.calls)) == (b"I look. ", 1)


@every_format
def test_markers_that_are_tokens_are_masked_inside_values_and_their_letters_are_data(name: str) -> None:
    wire = wire_format(name)
    data = "a <tool_call> </arg_value> </tool_call> [TOOL_CALLS] <tool_call|> <|call|> <think>"
    call = ("write_file", {"path": "p", "content": data})
    text = wire.render_call(*call)
    before, after = text.split(data)
    matcher = ENGINES[BY_ID].matcher(wire.grammar(TOOLS, CallPolicy(required=True), BY_ID))
    events = [e for token in cut_with_markers(BY_ID, before.encode()) for e in matcher.advance(token)]
    for byte in data.encode():
        closers = allowed(matcher.mask()) & {BY_ID.special[marker] for marker in MARKERS}
        assert len(closers) <= 1  # at most what ends the value
        events += matcher.advance(byte)
    events += [e for token in cut_with_markers(BY_ID, after.encode()) for e in matcher.advance(token)]
    assert matcher.fault is None
    assert [(c.name, c.arguments) for c in told([*events, *matcher.finish()]).calls] == [call]


@every_format
def test_a_marker_in_prose_stays_prose(name: str) -> None:
    wire = wire_format(name)
    marker = wire.section_start.strip() or wire.call_start
    if name in ("harmony", "mistral_v11", "mistral_v13", "glm_4_5", "glm_4_7"):
        pytest.skip("in letters the marker alone begins a call")
    reader = open_reader(name, BY_LETTERS)
    text = f"Use {marker} for calls."
    events = [*reader.feed(text.encode()), *reader.finish()]
    assert told(events).content == text.encode()


@every_format
def test_system_text_tells_each_tool_and_how_to_call(name: str) -> None:
    wire = wire_format(name)
    text = wire.system_text(TOOLS)
    for tool in TOOLS:
        assert tool.name in text
        assert tool.description in text
        assert json.dumps(tool.parameters) in text
    assert wire.call_start.strip() in text or name == "llama3_json"
    assert "{tools}" not in text


@pytest.mark.parametrize("name", ELEMENTS)
def test_names_that_would_end_their_own_tag_are_refused(name: str) -> None:
    unfit = ">" if name == "qwen3_coder" else "<"
    for tool in (Tool(f"a{unfit}b"), Tool("f", "", {"properties": {f"a{unfit}b": {}}})):
        with pytest.raises(InvalidToolName):
            wire_format(name).grammar([tool], CallPolicy(), BY_ID)


@every_format
def test_a_format_is_found_by_its_aliases(name: str) -> None:
    wire = wire_format(name)
    for alias in wire.aliases:
        assert wire_format(alias) is wire


@every_format
@BOTH
@pytest.mark.parametrize("called", [("read", "read_file", "read"), ("日本", "日月", "é", "日本")])
@pytest.mark.parametrize("required", [True, False])
def test_names_that_begin_alike_are_told_once(
    name: str, of: Vocabulary, called: tuple[str, ...], required: bool
) -> None:
    nothing: dict[str, object] = {"type": "object", "properties": {}}
    tools = [Tool(each, "", nothing) for each in dict.fromkeys(called)]
    matcher = ENGINES[of].matcher(wire_format(name).grammar(tools, CallPolicy(required=required), of))
    text = wire_format(name).render_calls([(each, {}) for each in called])
    events = [event for token in cut_with_markers(of, text.encode()) for event in matcher.advance(token)]
    assert matcher.fault is None
    assert tuple(event.name for event in events if isinstance(event, FunctionOpen)) == called


def beside_calls(name: str, before: str, between: str, after: str) -> str:
    """A turn of two calls with text beside them; in Harmony the texts are messages."""
    wire = wire_format(name)
    one, two = wire.render_call(*CALLS[6]), wire.render_call(*CALLS[1])
    if name != "harmony":
        return f"{before}{one}{between}{two}{after}"
    said = [f"<|channel|>commentary<|message|>{text}<|end|>" for text in (before, between)]
    last = f"<|channel|>final<|message|>{after}"
    return "<|start|>assistant".join([said[0], one, said[1], two, last])


WITH_TEXT_BETWEEN = [name for name in format_names() if wire_format(name).text_between_calls]


@pytest.mark.parametrize("name", WITH_TEXT_BETWEEN)
@BOTH
def test_text_may_stand_before_between_and_after_calls(name: str, of: Vocabulary) -> None:
    before, between, after = "I look.\n", " And <b>there</b>. ", "Done: <tool_call, </tool_call"
    text = beside_calls(name, before, f"\n{between}" if name != "harmony" else between, after)
    tokens = cut_with_markers(of, text.encode())
    matcher = ENGINES[of].matcher(wire_format(name).grammar(TOOLS, CallPolicy(), of))
    events: list[ParseEvent] = []
    for token in tokens:
        assert token in allowed(matcher.mask())
        events += matcher.advance(token)
    assert matcher.complete
    found = told([*events, *matcher.advance(min(of.eos_ids)), *matcher.finish()])
    assert [(call.name, call.arguments) for call in found.calls] == [CALLS[6], CALLS[1]]
    assert found.content.decode() == before + between + after
    reader = open_reader(name, of)
    again = [e for t in tokens for e in (reader.feed(of.tokens[t]) if of.tokens[t] else reader.token(t))]
    assert told([*again, *reader.finish()]) == found


@pytest.mark.parametrize("name", [name for name in WITH_TEXT_BETWEEN if name != "harmony"])
@BOTH
@pytest.mark.parametrize("blanks", ["\n", "\n\n\n", " ", "\n \n"])
def test_blanks_between_and_after_calls_are_no_content(name: str, of: Vocabulary, blanks: str) -> None:
    tokens = cut_with_markers(of, beside_calls(name, "", blanks, blanks).encode())
    matcher = ENGINES[of].matcher(wire_format(name).grammar(TOOLS, CallPolicy(), of))
    found = told(read(matcher, tokens))
    assert (found.content, len(found.calls)) == (b"", 2)
    reader = open_reader(name, of)
    again = [e for t in tokens for e in (reader.feed(of.tokens[t]) if of.tokens[t] else reader.token(t))]
    assert told([*again, *reader.finish()]) == found


@every_format
@BOTH
@pytest.mark.parametrize(
    "policy", [CallPolicy(required=True), CallPolicy(max_calls=2)], ids=["required", "two at most"]
)
def test_no_text_comes_after_calls_that_are_all_there_may_be(
    name: str, of: Vocabulary, policy: CallPolicy
) -> None:
    matcher = ENGINES[of].matcher(wire_format(name).grammar(TOOLS, policy, of))
    text = wire_format(name).render_calls([CALLS[6], CALLS[1]])
    read(matcher.fork(), cut_with_markers(of, text.encode()))
    for token in cut_with_markers(of, text.encode()):
        matcher.advance(token)
    assert matcher.complete
    assert not matcher.allows(ord("x"))
    assert policy.required or allowed(matcher.mask()) == of.eos_ids


@pytest.mark.parametrize(
    "name", [n for n in format_names() if wire_format(n).reasoning == ("<think>", "</think>")]
)
@BOTH
def test_what_is_read_may_reason_again_after_a_call(name: str, of: Vocabulary) -> None:
    text = f"{wire_format(name).render_call(*CALLS[6])}<think>Well.</think>Yes"
    reader = open_reader(name, of)
    tokens = cut_with_markers(of, text.encode())
    events = [e for t in tokens for e in (reader.feed(of.tokens[t]) if of.tokens[t] else reader.token(t))]
    found = told([*events, *reader.finish()])
    assert (found.reasoning, found.content, len(found.calls)) == (b"Well.", b"Yes", 1)
