"""Tools that nobody can tell apart, and requests that none serves."""

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


def test_twins_say_the_same_on_different_servers() -> None:
    """A short description is enough only under the same name."""
    found = find_twins(TOOLS, [*(tool.id for tool in TOOLS), "gone/tool"])

    assert {
        "hub/list_issues": {"lab/issues"},
        "lab/issues": {"hub/list_issues"},
        "hub/ping": {"lab/ping"},
        "lab/ping": {"hub/ping"},
    } == found


def test_a_twin_serves_what_its_twin_serves() -> None:
    twins = find_twins(TOOLS, ["hub/ping"])
    request = EvalRequest(text="q", wanted=(("hub/ping", "x/y"), ("hub/close_issue",)))

    served = [sorted(group) for group in with_twins(request, twins)]
    assert [["hub/ping", "lab/ping", "x/y"], ["hub/close_issue"]] == served


def test_held_out_are_the_tool_its_twins_and_its_namesakes() -> None:
    """Requests for several tools stay as they are."""
    asked = [
        EvalRequest(text="open issues", wanted=(("hub/list_issues",),), language="en"),
        EvalRequest(text="two", wanted=(("hub/ping",), ("hub/close_issue",))),
        EvalRequest(text="none"),
    ]
    (held,) = hold_out(asked, TOOLS, count=9)

    assert {"hub/list_issues", "lab/issues", "lab/list_issues"} == held.without
    assert ((), "open issues", "en", "held_out") == (
        held.wanted,
        held.text,
        held.language,
        held.source,
    )
    assert () == hold_out(asked, TOOLS, count=0)
