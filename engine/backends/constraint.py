"""What keeps one sequence to its grammar and its budgets: put together once, for all backends."""

from __future__ import annotations

from typing import NamedTuple

from larksong.engine.backends.base import Generation
from larksong.engine.backends.errors import BudgetTooSmall, EmptyPrompt, PromptError, PromptTooLong
from larksong.engine.backends.thinking import Thinking
from larksong.engine.budget import Budgeted
from larksong.engine.cursor import Cursor
from larksong.engine.vocabulary import Vocabulary


class Constraint(NamedTuple):
    """The cursor of a sequence, None where anything may come, and the most tokens that it may write."""

    cursor: Cursor | None
    tokens: int


def constrain(generation: Generation, vocabulary: Vocabulary, context_length: int) -> Constraint:
    """The matcher of a generation, under its budgets.

    Raises PromptError for a prompt that the vocabulary or the context cannot hold, BudgetTooSmall where the
    answer has to be finished within fewer tokens than it takes.
    """
    tokens = _tokens_left(generation.prompt, generation.max_tokens, vocabulary, context_length)
    matcher = generation.matcher
    if matcher is None:
        return Constraint(None, tokens)
    cursor: Cursor = matcher
    if generation.finish_within_budget:
        if (needed := matcher.needed()) > tokens:
            raise BudgetTooSmall(needed, tokens)
        cursor = Budgeted(matcher, tokens)
    if generation.reasoning_budget is not None:
        cursor = Thinking(generation.reasoning_budget, cursor)
    return Constraint(cursor, tokens)


class BudgetReport(NamedTuple):
    """What a budget of tokens has to say in the end; see `Finish.finished_calls` and `Budgeted.limited`."""

    finished_calls: tuple[int, ...] | None = None
    limited: bool = False


def budget_report(cursor: Cursor | None) -> BudgetReport:
    """The report of the budget that `constrain` has put round a matcher, if any, where it stands now."""
    if isinstance(cursor, Thinking):
        cursor = cursor.inner
    if not isinstance(cursor, Budgeted):
        return BudgetReport()
    return BudgetReport(cursor.finished_calls, cursor.limited)


def _tokens_left(
    prompt: tuple[int, ...], max_tokens: int, vocabulary: Vocabulary, context_length: int
) -> int:
    if not prompt:
        raise EmptyPrompt
    if len(prompt) >= context_length:
        raise PromptTooLong(len(prompt), context_length)
    if not 0 <= min(prompt) <= max(prompt) < vocabulary.width:
        raise PromptError(f"the prompt holds token ids outside the model's 0 to {vocabulary.width - 1}")
    return min(max_tokens, context_length - len(prompt))
