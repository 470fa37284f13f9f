"""The backends' errors, each with the sentence that a user reads."""

from pathlib import Path

from larksong.engine.errors import EngineError
from larksong.engine.lexing.path import UNREACHABLE


class ModelError(EngineError):
    """A model that cannot be had."""


class ModelNotFound(ModelError):
    """There is nothing at the path of a model, or the default model cannot be fetched."""

    def __init__(self, model: str | Path, reason: str) -> None:
        super().__init__(f"no model {str(model)!r}: {reason}")


class NotAModel(ModelError):
    """A path that exists and holds no usable model."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} is not a model: {reason}")


class BackendUnavailable(ModelError):
    """A backend that cannot run here."""

    def __init__(self, backend: str, reason: str) -> None:
        super().__init__(f"the {backend} backend cannot be used here: {reason}")


class PromptError(EngineError, ValueError):
    """A prompt that the model cannot take."""


class EmptyPrompt(PromptError):
    """A prompt without tokens."""

    def __init__(self) -> None:
        super().__init__("the prompt has no tokens")


class BudgetTooSmall(EngineError, ValueError):
    """Fewer tokens than any answer takes that ends by itself."""

    def __init__(self, needed: int, tokens: int) -> None:
        self.needed = needed
        self.tokens = tokens
        wanted = f"at least {needed}" if needed < UNREACHABLE else "too many"
        super().__init__(f"a complete answer needs {wanted} tokens, but there is room for {tokens}")


class PromptTooLong(PromptError):
    """A prompt that leaves no room for an answer in the model's context."""

    def __init__(self, tokens: int, context_length: int) -> None:
        self.tokens = tokens
        self.context_length = context_length
        super().__init__(
            f"the prompt has {tokens} tokens; the context of {context_length} leaves no room to answer"
        )


class EmptyMask(EngineError):
    """No token may come, though the turn is not over; the message says why."""


class Refused(EngineError):
    """A token came that its mask had not allowed."""


class SharedFilter(EngineError):
    """A filter was given to a second job while the first one ran: what it knows is of neither."""

    def __init__(self) -> None:
        super().__init__("this filter belongs to a job that is still running: each job needs one of its own")


class BackendFailed(EngineError):
    """The model itself failed, and with it everything that ran."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"the model failed: {type(error).__name__}: {error}")
