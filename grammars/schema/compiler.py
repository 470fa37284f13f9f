"""From a document to nodes and shapes: alternatives multiplied out, conjunctions merged, types told apart.

Each place of a JSON text is a conjunction of schemas, a node. To expand it, its schemas are applied to a
`Draft` until only choices are left (anyOf, oneOf, if, not …); each way to choose gives a draft of its own,
and each draft a shape for each JSON type that it leaves.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any, NamedTuple

from larksong.engine.automata.numbers import NumberBound
from larksong.grammars.errors import Unenforceable
from larksong.grammars.schema.document import (
    ALL_TYPES,
    ANY,
    NEVER,
    Content,
    Document,
    Origin,
    Record,
    Values,
)
from larksong.grammars.schema.drafts import Contains, Draft, Properties, Scopes, Tuple
from larksong.grammars.schema.finish import Finisher
from larksong.grammars.schema.loops import Loops
from larksong.grammars.schema.negation import Negation, negated
from larksong.grammars.schema.options import Options
from larksong.grammars.schema.plain import plain_shapes
from larksong.grammars.schema.shapes import ANYTHING, ANYTHING_SHAPES, Node, Shape
from larksong.grammars.schema.string_formats import LONGEST, PATTERNS, UNDECIDABLE
from larksong.grammars.schema.tags import Tags
from larksong.grammars.schema.unenforceable import CannotEnforce, unresolved

_DEPTH_OF_PROOFS = 12
_CHOICES = frozenset(
    {"anyOf", "oneOf", "allOf", "not", "if", "then", "else", "$ref", "$dynamicRef", "dependentSchemas"}
)
_CHOICES |= {"unevaluatedProperties", "unevaluatedItems"}
_SIMPLE = frozenset({
    "type", "enum", "const", "pattern", "format", "minLength", "maxLength",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
})  # fmt: skip
_KEPT_LEAVES = 4096
_LEAVES: dict[tuple[bool, Content], tuple[Shape, ...]] = {}
_UNCONDITIONAL: Scopes = frozenset()


class Work(NamedTuple):
    """A schema to apply, and the schemas with unevaluated… that it is applied under."""

    schema: int
    scopes: Scopes


class Disjunction(NamedTuple):
    """One of some alternatives has to hold; each is a conjunction."""

    origin: Origin
    alternatives: tuple[tuple[Work, ...], ...]


class Compiler:
    """The nodes of one document. `widened`: the keywords that were dropped since nothing can enforce them."""

    def __init__(self, document: Document, options: Options) -> None:
        self.document = document
        self.options = options
        self.widened: dict[tuple[str, str], str] = {}
        self.dropped: set[Origin] = set()
        self._members: list[frozenset[int]] = [frozenset(), frozenset({NEVER})]
        self._nodes: dict[frozenset[int], Node] = {frozenset(): ANYTHING, frozenset({NEVER}): NEVER}
        self._expanded: dict[Node, tuple[Shape, ...]] = {ANYTHING: ANYTHING_SHAPES, NEVER: ()}
        self._expanding: set[Node] = set()
        self._finisher = Finisher(self)
        self._tags = Tags(document)
        self._loops = Loops(document)

    # -- nodes

    def node(self, schemas: Iterable[int]) -> Node:
        """The node of a conjunction."""
        members = frozenset(schemas)
        if ANY in members:
            members -= {ANY}
        if NEVER in members:
            return NEVER
        node = self._nodes.get(members)
        if node is None:
            if len(self._members) >= self.options.limits.nodes:
                self.document.invalid("", None, f"it has more than {self.options.limits.nodes} places")
            node = self._nodes[members] = len(self._members)
            self._members.append(members)
        return node

    def negated(self, schema: int, origin: Origin) -> int:
        return negated(self.document, schema, origin)

    def rooted(self, origin: Origin) -> Origin:
        """The keyword of the document that `origin` goes back to."""
        record = self.document.records[origin.number]
        return origin if record.origin is None else record.origin

    def shapes(self, node: Node) -> tuple[Shape, ...]:
        """What a node means. Raises `Unenforceable`, or widens, as the options say."""
        found = self._expanded.get(node)
        if found is None:
            self._expanding.add(node)
            try:
                found = self._expanded[node] = self._enforced(node)
            finally:
                self._expanding.discard(node)
        return found

    def union(self, nodes: Iterable[Node]) -> tuple[Shape, ...]:
        """What one of some nodes means."""
        return self._finisher.tidy(shape for node in nodes for shape in self.shapes(node))

    def is_empty(self, node: Node) -> bool:
        """Whether it is plain that no value satisfies a node. False may also mean: not found out yet."""
        if node == NEVER:
            return True
        if node in self._expanding or len(self._expanding) > _DEPTH_OF_PROOFS:
            return False
        return not self.shapes(node)

    def _enforced(self, node: Node) -> tuple[Shape, ...]:
        for schema in self._members[node]:
            self._loops.refuse(schema)
        while True:
            self.document.check_time()
            try:
                return self._expand(node)
            except CannotEnforce as refusal:
                self._widen(refusal)

    def _widen(self, refusal: CannotEnforce) -> None:
        origin = refusal.origin
        record = self.document.records[origin.number]
        while record.origin is not None:
            origin = record.origin
            record = self.document.records[origin.number]
        pointer = f"{record.pointer}/{origin.keyword}"
        if refusal.remote or not self.options.widen or origin in self.dropped:
            raise Unenforceable(
                f"{self.document.where(record.pointer)}: {origin.keyword!r} cannot be enforced: "
                f"{refusal.reason}",
                tool=self.document.tool,
                pointer=pointer,
                keyword=origin.keyword,
            )
        self.dropped.add(origin)
        self.widened[pointer, origin.keyword] = refusal.reason

    # -- alternatives

    def _expand(self, node: Node) -> tuple[Shape, ...]:
        """The shapes of a node; those of schemas without schemas inside are kept for all documents."""
        members = self._members[node]
        if len(members) > 1 or self.dropped:
            return self._multiplied(node)
        record = self.document.records[next(iter(members))]
        plain = plain_shapes(record.keywords, self.options.limits)
        if plain is not None:
            return plain(self, record.keywords)
        if not _is_leaf(record):
            return self._multiplied(node)
        key = (self.options.formats, record.content)
        shapes = _LEAVES.get(key)
        if shapes is None:
            if len(_LEAVES) >= _KEPT_LEAVES:
                _LEAVES.clear()
            shapes = _LEAVES[key] = self._multiplied(node)
        return shapes

    def _multiplied(self, node: Node) -> tuple[Shape, ...]:
        drafts: list[Draft] = []
        works = [Work(schema, _UNCONDITIONAL) for schema in sorted(self._members[node])]
        self._grow(Draft(), works, [], drafts)
        shapes: dict[Shape, None] = {}
        for draft in drafts:
            shapes.update(dict.fromkeys(self._finisher.shapes(draft)))
        return self._finisher.tidy(shapes)

    def _grow(self, draft: Draft, works: list[Work], choices: list[Disjunction], found: list[Draft]) -> None:
        """Apply `works`, then go through all ways to take `choices`."""
        while works:
            work = works.pop()
            known = draft.seen.get(work.schema)
            if known is None:
                draft.seen[work.schema] = work.scopes
                self._apply(draft, work, works, choices)
                if draft.impossible:
                    return
            elif not work.scopes <= known:
                # Applied once more, under another schema that asks what was evaluated.
                draft.seen[work.schema] = known | work.scopes
                self._apply(draft, Work(work.schema, known | work.scopes), works, choices)
        if not choices:
            found.append(draft)
            return
        choice = min(choices, key=lambda each: len(each.alternatives))
        rest = [each for each in choices if each is not choice]
        for i, alternative in enumerate(choice.alternatives, 1):
            branch = draft if i == len(choice.alternatives) else draft.copy()
            self._grow(branch, list(alternative), list(rest), found)
            if len(found) > self.options.limits.alternatives:
                raise CannotEnforce(
                    choice.origin, f"there are more than {self.options.limits.alternatives} alternatives"
                )

    def _apply(self, draft: Draft, work: Work, works: list[Work], choices: list[Disjunction]) -> None:
        number = work.schema
        record = self.document.records[number]
        scopes = work.scopes
        for keyword in ("unevaluatedProperties", "unevaluatedItems"):
            if keyword in record.keywords and Origin(number, keyword) not in self.dropped:
                draft.unevaluated += ((number, keyword, record.keywords[keyword]),)
                scopes |= {number}
        if self._has_members(number, record):
            names = dict(self._kept(number, record, "properties", ()))
            patterns = self._kept(number, record, "patternProperties", ())
            additional = self._kept(number, record, "additionalProperties", None)
            draft.objects.members += (Properties(names, patterns, additional, scopes),)
            if patterns:
                draft.blame["patternProperties"] = Origin(number, "patternProperties")
        if "prefixItems" in record.keywords or "items" in record.keywords:
            prefix, items = record.keywords.get("prefixItems", ()), record.keywords.get("items")
            draft.arrays.tuples += (Tuple(prefix, items, scopes),)
        for keyword, value in record.keywords.items():
            origin = Origin(number, keyword)
            if origin not in self.dropped or keyword == "oneOf":
                self._keyword(draft, origin, value, record, scopes, works, choices)

    def _has_members(self, number: int, record: Record) -> bool:
        wanted = ("properties", "patternProperties", "additionalProperties")
        return any(keyword in record.keywords for keyword in wanted)

    def _kept(self, number: int, record: Record, keyword: str, otherwise: Any) -> Any:
        if Origin(number, keyword) in self.dropped:
            return otherwise
        return record.keywords.get(keyword, otherwise)

    def _keyword(
        self,
        draft: Draft,
        origin: Origin,
        value: Any,
        record: Record,
        scopes: Scopes,
        works: list[Work],
        choices: list[Disjunction],
    ) -> None:
        number, keyword = origin
        match keyword:
            case "type":
                draft.types &= value
            case "never":
                draft.types = frozenset()
            case "enum" | "const":
                self._values(draft, origin, value, choices)
            case "other_values":
                draft.excluded |= {text for text, _ in value.scalars}
                draft.blame["other_values"] = origin
            case "$ref" | "$dynamicRef":
                target = self.document.target(number, keyword, value)
                if target is None:
                    raise unresolved(origin, value)
                works.append(Work(target, scopes))
            case "allOf":
                works += [Work(sub, scopes) for sub in value]
            case "anyOf":
                if scopes:
                    choices.append(self._any_subset(origin, value, scopes))
                elif ANY not in value:
                    choices.append(Disjunction(origin, tuple((Work(sub, scopes),) for sub in value)))
            case "oneOf":
                choices.append(self._one_of(draft, origin, value, record, scopes))
            case "not":
                negation = Negation(self.document, self.rooted(origin), self._is_asserted, self.dropped)
                options = [tuple(Work(sub, _UNCONDITIONAL) for sub in each) for each in negation.of(value)]
                choices.append(Disjunction(origin, tuple(options)))
            case "if":
                self._conditional(origin, value, record, scopes, choices)
            case "dependentSchemas":
                for name, sub in value:
                    absent = self.document.written({"properties": ((name, NEVER),)}, origin)
                    present = self.document.written(
                        {"required": (name,), "type": frozenset({"object"})}, origin
                    )
                    without = (Work(absent, _UNCONDITIONAL),)
                    choices.append(
                        Disjunction(origin, (without, (Work(present, _UNCONDITIONAL), Work(sub, scopes))))
                    )
            case _:
                self._constraint(draft, origin, value, record, scopes)

    def _constraint(self, draft: Draft, origin: Origin, value: Any, record: Record, scopes: Scopes) -> None:
        """A keyword that says something of one JSON type."""
        numbers, strings, arrays, objects = draft.numbers, draft.strings, draft.arrays, draft.objects
        match origin.keyword:
            case "minimum" | "exclusiveMinimum":
                numbers.at_least(NumberBound(value, origin.keyword == "minimum"))
            case "maximum" | "exclusiveMaximum":
                numbers.at_most(NumberBound(value, origin.keyword == "maximum"))
            case "multipleOf":
                numbers.multiples = (*numbers.multiples, value)
                draft.blame["multipleOf"] = origin
            case "not_multiple_of":
                numbers.others = (*numbers.others, value)
                draft.blame["multipleOf"] = origin
            case "minLength":
                strings.size.at_least(value)
            case "maxLength":
                strings.size.at_most(value)
            case "pattern":
                strings.wanted = (*strings.wanted, value)
                draft.blame["pattern"] = origin
            case "not_pattern":
                strings.unwanted = (*strings.unwanted, value)
                draft.blame["pattern"] = origin
            case "format" | "not_format":
                if self._is_asserted(value):
                    if value in UNDECIDABLE:
                        raise CannotEnforce(origin, f"the format {value!r}: {UNDECIDABLE[value]}")
                    draft.blame.setdefault("pattern", origin)
                    if origin.keyword == "format":
                        strings.wanted = (*strings.wanted, PATTERNS[value])
                        if value in LONGEST:
                            strings.size.at_most(LONGEST[value])
                    else:
                        strings.unwanted = (*strings.unwanted, PATTERNS[value])
            case "minItems":
                arrays.size.at_least(value)
            case "maxItems":
                arrays.size.at_most(value)
            case "contains":
                least = record.keywords.get("minContains", 1)
                most = record.keywords.get("maxContains")
                if least or most is not None or scopes:
                    arrays.contains = (*arrays.contains, Contains(value, least, most, scopes))
                    draft.blame["contains"] = origin
            case "uniqueItems":
                arrays.distinct = True
                draft.blame["uniqueItems"] = origin
            case "minProperties":
                objects.size.at_least(value)
                draft.blame["minProperties"] = origin
            case "maxProperties":
                objects.size.at_most(value)
            case "required":
                objects.required = tuple(dict.fromkeys((*objects.required, *value)))
            case "dependentRequired":
                objects.dependents = (*objects.dependents, *value)
            case "propertyNames":
                objects.names = (*objects.names, value)
                draft.blame["propertyNames"] = origin

    def _is_asserted(self, name: str) -> bool:
        return self.options.formats and (name in PATTERNS or name in UNDECIDABLE)

    def _values(self, draft: Draft, origin: Origin, values: Values, choices: list[Disjunction]) -> None:
        scalars = dict(values.scalars)
        if not values.others:
            draft.restrict(scalars)
            return
        # A value that is listed is not evaluated member by member.
        options = [(Work(other, _UNCONDITIONAL),) for other in values.others]
        if scalars:
            only = self.document.written({"enum": Values(values.scalars, ())}, origin)
            options.append((Work(only, _UNCONDITIONAL),))
        choices.append(Disjunction(origin, tuple(options)))

    def _any_subset(self, origin: Origin, value: tuple[int, ...], scopes: Scopes) -> Disjunction:
        """All branches that hold count as evaluated, so each set of them is an alternative of its own."""
        if len(value) > 8:
            raise CannotEnforce(origin, "more than 8 branches under an unevaluated… keyword")
        subsets = (s for size in range(1, len(value) + 1) for s in combinations(value, size))
        return Disjunction(origin, tuple(tuple(Work(sub, scopes) for sub in subset) for subset in subsets))

    def _conditional(
        self, origin: Origin, condition: int, record: Record, scopes: Scopes, choices: list[Disjunction]
    ) -> None:
        then, other = record.keywords.get("then", ANY), record.keywords.get("else", ANY)
        if then == other == ANY and not scopes:
            return
        unless = self.negated(condition, self.rooted(origin))
        choices.append(
            Disjunction(
                origin,
                (
                    (Work(condition, scopes), Work(then, scopes)),
                    (Work(unless, _UNCONDITIONAL), Work(other, scopes)),
                ),
            )
        )

    def _one_of(
        self, draft: Draft, origin: Origin, value: tuple[int, ...], record: Record, scopes: Scopes
    ) -> Disjunction:
        """Each branch without those others that it is not disjoint from anyway."""
        if origin in self.dropped:
            return Disjunction(origin, tuple((Work(sub, scopes),) for sub in value))
        beside = {k: v for k, v in record.keywords.items() if k not in _CHOICES}
        beside["type"] = draft.types
        context = (
            ANY if draft.types == ALL_TYPES and len(beside) == 1 else self.document.written(beside, origin)
        )
        overlapping: dict[int, list[int]] = {i: [] for i in range(len(value))}
        for i, j in combinations(range(len(value)), 2):
            if not self._disjoint(value[i], value[j], context):
                overlapping[i].append(value[j])
                overlapping[j].append(value[i])
        rooted = self.rooted(origin)
        return Disjunction(
            origin,
            tuple(
                (
                    Work(sub, scopes),
                    *(Work(self.negated(other, rooted), _UNCONDITIONAL) for other in overlapping[i]),
                )
                for i, sub in enumerate(value)
            ),
        )

    def _disjoint(self, first: int, second: int, context: int) -> bool:
        if first == second:
            return False
        if self._tags.differ(first, second):
            return True
        try:
            return self.is_empty(self.node((first, second, context)))
        except Unenforceable:
            return False


def _is_leaf(record: Record) -> bool:
    """Whether there is no schema inside, nor in its values."""
    keywords = record.keywords
    return keywords.keys() <= _SIMPLE and not any(
        keywords[each].others for each in ("enum", "const") if each in keywords
    )
