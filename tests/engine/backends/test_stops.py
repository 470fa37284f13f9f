"""Stop strings in the visible text."""

from hypothesis import given
from hypothesis import strategies as st

from larksong.engine.backends.stops import StopTexts
from larksong.engine.events import CallClose, Content, FunctionOpen, Json
from tests.support.calls import joined
from tests.support.examples import examples


def visible(stops: list[str], pieces: list[bytes]) -> tuple[bytes, bool]:
    texts = StopTexts(stops)
    found = [event for piece in pieces for event in texts.feed((Content(piece),))]
    found += texts.finish()
    return b"".join(event.data for event in found if isinstance(event, Content)), texts.found


@given(
    st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=3),
    st.lists(st.text("abc", max_size=4).map(str.encode), max_size=8),
)
@examples(200)
def test_however_a_text_is_cut_it_ends_before_its_first_stop(stops: list[str], pieces: list[bytes]) -> None:
    text = b"".join(pieces)
    ends = [(text.find(stop.encode()), stop) for stop in stops if stop.encode() in text]
    # The first that is complete decides, and of those that are complete at once the one that begins first.
    shown, found = visible(stops, pieces)
    assert found == bool(ends)
    assert text.startswith(shown)
    if not ends:
        assert shown == text
    else:
        assert not any(stop.encode() in shown for stop in stops)
        assert any(text[len(shown) :].startswith(stop.encode()) for stop in stops)


def test_letters_inside_a_call_are_data() -> None:
    texts = StopTexts(["stop"])
    events = (Content(b"st"), FunctionOpen("f"), Json(b'{"a": "stop"}'), CallClose(), Content(b"op"))
    assert joined((*texts.feed(events), *texts.finish())) == list(events)
    assert not texts.found


def test_without_stops_events_pass_as_they_are() -> None:
    events = (Content(b"a"),)
    assert StopTexts([]).feed(events) is events
