"""Items cross from a thread to the event loop in order, and a full queue says so."""

import asyncio
import threading

from larksong.engine.backends.handover import Handover


async def test_items_arrive_in_order_from_another_thread() -> None:
    handover = Handover[int](4, on_space=lambda: None)

    def produce() -> None:
        for number in range(2000):
            handover.put(number)

    thread = threading.Thread(target=produce)
    thread.start()
    assert [await handover.get() for _ in range(2000)] == list(range(2000))
    thread.join()


async def test_the_producer_learns_of_a_full_queue_and_of_new_room() -> None:
    room: list[bool] = []
    handover = Handover[int](2, on_space=lambda: room.append(True))
    handover.put(1)
    assert not handover.full
    handover.put(2)
    assert handover.full
    assert await handover.get() == 1
    assert not handover.full
    assert await handover.get() == 2
    assert room == [True]


def test_a_reader_whose_loop_has_ended_gets_nothing_and_nothing_fails() -> None:
    async def make() -> Handover[int]:
        return Handover[int](2, on_space=lambda: None)

    handover = asyncio.run(make())
    handover.put(1)
    assert not handover.full
