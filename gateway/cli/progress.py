"""Progress bars on standard error, if it is a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich import progress

from gateway.cli.output import stderr
from gateway.index.indexer import Progress

_STAGES: Mapping[str, str] = {
    "servers": "Starting servers and listing their tools",
    "embeddings": "Embedding what is new",
}


@contextmanager
def show_progress() -> Iterator[Progress]:
    """Show one bar a stage while the block runs; yield the callback that reports progress.

    Raises:
        KeyboardInterrupt: As raised by the block; its text names the unfinished stages.
    """
    console = stderr()
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeRemainingColumn(),
    )
    bars = progress.Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    )
    tasks: dict[str, progress.TaskID] = {}
    unfinished: dict[str, str] = {}

    def on_progress(stage: str, done: int, total: int) -> None:
        text = _STAGES.get(stage, stage)
        if stage not in tasks:
            tasks[stage] = bars.add_task(text, total=total)
        bars.update(tasks[stage], completed=done, total=total)
        unfinished[stage] = f"{text} ({done} of {total} done)" if done < total else ""

    try:
        with bars:
            yield on_progress
    except KeyboardInterrupt:
        raise KeyboardInterrupt("; ".join(filter(None, unfinished.values()))) from None
