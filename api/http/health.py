"""Health and figures of the server."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST

from larksong.api.http.served import Served

router = APIRouter()

OPEN_PATHS = ("/health", "/health/live", "/health/ready")
"""what needs no API key"""


@router.get("/health")
@router.get("/health/live")
async def live() -> dict[str, str]:
    """Answers while the server works."""
    return {"status": "ok"}


@router.get("/health/ready", response_model=dict[str, str])
async def ready(request: Request) -> Response:
    """200 while new requests are welcome, 503 while the queue is full or the server ends."""
    served: Served = request.app.state.served
    if served.shutdown.begun:
        return JSONResponse({"status": "shutting down"}, 503)
    if served.admission.is_full:
        return JSONResponse({"status": "queue full"}, 503, {"Retry-After": "1"})
    return JSONResponse({"status": "ok"})


@router.get("/metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """The figures in Prometheus's text format."""
    served: Served = request.app.state.served
    served.metrics.running.set(served.admission.running)
    served.metrics.waiting.set(served.admission.waiting)
    return Response(served.metrics.text(), media_type=CONTENT_TYPE_LATEST)
