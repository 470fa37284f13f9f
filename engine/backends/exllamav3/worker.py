"""The generator's own thread.

exllamav3's `iterate()` blocks for a whole step of all jobs. So it runs here and never on the event loop that
serves HTTP. Requests come in and go out by the methods below, from any thread; what a job writes crosses to
its reader by a `Handover`. A job whose reader is too far behind is taken out of the batch, and comes back
where it was when there is room: exllamav3 requeues long jobs in the same way.

Readers are woken when the next forward pass begins. Then the model computes and the interpreter is free;
before, they would take it from the generator, and every step would take as much longer as all of them work.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from larksong.engine.backends.base import Finish
from larksong.engine.backends.errors import BackendFailed
from larksong.engine.backends.exllamav3.sequence import Item, Sequence
from larksong.engine.backends.handover import Handover, announce

_log = logging.getLogger(__name__)


class Worker:
    """Runs sequences on generators that `make` makes: one, and another one if that breaks."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._generator = make()
        self._waiting: list[Sequence] = []
        self._running: list[Sequence] = []
        self._told: list[Sequence] = []
        self._announced: SimpleQueue[list[Handover[Item]] | None] = SimpleQueue()
        self._changed = threading.Condition()
        self._woken = False
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="larksong-exllamav3", daemon=True)
        self._thread.start()
        threading.Thread(target=self._announce, name="larksong-announcer", daemon=True).start()

    @property
    def generator(self) -> Any:
        """exllamav3's generator, for its figures; not to be driven from outside."""
        return self._generator

    def start(self, sequence: Sequence) -> bool:
        """Run a sequence; False once the worker is closed."""
        with self._changed:
            if not self._closed:
                self._waiting.append(sequence)
                self._changed.notify()
            return not self._closed

    def wake(self) -> None:
        """A reader has gone, or has room again."""
        with self._changed:
            self._woken = True
            self._changed.notify()

    def tell(self) -> None:
        """Wake the readers of the last step; from the generator's thread, when a forward pass begins."""
        told, self._told = self._told, []
        if told:
            self._announced.put([each.handover for each in told if isinstance(each.handover, Handover)])

    def close(self) -> None:
        """End everything and wait for the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while not self._closed:
            with self._changed:
                self._changed.wait_for(self._due)
                self._woken = False
                new, self._waiting = self._waiting, []
            for sequence in new:
                self._enqueue(sequence)
            try:
                self._attend()
                if any(not sequence.paused for sequence in self._running):
                    self._step()
                else:
                    self.tell()
            except Exception as error:
                self._recover(error)
        for sequence in [*self._running, *self._waiting]:
            self._give(sequence, [sequence.end("error", error="the backend was closed")])
        self.tell()
        self._announced.put(None)
        with suppress(Exception):  # a broken one cannot always be closed
            self._clear()

    def _announce(self) -> None:
        """Waking a loop lets go of the interpreter. This thread does so while the generator's waits."""
        while (handovers := self._announced.get()) is not None:
            announce(handovers)

    def _due(self) -> bool:
        return (
            self._closed
            or self._woken
            or bool(self._waiting)
            or any(not sequence.paused for sequence in self._running)
        )

    def _enqueue(self, sequence: Sequence) -> None:
        if sequence.gone:
            return
        try:
            self._generator.enqueue(sequence.job)
        except Exception as error:  # exllamav3 asserts that a job fits its cache
            _log.exception("exllamav3 has refused a request")
            self._give(sequence, [Finish("error", (), f"exllamav3 has refused the request: {error}")])
        else:
            self._running.append(sequence)

    def _attend(self) -> None:
        """Let go of jobs that nobody reads any more; pause and resume those whose readers are slow."""
        for sequence in self._running:
            handover = sequence.handover
            assert handover is not None
            if sequence.gone or sequence.over:
                sequence.over = True
                self._generator.cancel(sequence.job)
            elif sequence.paused and not handover.full:
                sequence.paused = False
                self._generator.pending_jobs.append(sequence.job.prepare_for_requeue())
            elif not sequence.paused and handover.full and self._can_pause(sequence.job):
                sequence.paused = True
                self._generator.cancel(sequence.job)
        self._running = [sequence for sequence in self._running if not sequence.over]

    def _can_pause(self, job: Any) -> bool:
        """Not while it waits for the cache, and not while tokens may be taken back."""
        return job in self._generator.active_jobs and job.checkpoint is None and job.new_tokens > 0

    def _step(self) -> None:
        results = self._generator.iterate()
        self.tell()  # where no forward pass was to be made
        for result in results:
            sequence: Sequence = result["identifier"]
            if sequence.over or sequence.gone:
                continue
            try:
                items = sequence.read(result)
            except Exception as error:
                _log.exception("a sequence failed")
                items = [Finish("error", (), f"{type(error).__name__}: {error}")]
            if items:
                self._give(sequence, items)

    def _recover(self, error: Exception) -> None:
        """The generator is broken: what it ran is lost, what comes later gets a new one."""
        _log.exception("exllamav3 has failed; every running request ends")
        for sequence in self._running:
            self._give(sequence, [sequence.end("error", error=str(BackendFailed(error)))])
        self.tell()
        self._running.clear()
        try:
            self._clear()
            self._generator = self._make()
        except Exception:
            _log.exception("exllamav3 cannot go on; the backend is closed")
            with self._changed:
                self._closed = True

    def _clear(self) -> None:
        self._generator.clear_queue()
        self._generator.close()

    def _give(self, sequence: Sequence, items: list[Item]) -> None:
        sequence.put(items)
        self._told.append(sequence)
