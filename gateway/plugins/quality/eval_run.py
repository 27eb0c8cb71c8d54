"""An evaluation of a gateway that is in use: in the background, with progress.

Its requests are the host's own and those of rules. They are searches as all others, but none is
noted as use.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from gateway.discovery.token_counter import TokenCounter
from gateway.errors import Failed, attempt
from gateway.index.indexer import Progress
from gateway.index.snapshot import Snapshot
from gateway.plugins.quality.evaluation import Searchable, evaluate
from gateway.plugins.quality.offline import offline_requests
from gateway.plugins.quality.report import EvalReport, save_report
from gateway.plugins.quality.requests import EvalRequest, RequestSet, freeze
from gateway.plugins.quality.twins import hold_out
from gateway.runtime.background_loop import Bridge, in_thread
from gateway.types import ANYONE, Caller, Filters

UNANSWERABLE = 20
"""So many requests are asked again with their tools held out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """How far a run is, or how it ended."""

    running: bool = True
    stage: str = "catalog"
    """``catalog`` while that is read and requests are made, then ``requests``; or of an index
    build."""
    done: int = 0
    total: int = 0
    """0 if it is not known yet."""
    error: str = ""
    """Why it ended without a report."""
    report: str = ""
    """The name of the report that it kept."""


class EvalRun:
    """One evaluation on the background loop of a gateway; searches go on meanwhile.

    Args:
        bridge: The loop. Its end is the end of the run.
        evaluate: Returns the report; it says how far it is.
        folder: Where the report is kept.
    """

    def __init__(
        self, bridge: Bridge, evaluate: Callable[[Progress], Awaitable[EvalReport]], folder: Path
    ) -> None:
        self.progress = RunProgress()
        self.work = bridge.submit(partial(self._run, evaluate, folder))

    def cancel(self) -> None:
        """End the run, if it still goes on; nothing is kept."""
        if self.work.cancel():
            self.progress = replace(self.progress, running=False, error="it was cancelled")

    async def _run(
        self, evaluate: Callable[[Progress], Awaitable[EvalReport]], folder: Path
    ) -> None:
        async def keep() -> str:
            report = await evaluate(self._on_progress)
            return (await in_thread(save_report, report, folder)).name

        name = await attempt(keep())
        error, name = (name.reason, "") if isinstance(name, Failed) else ("", name)
        self.progress = replace(self.progress, running=False, error=error, report=name)

    def _on_progress(self, stage: str, done: int, total: int) -> None:
        self.progress = replace(self.progress, stage=stage, done=done, total=total)


async def evaluate_catalog(
    gateway: Searchable,
    own: Iterable[EvalRequest] = (),
    *,
    caller: Caller = ANYONE,
    tokens: TokenCounter | None = None,
    progress: Progress = lambda *_: None,
) -> EvalReport:
    """Ask *own* requests, up to three by rules for each tool, and some that no tool serves.

    Args:
        gateway: A `Gateway`, as it is.
        own: Their tools may be gone: then they are missed.
        caller: As for `evaluate`.
        tokens: As for `evaluate`.
        progress: As for `evaluate`.

    Raises:
        InvalidRequestError: Several tools have a name that a request of *own* gives.
    """
    snapshot = await gateway.snapshot(vectors=True)
    requests = await in_thread(_make_requests, own, snapshot, caller.filters())
    return await evaluate(gateway, requests, caller=caller, tokens=tokens, progress=progress)


def _make_requests(own: Iterable[EvalRequest], snapshot: Snapshot, filters: Filters) -> RequestSet:
    tools = snapshot.visible(filters)
    requests = [*own, *offline_requests(tools)]
    frozen = freeze(requests, snapshot, filters, strict=False)
    held = hold_out(frozen.requests, tools, count=UNANSWERABLE)
    return replace(frozen, requests=(*frozen.requests, *held))
