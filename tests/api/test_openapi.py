"""Made-up requests from the OpenAPI document: whatever comes, never a 500."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace

import schemathesis
import schemathesis.openapi
from schemathesis.checks import not_a_server_error

from larksong.api.server import create_app
from larksong.api.settings.settings import Settings
from larksong.api.turns.generation import Model
from larksong.engine.backends.base import Finish, Generation, Step
from larksong.engine.backends.encoding import text_ids
from larksong.grammars import wire_format
from tests.api.serving import Recorded
from tests.support.examples import examples


class _Lasting(Recorded):
    """Stays open: the application begins and ends anew for every request here.

    Its words follow no made-up schema, which is no fault of the server: such a turn goes unconstrained.
    """

    def generate(self, generation: Generation) -> AsyncGenerator[Step | Finish, None]:
        [first, *_] = text_ids(self.tokenizer, self.vocabulary, "Hi.")
        if generation.matcher is not None and not generation.matcher.allows(first):
            generation = replace(generation, matcher=None)
        return super().generate(generation)

    def close(self) -> None:
        pass


_app = create_app([Model(_Lasting("Hi."), wire_format("hermes"))], Settings(max_seconds=20))
schema = schemathesis.openapi.from_asgi("/openapi.json", _app)


@schema.parametrize()
@examples(4)
def test_no_request_makes_the_server_fail(case: schemathesis.Case) -> None:
    if isinstance(case.body, dict) and case.body.get("model") is not None:
        case.body["model"] = "recorded"  # or every body would end at an unknown model
    case.call_and_validate(checks=[not_a_server_error])


def test_the_document_names_every_path() -> None:
    assert set(_app.openapi()["paths"]) == {
        *("/v1/chat/completions", "/v1/completions", "/v1/models", "/v1/models/{name}"),
        *("/v1/messages", "/v1/messages/count_tokens", "/v1/responses"),
        *("/tokenize", "/detokenize", "/health", "/health/live", "/health/ready", "/metrics"),
    }
