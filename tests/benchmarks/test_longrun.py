"""Objects that remain after many searches, reconnects and sessions."""

from __future__ import annotations

import sys

import pytest

from benchmarks.longrun import run
from gateway.options import CacheOptions

SMALL = CacheOptions(result_items=5, embedding_items=5, normalized_items=5)
SLACK = 4
"""Objects that libraries keep at times; a leak would add one per use in the second part."""


@pytest.mark.skipif(sys.platform == "win32", reason="it counts open files as Linux does")
async def test_second_part_leaves_no_more_objects_than_the_first() -> None:
    """Each part has 200 searches, five reconnects and sessions. The long form measures memory."""
    figures = await run(400, 10, 10, parts=2, cache=SMALL)

    first, last = ({name: values[part] for name, values in figures.items()} for part in (1, -1))
    assert 0 == last["tasks"] - first["tasks"]
    assert 0 == last["files"] - first["files"]
    assert last["threads"] <= first["threads"] + 1
    assert last["objects"] <= first["objects"] + SLACK, figures["objects"]
