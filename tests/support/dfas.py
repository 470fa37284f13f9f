"""Running byte automata, and checking what every one of them must keep."""

from larksong.engine.automata.dfa import DEAD, DFA


def reach(dfa: DFA, data: bytes) -> int:
    """The state after `data`, or DEAD."""
    state = dfa.start
    for byte in data:
        state = dfa.row(state)[byte]
        if state == DEAD:
            break
    return state


def matches(dfa: DFA, data: bytes) -> bool:
    state = reach(dfa, data)
    return state != DEAD and dfa.accepts(state)


def states(dfa: DFA) -> list[int]:
    """All states that are reached; the automaton must be finite and small."""
    found = [dfa.start]
    seen = set(found)
    for state in found:
        new = set(dfa.row(state)) - {DEAD} - seen
        seen |= new
        found += sorted(new)
    return found


def dead_ends(dfa: DFA) -> set[int]:
    """Reached states from which no accepting one is reached: a mask could lead into them."""
    reached = states(dfa)
    live = {state for state in reached if dfa.accepts(state)}
    while more := {state for state in reached if state not in live and not live.isdisjoint(dfa.row(state))}:
        live |= more
    return set(reached) - live
