"""What the wrapper costs a conversation: tokens of definitions, the prompt cache, CPU.

    python -m benchmarks.conversation --data DIR --json
    python -m benchmarks.conversation --data DIR --soak 60

Everything goes through the real client to a real server on this machine. CPU is that of the
asking process, medians; the bare client and the wrapper take turns in one run.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from openai import OpenAI

from benchmarks.data import Benchmark, read
from benchmarks.scripted_conversation import (
    MODES,
    ConversationTrace,
    Mode,
    open_gateway,
    run_conversation,
)
from benchmarks.scripted_service import GREETING, SEARCH, scripted_service
from benchmarks.soak import soak
from benchmarks.tables import print_table
from gateway import AutoDiscoveryClient

_WARM = 20
app = typer.Typer(add_completion=False)


@app.command()
def main(
    *,
    data: Annotated[Path, typer.Option(help="A folder in the common format.")],
    catalog: Annotated[list[Path] | None, typer.Option(help="More tools.")] = None,
    calls: Annotated[int, typer.Option(help="Calls a measurement of CPU takes.")] = 150,
    soak_s: Annotated[float, typer.Option("--soak", help="Seconds of load; 0 leaves it out.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print every digit.")] = False,
) -> None:
    """Measure a conversation in each mode, and print one object or a table."""
    benchmark = read(data, extra=catalog or [], limit=4)
    with scripted_service() as url:
        figures: dict[str, dict[str, Any]] = {
            mode: _measure(benchmark, mode, url, calls) for mode in MODES
        }
    if soak_s:
        figures["soak"] = asdict(soak(soak_s))
    if as_json:
        print(json.dumps(figures, indent=2))
        return
    rows = dict.fromkeys(row for column in figures.values() for row in column)
    lines = [{"figure": row} | {mode: figures[mode].get(row) for mode in figures} for row in rows]
    print_table("a conversation of ten requests", lines)


def _measure(
    benchmark: Benchmark, mode: Mode, url: str, calls: int
) -> dict[str, float | int | bool]:
    trace: ConversationTrace = asyncio.run(run_conversation(benchmark, mode))
    costs = _costs(benchmark, "proxy" if mode == "native" else mode, url, calls)
    return {
        "definition_token_share": trace.definition_token_share,
        "prefix_reuse": trace.prefix_reuse,
        **costs,
        "same_tools": trace.same_tools,
        "first_definition_tokens": trace.first_definition_tokens,
        "all_schema_tokens": trace.all_tokens,
        "requests": len(trace.requests),
    }


def _costs(benchmark: Benchmark, mode: Mode, url: str, calls: int) -> dict[str, float]:
    """CPU that the wrapper adds to a call: without a search, with one, to the first chunk."""
    with (
        closing(open_gateway(benchmark, mode)) as gateway,
        OpenAI(base_url=url, api_key="none", max_retries=0) as bare,
    ):
        wrapped = AutoDiscoveryClient(bare, gateway)
        plain, with_it, searched, first, first_with_it = _medians(
            [
                lambda: _ask(bare),
                lambda: _ask(wrapped),
                lambda: _ask(wrapped, SEARCH),
                lambda: _first(bare),
                lambda: _first(wrapped),
            ],
            calls,
        )
    return {
        "overhead_cpu_ms": with_it - plain,
        "overhead_share": with_it / plain - 1,
        "search_cpu_ms": searched - 2 * with_it,
        "first_chunk_cpu_ms": first_with_it - first,
        "bare_cpu_ms": plain,
    }


def _ask(client: OpenAI, text: str = GREETING) -> float:
    client.chat.completions.create(model="canned", messages=[{"role": "user", "content": text}])
    return time.process_time()


def _first(client: OpenAI) -> float:
    stream = client.chat.completions.create(
        model="canned", messages=[{"role": "user", "content": GREETING}], stream=True
    )
    next(stream)
    first_at = time.process_time()
    # Read to its end, or the next call would have to connect anew.
    for _ in stream:
        pass
    return first_at


def _medians(works: Sequence[Callable[[], float]], calls: int) -> list[float]:
    """Return the median CPU of each up to the moment that it returns, in milliseconds; they take
    turns.
    """
    spent: list[list[float]] = [[] for _ in works]
    for number in range(calls + _WARM):
        for work, times in zip(works, spent, strict=True):
            began = time.process_time()
            ended = work()
            if number >= _WARM:
                times.append(1000 * (ended - began))
    return [median(times) for times in spent]


if __name__ == "__main__":
    app()
