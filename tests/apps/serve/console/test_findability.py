"""Findability page: runs, reports and comparisons."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from gateway.gateway import Gateway
from gateway.options import UsageOptions
from gateway.plugins.quality import (
    Cost,
    CurvePoint,
    EvalReport,
    EvalRequest,
    Outcome,
    find_confusions,
    list_reports,
    report_tools,
    save_report,
    summarize,
)
from gateway.plugins.usage import CallNote
from gateway.serve.auth import ADMIN, BearerToken
from gateway.serve.http_options import HttpOptions
from gateway.types import Access, Caller
from tests.apps.serve.console.catalogs import MARKUP, RIGHT_TO_LEFT, SMALL
from tests.apps.serve.console.conftest import Open, Serve, Served, check_access
from tests.apps.serve.console.test_access import SECRET
from tests.apps.serve.console.test_pages import check_layout
from tests.conftest import OpenGateway
from tests.fakes import ListSource, tool

ASKED = (
    "| request | tool |\n| --- | --- |\n| write to somebody | send_email |\n| fly | gone/fly |\n"
)
TOKEN = BearerToken.from_secret("admin", SECRET, Caller(scopes=frozenset({ADMIN})))


def outcome(text: str, tool: str, place: int | None, *others: str) -> Outcome:
    """Return the outcome of a test request with *text* that expects *tool*.

    Args:
        text: Text of the request.
        tool: Id of the expected tool.
        place: Position of the expected tool in the results. None if it was not found.
        *others: Ids of other tools in the results.
    """
    outcomes = [*others]
    if place:
        outcomes.insert(place - 1, tool)
    hit = {"hit@1": float(place == 1), "recall@5": float(bool(place)), "ndcg@10": 1 / (place or 9)}
    return Outcome(
        request=EvalRequest(text=text, wanted=((tool,),)),
        found=tuple(outcomes),
        places=(place,),
        tools=(tool,),
        missed=place is None,
        figures={**hit, "complete@10": hit["recall@5"]},
        missing_words={} if place else {tool: (text.partition(" ")[0],)},
    )


def report(*outcomes: Outcome, **more: Any) -> EvalReport:
    """Return an evaluation report with *outcomes*, about all tools in them."""
    ids = {key for outcome in outcomes for key in (*outcome.tools, *outcome.found)}
    summary = summarize(outcomes)
    values = {
        "catalog": dict.fromkeys(sorted(ids), "digest"),
        "strategy": "graph",
        "limit": 5,
        "summary": summary,
        "by_source": {"user": summary},
        "by_language": {},
        "tools": report_tools(outcomes, limit=5),
        "untested": (),
        "unknown": (),
        "pairs": find_confusions(outcomes, {}),
        "outcomes": outcomes,
    }
    return EvalReport(**{**values, **more})


GOOD = (
    outcome("send it", "mail/send_email", 1),
    outcome("read it", "mail/read_email", 2, "mail/send_email"),
    outcome("a song", "mail/play_music", None, "mail/read_email"),
)
POOR = (
    outcome("send it", "mail/send_email", None, "mail/play_music"),
    outcome("read it", "mail/read_email", 1),
    GOOD[2],
)


@dataclass(frozen=True)
class Pipe:
    """Named pipe that blocks its reader until a test writes to it."""

    path: Path

    async def write(self, text: str) -> None:
        """Send *text* to the waiting reader."""
        await asyncio.to_thread(self.path.write_text, text, "utf-8")

    def end(self) -> None:
        """Let the waiting reader find the pipe empty."""
        with suppress(OSError):  # no reader is waiting
            os.close(os.open(self.path, os.O_WRONLY | os.O_NONBLOCK))


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Pipe]:
    """Named pipe instead of a file of test requests, from which a run reads."""
    path = tmp_path / "asked.md"
    os.mkfifo(path)
    yield Pipe(path)
    # Opening the pipe releases readers that are still waiting.
    os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))


async def data_after_run(served: Served, pipe: Pipe | None = None) -> Any:
    """Wait until the run has ended, and return the page's data. The run reads *pipe* as empty."""
    while (await served.data("/findability/run"))["run"]["running"]:
        if pipe is not None:
            pipe.end()
    return await served.data("/findability")


async def test_evaluation_shows_progress_and_report(
    small_gateway: Gateway, serve_console: Serve, visit: Open, pipe: Pipe, tmp_path: Path
) -> None:
    served = await serve_console(small_gateway, reports=tmp_path / "reports", requests=pipe.path)
    page = await visit(served, "/findability")

    await page.get_by_role("button", name="Start a run").click()
    await page.get_by_role("progressbar").wait_for()
    cancel = page.get_by_role("button", name="Cancel")
    await cancel.focus()
    async with page.expect_response("**/findability/run"):
        pass
    during = await served.data("/ask", q="e-mail")
    await check_access(page)
    focused = await page.evaluate("document.activeElement.textContent")
    await pipe.write(ASKED)
    await page.get_by_role("link", name="show its report").click()
    await page.get_by_role("heading", name="Figures").wait_for()
    await check_access(page)
    data = await served.data("/findability")

    assert "Cancel" == focused
    assert during
    assert {"user", "rules", "held_out"} == {*data["report"]["by_source"]}
    assert 2 == data["report"]["by_source"]["user"]["requests"]
    assert ["gone/fly"] == data["report"]["unknown"]
    assert [data["run"]["report"]] == [report["name"] for report in data["reports"]]
    assert data["report"]["cost"]["answer_p95"] >= data["report"]["cost"]["answer_p50"] > 0
    assert 3 == data["counts"]["catalog"]


async def test_second_evaluation_is_refused_until_the_first_is_cancelled(
    small_gateway: Gateway, serve_console: Serve, pipe: Pipe, tmp_path: Path
) -> None:
    served = await serve_console(small_gateway, reports=tmp_path / "reports", requests=pipe.path)

    async with served.signed_in() as client:
        await served.send(client, "/findability/run", {})
        page = (await client.get("/findability")).text
        await served.send(client, "/findability/run", {})
        second = (await client.get("/findability")).text
        await served.send(client, "/findability/cancel", {})
        cancelled = await served.data("/findability")
        await pipe.write("")
        await served.send(client, "/findability/run", {})
        # A reader of the first run may still be open, and could receive a single write.
        data = await data_after_run(served, pipe)

    assert "The run has started." in page
    assert "<progress" in page
    assert "Start a run" not in page
    assert "A run is already in progress." in second
    assert (False, "it was cancelled") == (cancelled["run"]["running"], cancelled["run"]["error"])
    assert ("", 1) == (data["run"]["error"], len(data["reports"]))


async def test_evaluation_with_a_curve_also_evaluates_larger_catalogs(
    small_gateway: Gateway, serve_console: Serve, tmp_path: Path
) -> None:
    served = await serve_console(small_gateway, reports=tmp_path / "reports")

    async with served.signed_in() as client:
        await served.send(client, "/findability/run", {"curve": "yes"})
        data = await data_after_run(served)
        page = (await client.get("/findability")).text

    curve = data["report"]["curve"]
    assert [3, 9, 30] == [point["tools"] for point in curve]
    assert data["report"]["summary"]["figures"] == curve[0]["figures"]
    assert "among 30 tools" in page


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"\xff\xfe", "save it as UTF-8"),
        (b"| only one cell |", "line 1: | what is asked | tool |"),
        (b"no table", "neither a table row nor JSON"),
        (f'{{"request": "x", "tools": ["{MARKUP[:9]}"]'.encode(), "neither a table row nor JSON"),
        (b'{"request": 7}', "must be a text"),
        (b"x" * (8 * 1024 * 1024 + 1), "is longer than"),
    ],
)
async def test_evaluation_with_an_invalid_file_of_requests_shows_the_reason(
    small_gateway: Gateway, serve_console: Serve, tmp_path: Path, content: bytes, error: str
) -> None:
    file = tmp_path / "asked.md"
    file.write_bytes(content)
    served = await serve_console(small_gateway, reports=tmp_path / "reports", requests=file)

    async with served.signed_in() as client:
        await served.send(client, "/findability/run", {})
        data = await data_after_run(served)
        page = (await client.get("/findability")).text

    assert error in data["run"]["error"]
    assert () == list_reports(tmp_path / "reports")
    assert "The last run ended without a report" in page
    assert "Start a run" in page


async def test_evaluation_requires_a_folder_for_reports(
    small_gateway: Gateway, serve_console: Serve
) -> None:
    served = await serve_console(small_gateway)

    async with served.signed_in() as client:
        page = (await client.get("/findability")).text
        refused = await served.send(client, "/findability/run", {})
        nothing = await served.send(client, "/findability/cancel", {})

    assert "Start a run" not in page
    assert "without a folder for reports" in page
    assert (422, 303) == (refused.status_code, nothing.status_code)


async def test_findability_page_sorts_searches_and_pages_tools(
    small_gateway: Gateway, serve_console: Serve, tmp_path: Path
) -> None:
    ids = [f"large/tool_{n}" for n in range(4997)] + [f"mail/{tool.name}" for tool in SMALL]
    outcomes = [outcome(f"request {n}", key, n % 5 + 1, *ids[:6]) for n, key in enumerate(ids)]
    outcomes[3] = outcome("request 3", ids[3], None, ids[0])
    save_report(report(*outcomes), tmp_path)
    served = await serve_console(small_gateway, reports=tmp_path)

    first = await served.data("/findability")
    last = await served.data("/findability", sort="place", page="999999")
    search_data = await served.data("/findability", q="REQUEST 3")
    tokens = await served.data("/findability", sort="tokens")
    async with served.signed_in() as client:
        page = (await client.get("/findability", params={"q": "large", "page": "2"})).text

    assert (ids[3], 50) == (first["report"]["tools"][0]["id"], len(first["report"]["tools"]))
    assert (1, 100, 5000, 1) == tuple(
        (first | first["counts"])[key] for key in ("page", "pages", "tools", "never_found")
    )
    assert (100, 1) == (last["page"], last["report"]["tools"][-1]["median_place"])
    assert (0, [ids[3]]) == (
        search_data["counts"]["tools"],
        search_data["report"]["outcomes"][0]["tools"],
    )
    token_counts = [tokens["tokens"].get(tool["id"], 0) for tool in tokens["report"]["tools"]]
    assert token_counts == sorted(token_counts, reverse=True)
    assert 3 == sum(map(bool, token_counts))
    assert "Page 2 of 100" in page
    assert "q=large&amp;sort=&amp;page=3" in page
    assert len(page) < 200_000


async def test_findability_page_shows_the_number_of_recorded_calls(
    open_gateway: OpenGateway, small_gateway: Gateway, serve_console: Serve, tmp_path: Path
) -> None:
    """Calls made by an evaluation are not counted."""
    options = replace(small_gateway.options, usage=UsageOptions(record=True))
    noting = open_gateway(options=options)
    noting.add_source(ListSource("mail", SMALL))
    await noting.usage.note(CallNote(tool="mail/play_music", outcome="ok"))
    save_report(report(*GOOD), tmp_path)
    silent, noted = [
        await serve_console(item, reports=tmp_path) for item in (small_gateway, noting)
    ]

    without = await silent.data("/findability")
    data = await noted.data("/findability", sort="calls")

    assert None is without["calls"]
    assert {"mail/play_music": 1, "mail/read_email": 0, "mail/send_email": 0} == data["calls"]
    assert "mail/play_music" == data["report"]["tools"][0]["id"]


async def test_findability_page_compares_two_reports(
    small_gateway: Gateway, serve_console: Serve, tmp_path: Path
) -> None:
    before, after, other, foreign = (
        save_report(item, tmp_path).name
        for item in (
            report(*GOOD),
            report(*POOR),
            report(*GOOD, catalog={"mail/send_email": "changed"}),
            report(outcome("else", "mail/send_email", 1)),
        )
    )
    served = await serve_console(small_gateway, reports=tmp_path)

    data = await served.data("/findability", **{"run": after, "with": before})
    differs = await served.data("/findability", **{"run": after, "with": other})
    nothing = await served.data("/findability", **{"run": after, "with": foreign})
    newest = await served.data("/findability")
    async with served.signed_in() as client:
        page = (await client.get("/findability", params={"run": after, "with": before})).text

    outcomes = data["comparison"]
    assert (["read it"], ["send it"]) == tuple(
        [item["request"] for item in outcomes[key]] for key in ("wins", "losses")
    )
    assert (["mail/send_email"], True) == (
        outcomes["lost_tools"],
        outcomes["changes"]["recall@5"]["worse"],
    )
    assert [True, False] == [item["same_catalog"] for item in (data, differs)]
    assert "no request is in both" in nothing["error"]
    assert nothing["report"]
    assert foreign == newest["name"]
    assert "Requests that are worse: 1" in page
    assert "No longer found" in page


async def test_evaluation_report_is_downloaded_as_a_file(
    small_gateway: Gateway, serve_console: Serve, tmp_path: Path
) -> None:
    saved_path = save_report(report(*GOOD), tmp_path / "reports")
    (tmp_path / "reports" / "z.json").write_text(f'"{MARKUP}', "utf-8")
    (tmp_path / "other.json").write_bytes(saved_path.read_bytes())
    served = await serve_console(small_gateway, reports=tmp_path / "reports")

    async with served.client() as client:
        names = (saved_path.name, "../other.json", "z.json", "")
        answers = [await client.get("/findability/report", params={"run": name}) for name in names]
        page = (await client.get("/findability")).text
        lost = (await client.get("/findability", params={"run": "../other.json"})).text

    headers = answers[0].headers
    assert [200, 422, 422, 422] == [response.status_code for response in answers]
    assert (
        f'attachment; filename="findability-{saved_path.stem}.html"'
        == headers["content-disposition"]
    )
    assert "sandbox" in headers["content-security-policy"]
    assert "a song" in answers[0].text
    assert "cannot be read" in page
    assert "a song" in page
    assert "there is no such report" in lost


async def test_report_that_names_hidden_tools_is_refused(
    small_gateway: Gateway, serve_console: Serve, tmp_path: Path
) -> None:
    access = Access(scopes=frozenset({"billing"}))
    small_gateway.add_source(ListSource("bank", [tool("pay", "Pay money out.")]), access=access)
    hidden = save_report(report(outcome("pay it", "bank/pay", 1)), tmp_path).name
    served = await serve_console(
        small_gateway, http=HttpOptions(port=0, tokens=(TOKEN,)), token=SECRET, reports=tmp_path
    )

    async with served.client() as client:
        page = await client.get("/findability", params={"run": hidden})
        file = await client.get("/findability/report", params={"run": hidden})

    assert "names tools that your token may not see" in page.text
    assert [200, 403] == [page.status_code, file.status_code]
    assert "pay it" not in page.text
    assert "bank/pay" not in page.text + file.text


async def test_hostile_tool_names_do_not_break_the_findability_page(
    hostile_gateway: Gateway, serve_console: Serve, visit: Open, tmp_path: Path
) -> None:
    ids = (f"hostile/{MARKUP}", f"hostile/{RIGHT_TO_LEFT}", "x" * 5000)
    bad = tuple(outcome(text, key, None, *ids[:2]) for key in ids for text in (MARKUP, "x" * 9000))
    cost = Cost(catalog=9, fixed=1, answer_p50=2, answer_p95=3, schemas_p50=4, break_even=5)
    curve = (CurvePoint(tools=3, figures={"hit@1": 0.5}), CurvePoint(tools=9, figures={}))
    good = tuple(replace(item, missed=False, places=(1,)) for item in bad)
    more = {"cost": cost, "curve": curve, "unknown": ids, "untested": ids}
    older = save_report(report(*good, **more), tmp_path).name
    newer = save_report(report(*bad, **more), tmp_path).name
    served = await serve_console(hostile_gateway, reports=tmp_path, requests=Path(MARKUP))
    page = await visit(served, f"/findability?run={newer}&with={older}")

    await check_layout(page)
    await check_access(page)
    await page.get_by_role("searchbox").fill("9")
    await page.get_by_text("Tools: 0").wait_for()

    assert await page.evaluate("window.broken") is None
    assert "q=9" in page.url
