"""What the page asks for."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Response

from larksong.api.errors import ApiError
from larksong.api.http.served import Served
from larksong.api.inspector import reader
from larksong.api.inspector.cutting import SINGLE_BYTES
from larksong.api.inspector.example import example
from larksong.api.inspector.live import LiveTurns
from larksong.api.inspector.schemas import About, GrammarText, LiveShape, Page, Question, TextQuestion
from larksong.api.inspector.sessions import Sessions
from larksong.api.runtime.readable_json import readable_json
from larksong.api.turns.model import Model
from larksong.grammars import format_names, wire_format

PAGE = 250  # steps that come at once


def router(served: Served, live: LiveTurns) -> APIRouter:
    """The routes of a server whose turns `live` follows."""
    routes = APIRouter(prefix="/inspector", include_in_schema=False)
    sessions = Sessions()

    def model(tokenizer: str | None = None) -> Model:
        """The one of this name; the first where none is meant."""
        if tokenizer in (None, SINGLE_BYTES):
            return next(iter(served.models.values()))
        return served.model(tokenizer)

    @routes.get("/api/about")
    async def about() -> About:
        """What there is to choose from."""
        return {
            "model": model().name,
            "format": model().wire_format.name,
            "formats": list(format_names()),
            "reasoning": {name: reader.prompt_tail(wire_format(name)) for name in format_names()},
            "modes": ["schema", "open", "compat"],
            "tokenizers": [*served.models, SINGLE_BYTES],
            "tokens": model().backend.vocabulary.width,
            "example": example(),
        }

    @routes.post("/api/grammar")
    async def grammar(body: Question) -> GrammarText:
        """The grammar of some tools."""
        asked = model(body.tokenizer)
        return {"lark": await asyncio.to_thread(reader.grammar_text, body, asked, served.settings)}

    @routes.post("/api/read")
    async def read(body: TextQuestion) -> Page:
        """Read a text; the first steps."""
        asked = model(body.tokenizer)
        reading = await asyncio.to_thread(reader.read_text, body, asked, served.settings)
        return await asyncio.to_thread(reading.page, sessions.add(reading), 0, PAGE)

    @routes.get("/api/steps")
    async def steps(session: str, start: Annotated[int, Query(ge=0)] = 0) -> Page:
        """Some steps of a reading, for a live turn as far as it has come."""
        reading = await asyncio.to_thread(sessions.get, session)
        return await asyncio.to_thread(reading.page, session, start, PAGE)

    @routes.get("/api/case")
    async def case(session: str) -> Response:
        """A reading as a line for `larksong parse`."""
        found = (await asyncio.to_thread(sessions.get, session)).as_case()
        return Response(readable_json(found) + "\n", media_type="application/jsonl")

    @routes.get("/api/live")
    async def turns() -> list[LiveShape]:
        """The server's last turns."""
        return [turn.shape() for turn in live.all()]

    @routes.post("/api/live/{id}")
    async def follow(id: str) -> Page:
        """Begin to read a turn along."""
        turn = live.get(id)
        if turn is None:
            raise ApiError("This turn is not kept any more.", status=404, param="id", code="turn_gone")
        session = sessions.add(reader.follow(turn), turn)
        reading = await asyncio.to_thread(sessions.get, session)
        return await asyncio.to_thread(reading.page, session, 0, PAGE)

    return routes
