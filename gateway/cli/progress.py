"""Progress bars: on a terminal's standard error, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.progress import TimeRemainingColumn as Remaining

from gateway.cli.screen import err
from gateway.index.indexer import Progress as Told

_WORDS: Mapping[str, str] = {
    "servers": "Starting servers and listing their tools",
    "embeddings": "Embedding what is new",
}


@contextmanager
def bars() -> Iterator[Told]:
    """Show one bar a stage while the block runs; give the function that is told of progress.

    Raises:
        KeyboardInterrupt: As it came, with what was under way.
    """
    console = err()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Remaining())
    tasks: dict[str, TaskID] = {}
    under_way: dict[str, str] = {}
    shown = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)

    def told(stage: str, done: int, total: int) -> None:
        words = _WORDS.get(stage, stage)
        if stage not in tasks:
            tasks[stage] = shown.add_task(words, total=total)
        shown.update(tasks[stage], completed=done, total=total)
        under_way[stage] = f"{words} ({done} of {total} done)" if done < total else ""

    try:
        with shown:
            yield told
    except KeyboardInterrupt:
        raise KeyboardInterrupt("; ".join(filter(None, under_way.values()))) from None
