"""Evaluation of a running gateway in the background.

The requests are the host's own and generated ones. Their searches are not recorded as usage.
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
"""Maximum number of requests that are repeated without the tools that serve them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """Progress of an evaluation, or its result."""

    running: bool = True
    stage: str = "catalog"
    """``catalog`` (the catalog is read and requests are generated), then ``requests``. During an
    index build, the stage of the build."""
    done: int = 0
    total: int = 0
    """Number of steps of the stage; 0 if unknown."""
    error: str = ""
    """Reason why the run ended without a report."""
    report: str = ""
    """File name of the saved report."""


class EvalRun:
    """An evaluation on a gateway's background loop, where searches continue.

    Args:
        bridge: Background loop. Closing it ends the run.
        evaluate: Function that gets a progress callback and returns the report.
        folder: Folder for the report.
    """

    def __init__(
        self, bridge: Bridge, evaluate: Callable[[Progress], Awaitable[EvalReport]], folder: Path
    ) -> None:
        self.progress = RunProgress()
        self.work = bridge.submit(partial(self._run, evaluate, folder))

    def cancel(self) -> None:
        """Cancel an unfinished run. No report is saved."""
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
    """Evaluate a gateway with requests of the host, generated and unanswerable requests.

    Args:
        gateway: `Gateway` to evaluate.
        own: Requests of the host. A tool that no longer exists counts as missed.
        caller: Caller of the searches.
        tokens: Token counter, as for `evaluate`.
        progress: Progress callback, as for `evaluate`.

    Raises:
        InvalidRequestError: If several tools have a name in *own*.
    """
    snapshot = await gateway.snapshot(vectors=True)
    requests = await in_thread(_make_requests, own, snapshot, caller.filters())
    return await evaluate(gateway, requests, caller=caller, tokens=tokens, progress=progress)


def _make_requests(own: Iterable[EvalRequest], snapshot: Snapshot, filters: Filters) -> RequestSet:
    tools = snapshot.visible(filters)
    requests = [*own, *offline_requests(tools)]
    frozen = freeze(requests, snapshot, filters, strict=False)
    unanswerable = hold_out(frozen.requests, tools, count=UNANSWERABLE)
    return replace(frozen, requests=(*frozen.requests, *unanswerable))
