"""Limits on the data of a connection, counted before parsing."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from gateway.mcp import Bucket, Traffic, ValueCounter, has_too_many_values
from gateway.options import UpstreamOptions
from gateway.testing import ManualClock

MESSAGES = UpstreamOptions(max_messages_per_s=10)
"""Options with a burst of forty messages."""


def counted(data: bytes, max_values: int, *cuts: int) -> bool:
    """Return whether *data*, given in pieces that end at *cuts*, has more than *max_values*
    values.
    """
    counter = ValueCounter(max_values)
    bounds = (0, *cuts, len(data))
    return any(counter.add(data[a:b]) for a, b in pairwise(bounds))


def test_token_bucket_allows_its_burst_and_then_its_rate() -> None:
    """When tokens are missing, `take` returns the seconds to wait."""
    clock = ManualClock()
    bucket = Bucket(10, 40, clock=clock)

    assert 0 == bucket.take(40)
    assert pytest.approx(0.5) == bucket.take(5)
    clock.tick(1)
    assert 0 == bucket.take(5)


async def test_too_many_messages_of_a_server_end_the_connection_once() -> None:
    ends: list[str] = []
    traffic = Traffic(MESSAGES, lambda: ends.append("end"), clock=ManualClock())

    admitted = [await traffic.admit() for _ in range(50)]

    assert 40 == sum(admitted)
    assert ["end"] == ends
    assert "max_messages_per_s" in traffic.flood


async def test_number_of_answers_to_requests_is_not_limited() -> None:
    traffic = Traffic(MESSAGES, clock=ManualClock())
    for _ in range(200):
        traffic.expect_answer()
        assert await traffic.admit()

    assert "" == traffic.flood


def test_too_many_unread_answers_end_the_connection() -> None:
    """An answer that the server does not read takes memory."""
    traffic = Traffic(MESSAGES)
    waiting = [traffic.answering() for _ in range(101)]

    allowed = [answering.__enter__() for answering in waiting]

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
def test_json_values_inside_texts_are_not_counted(value: object, count: int) -> None:
    """This holds wherever the bytes are split."""
    data = json.dumps(value).encode()
    for cut in range(len(data)):
        assert not counted(data, count, cut)
        if count:
            assert counted(data, count - 1, cut)


def test_quotation_mark_in_a_comment_does_not_hide_the_next_line() -> None:
    """A stream of events may contain comments between messages."""
    assert counted(b': "\ndata: [{},{},{}]\n', 5)


async def test_long_json_text_counts_as_one_value() -> None:
    text = json.dumps({"a": "x,[{" * 50_000}).encode()

    assert not await has_too_many_values(text, 10)
    assert await has_too_many_values(b"[" + b"{}," * 50_000 + b"{}]", 10)
