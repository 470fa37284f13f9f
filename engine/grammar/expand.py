"""The readable form of a grammar: one grammar without subroutines, one terminal for each name.

The engine runs a grammar in a form that is quick to build: tools are entered like subroutines, and names
whose values have one type share a terminal. People read, and other tools load, this form. Both allow the same
tokens at every step (a test steps them side by side); when a function's name is certain is told by the
engine's form alone, where one terminal knows all names.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import replace
from itertools import chain, count

from larksong.engine.grammar.attributes import Action
from larksong.engine.grammar.grammar import Grammar, Rule, Sub, Terminal
from larksong.engine.grammar.terminals import Choice, Keys, Literal, Role, TextUntil


def expand(grammar: Grammar) -> Grammar:
    """`grammar` with its sub-grammars inlined and its names told apart."""
    return _split_keys(_inline_values(_inline(grammar)))


def _inline(grammar: Grammar) -> Grammar:
    """Put each sub-grammar in the place of the terminal that enters it, one alternative for each label."""
    called = {
        name
        for rule in grammar.rules
        if any(_opens_function(grammar, name) for name in rule.expansion)
        for name in rule.expansion
    }
    subs = {
        name: terminal.definition
        for name, terminal in grammar.terminals.items()
        if isinstance(terminal.definition, Sub) and name in called
    }
    if not subs:
        return grammar
    rules: list[Rule] = []
    terminals = {name: terminal for name, terminal in grammar.terminals.items() if name not in subs}
    actions = dict(grammar.actions)
    pending: dict[str, Grammar] = {}
    split: dict[tuple[str, object], str] = {}
    for rule in grammar.rules:
        sub = next((name for name in rule.expansion if name in subs), None)
        if sub is None:
            rules.append(rule)
            continue
        # The function's name before it chooses the grammar by its label.
        chooser = next(name for name in rule.expansion if _opens_function(grammar, name))
        terminals.pop(chooser, None)
        choice = grammar.terminals[chooser].definition
        assert isinstance(choice, Choice)
        for text, label in choice.words:
            entered = subs[sub].choose(label)
            name = _free(f"{chooser}_{_terminal_name(str(label))}", terminals)
            terminals[name] = Terminal(name, Choice(((text, label),), choice.prefix))
            split[chooser, label] = name
            start = _free(f"{_rule_name(entered.title)}_arguments", pending)
            pending[start] = entered
            expansion = tuple({sub: start, chooser: name}.get(each, each) for each in rule.expansion)
            rules.append(Rule(rule.origin, expansion))
    for start, entered in pending.items():
        taken = {rule.origin for rule in rules} | pending.keys()
        rules += _merge(entered, start, taken, terminals, actions)
    renamed = {
        name: _with_stops(terminal, lambda each, label: split.get((each, label), each))
        for name, terminal in terminals.items()
    }
    return Grammar(tuple(rules), renamed, actions, grammar.start, grammar.title)


def _with_stops(terminal: Terminal, renamed: Callable[[str, object], str]) -> Terminal:
    """A terminal whose text's stops complete others under new names, by name and the stop's label."""
    definition = terminal.definition
    if not isinstance(definition, TextUntil) or not definition.stops:
        return terminal
    stops = tuple(
        replace(stop, terminals=tuple(renamed(name, stop.label) for name in stop.terminals))
        for stop in definition.stops
    )
    return replace(terminal, definition=replace(definition, stops=stops))


def _is_text(terminal: Terminal) -> bool:
    return isinstance(terminal.definition, TextUntil)


def _opens_function(grammar: Grammar, name: str) -> bool:
    return name in grammar.terminals and grammar.terminals[name].role is Role.FUNCTION_OPEN


def _inline_values(grammar: Grammar) -> Grammar:
    """Put the grammar of a value, which is one whatever comes before it, where it is entered."""
    starts: dict[int, str] = {}
    kept: list[Grammar] = []  # what is numbered by its id has to stay alive
    while subs := {n: t.definition for n, t in grammar.terminals.items() if isinstance(t.definition, Sub)}:
        terminals = {name: terminal for name, terminal in grammar.terminals.items() if name not in subs}
        actions = dict(grammar.actions)
        places: dict[str, str] = {}
        pending: list[tuple[str, Grammar]] = []
        taken = {rule.origin for rule in grammar.rules}
        for name, sub in subs.items():
            entered = sub.choose(None)
            start = starts.get(id(entered))
            if start is None:
                start = starts[id(entered)] = _free(_rule_name(entered.title), taken)
                taken.add(start)
                kept.append(entered)
                pending.append((start, entered))
            places[name] = start
        rules = [
            Rule(rule.origin, tuple(places.get(each, each) for each in rule.expansion))
            for rule in grammar.rules
        ]
        for start, entered in pending:
            known = taken | {rule.origin for rule in rules}
            rules += _merge(entered, start, known, terminals, actions)
        grammar = Grammar(tuple(rules), terminals, actions, grammar.start, grammar.title)
    return grammar


def _merge(
    entered: Grammar, start: str, taken: set[str], terminals: dict[str, Terminal], actions: dict[str, Action]
) -> Iterator[Rule]:
    """The rules of a sub-grammar under names that do not clash with what is there."""
    names = {entered.start: start}
    # What begins an object or array tells the branches of a union apart: it is never shared.
    openers = {rule.expansion[0] for rule in entered.rules if rule.expansion}
    made = {}
    # Texts last: their stops name other terminals.
    for name, terminal in sorted(entered.terminals.items(), key=lambda each: _is_text(each[1])):
        made[name] = _with_stops(terminal, lambda each, label: names.get(each, each))
        known = terminals.get(name)
        opens = (
            name in openers and isinstance(terminal.definition, Literal) and terminal.definition.text in "[{"
        )
        if known is not None and (known != made[name] or opens):
            names[name] = _free(f"{start.upper()}_{name}", {*terminals, *entered.terminals})
    for name in entered.terminals:
        new = names.get(name, name)
        terminals[new] = replace(made[name], name=new)
    for origin in {rule.origin for rule in entered.rules} & taken:
        names.setdefault(origin, _free(f"{start}_{origin}", taken))
    for origin, action in entered.actions.items():
        actions[names.get(origin, origin)] = action
    for rule in entered.rules:
        yield Rule(
            names.get(rule.origin, rule.origin), tuple(names.get(each, each) for each in rule.expansion)
        )


def _split_keys(grammar: Grammar) -> Grammar:
    """One terminal, and one alternative, for each name."""
    terminals = dict(grammar.terminals)
    split: dict[str, list[str]] = {}
    for rule in grammar.rules:
        for name in rule.expansion:
            terminal = grammar.terminals.get(name)
            if terminal is None or not isinstance(terminal.definition, Keys) or name in split:
                continue
            split[name] = []
            owner = rule.origin.upper().removesuffix("_MEMBER").removesuffix("_PARAMETER")
            for text, member in terminal.definition.words:
                wanted = single = f"{owner}__{_terminal_name(member.name)}"
                while single in terminals:
                    single = f"{wanted}_{len(terminals)}"
                split[name].append(single)
                words = Keys(((text, member),))
                terminals[single] = replace(terminal, name=single, definition=words)
    for name in split:
        del terminals[name]
    rules = [each for rule in grammar.rules for each in _alternatives(rule, split)]
    return Grammar(tuple(rules), terminals, grammar.actions, grammar.start, grammar.title)


def _alternatives(rule: Rule, split: Mapping[str, list[str]]) -> Iterator[Rule]:
    keys = next((name for name in rule.expansion if name in split), None)
    if keys is None:
        yield rule
        return
    for single in split[keys]:
        yield Rule(rule.origin, tuple(single if name == keys else name for name in rule.expansion))


def _free(wanted: str, taken: Container[str]) -> str:
    """`wanted`, numbered if it is taken: different names of tools may be written alike."""
    names = chain([wanted], (f"{wanted}_{number}" for number in count(2)))
    return next(name for name in names if name not in taken)


def _rule_name(text: str) -> str:
    name = "".join(c if c.isascii() and c.isalnum() else "_" for c in text.lower()).strip("_")
    return name if name[:1].isalpha() else f"x{name}"


def _terminal_name(text: str) -> str:
    return _rule_name(text).upper()
