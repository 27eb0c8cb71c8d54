from __future__ import annotations

from gateway.plugins.quality import EvalRequest, find_twins, hold_out, with_twins
from tests.plugins.quality.catalogs import entity

TOOLS = (
    entity("hub/list_issues", "List the open issues of a repository."),
    entity("lab/issues", "Lists open issues of a repository."),
    entity("lab/list_issues", "All tasks that a project still has to do."),
    entity("hub/ping", "Ping"),
    entity("lab/ping", "Ping"),
    entity("hub/close_issue", "Close one issue of a repository."),
)


def test_find_twins_finds_equal_descriptions_on_different_servers() -> None:
    """A short description is enough only if the names are equal."""
    twins = find_twins(TOOLS, [*(tool.id for tool in TOOLS), "gone/tool"])

    assert {
        "hub/list_issues": {"lab/issues"},
        "lab/issues": {"hub/list_issues"},
        "hub/ping": {"lab/ping"},
        "lab/ping": {"hub/ping"},
    } == twins


def test_with_twins_adds_the_twins_of_alternatives() -> None:
    twins = find_twins(TOOLS, ["hub/ping"])
    request = EvalRequest(text="q", wanted=(("hub/ping", "x/y"), ("hub/close_issue",)))

    served = [sorted(group) for group in with_twins(request, twins)]
    assert [["hub/ping", "lab/ping", "x/y"], ["hub/close_issue"]] == served


def test_hold_out_removes_the_tool_its_twins_and_its_namesakes() -> None:
    requests = [
        EvalRequest(text="open issues", wanted=(("hub/list_issues",),), language="en"),
        EvalRequest(text="two", wanted=(("hub/ping",), ("hub/close_issue",))),
        EvalRequest(text="none"),
    ]
    (held_out,) = hold_out(requests, TOOLS, count=9)

    assert {"hub/list_issues", "lab/issues", "lab/list_issues"} == held_out.without
    assert ((), "open issues", "en", "held_out") == (
        held_out.wanted,
        held_out.text,
        held_out.language,
        held_out.source,
    )
    assert () == hold_out(requests, TOOLS, count=0)
