"""`POST /v1/responses`."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from larksong.api.http.answers import Answering, answer
from larksong.api.http.body_json import BodyRoute
from larksong.api.http.served import Served
from larksong.api.responses.objects import ResponseObject
from larksong.api.responses.requests import translated
from larksong.api.responses.schemas import ResponsesRequest
from larksong.api.responses.writer import ResponseWriter
from larksong.api.turns.totals import Totals
from larksong.api.turns.turn import Turn

router = APIRouter(route_class=BodyRoute)


@router.post("/v1/responses", response_model=ResponseObject)
async def responses(body: ResponsesRequest, request: Request) -> Response:
    """The model's response, whole or (`stream`) while it is being written. Nothing is stored."""
    served: Served = request.app.state.served
    model = served.model(body.model)
    translation = translated(body)

    def answering(turns: list[Turn]) -> Answering:
        totals = Totals(turns[0].plan.prompt_tokens)
        writer = ResponseWriter(body, translation, model, totals)
        if body.stream:
            return Answering(totals, stream=writer.events(turns[0]), form=writer.form)
        return Answering(totals, whole=writer.whole(turns[0]))

    format = body.tool_format or model.wire_format.name
    return await answer(
        request, served, model, lambda: translation.prepared(served, model), answering, format=format
    )
