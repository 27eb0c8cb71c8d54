"""What a connection may send, counted before anything is parsed."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from gateway.mcp import Bucket, Traffic, ValueCounter, has_too_many_values
from gateway.options import UpstreamOptions
from gateway.testing import ManualClock

MESSAGES = UpstreamOptions(max_messages_per_s=10)
"""Forty at once."""


def counted(data: bytes, max_values: int, *cuts: int) -> bool:
    """Whether *data*, cut at *cuts*, has too many values."""
    counter = ValueCounter(max_values)
    bounds = (0, *cuts, len(data))
    return any(counter.add(data[a:b]) for a, b in pairwise(bounds))


def test_a_bucket_allows_its_burst_and_then_its_rate() -> None:
    """A debt is told in seconds."""
    clock = ManualClock()
    bucket = Bucket(10, 40, clock=clock)

    assert 0 == bucket.take(40)
    assert pytest.approx(0.5) == bucket.take(5)
    clock.tick(1)
    assert 0 == bucket.take(5)


async def test_more_messages_than_the_rate_end_the_connection_once() -> None:
    """The reason names the option."""
    ends: list[str] = []
    traffic = Traffic(MESSAGES, lambda: ends.append("end"), clock=ManualClock())

    admitted = [await traffic.admit() for _ in range(50)]

    assert 40 == sum(admitted)
    assert ["end"] == ends
    assert "max_messages_per_s" in traffic.flood


async def test_answers_to_requests_are_never_too_many() -> None:
    """A fast server that is asked a lot is no flood."""
    traffic = Traffic(MESSAGES, clock=ManualClock())
    for _ in range(200):
        traffic.expect_answer()
        assert await traffic.admit()

    assert "" == traffic.flood


def test_answers_that_nobody_reads_end_the_connection() -> None:
    """Each holds memory for as long as it waits."""
    traffic = Traffic(MESSAGES)
    waiting = [traffic.answering() for _ in range(101)]

    allowed = [each.__enter__() for each in waiting]

    assert [True] * 100 + [False] == allowed
    assert "does not read" in traffic.flood


@pytest.mark.parametrize(
    ("value", "count"),
    [
        ([{}] * 9, 18),
        ([1, 2, 3], 3),
        ({"a": "{[,", 'b"\\': ',\\",'}, 2),
        ('"' * 40 + "," * 40 + "\\", 0),
    ],
)
def test_values_are_counted_and_texts_are_not(value: object, count: int) -> None:
    """A table in a text is one value, wherever the bytes are cut."""
    data = json.dumps(value).encode()
    for cut in range(len(data)):
        assert not counted(data, count, cut)
        if count:
            assert counted(data, count - 1, cut)


def test_a_quotation_mark_in_a_comment_hides_nothing_of_the_next_line() -> None:
    """A stream of events may hold any line beside the message."""
    assert counted(b': "\ndata: [{},{},{}]\n', 5)


async def test_a_long_text_is_a_message_of_one_value() -> None:
    """Only what may have too many values is looked at at all."""
    text = json.dumps({"a": "x,[{" * 50_000}).encode()

    assert not await has_too_many_values(text, 10)
    assert await has_too_many_values(b"[" + b"{}," * 50_000 + b"{}]", 10)
