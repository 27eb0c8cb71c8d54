"""Progress bars: on a terminal's standard error, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.progress import TimeRemainingColumn as Remaining

from gateway.cli.screen import err
from gateway.search.index.build import Progress as Told

_WORDS: Mapping[str, str] = {
    "servers": "Starting servers and listing their tools",
    "embeddings": "Embedding what is new",
}


@contextmanager
def bars() -> Iterator[Told]:
    """Show one bar a stage while the block runs; give the function that is told of progress."""
    console = err()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Remaining())
    tasks: dict[str, TaskID] = {}
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as shown:

        def told(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = shown.add_task(_WORDS.get(stage, stage), total=total)
            shown.update(tasks[stage], completed=done, total=total)

        yield told
