from __future__ import annotations

import os
from pathlib import Path

from gateway.plugins.quality import EvalRequest, evaluate, freeze, write_report
from gateway.types import Filters
from tests.conftest import OpenGateway
from tests.core.attention.test_attention import TOOLS
from tests.core.servers.live_servers import patient


async def test_issues_name_tools_never_found_in_the_newest_report(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Only existing, enabled tools are named. An unreadable report is an issue of its own."""
    gateway, reports = open_gateway(TOOLS, options=patient(tmp_path)), tmp_path / "reports"
    none = await gateway.issues(reports=reports)
    reports.mkdir()
    request = EvalRequest(text="zebra crossing", wanted=(("shelf/add",),))
    frozen = freeze([request], await gateway.snapshot(), Filters())
    report = write_report(await evaluate(gateway, frozen))
    (reports / "2026-01-01.json").write_text(report, "utf-8")
    os.utime(reports / "2026-01-01.json", (1000, 1000))
    (issue,) = await gateway.issues(reports=reports)
    await gateway.disable("shelf/add")
    after = await gateway.issues(reports=reports)
    (reports / "2026-01-02.json").write_text("{}", "utf-8")
    (broken,) = await gateway.issues(reports=reports)

    assert () == none == after
    assert ("never_found", "shelf/add", 1000.0) == (issue.kind, issue.id, issue.since)
    assert "found by 0 of 1 test requests" in issue.detail
    assert ("configuration", "2026-01-02.json") == (broken.kind, broken.id)
