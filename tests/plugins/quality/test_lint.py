from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.errors import InvalidRequestError
from gateway.plugins.quality import FINDINGS, EvalRequest, LintReport, find_faults, lint
from gateway.types import JsonObject
from tests.conftest import OpenGateway
from tests.fakes import ListSource, tool
from tests.plugins.quality.catalogs import entity

LONG = "Reads the open invoices of a customer from the ledger of the company, the newest first."
HEAP = " ".join(f"word{chr(97 + at // 26)}{chr(97 + at % 26)}" for at in range(30))
PARAMETER: JsonObject = {"properties": {"at": {"type": "string"}}}
HEAVY: JsonObject = {"properties": {f"p{at}": {"description": "x " * 20} for at in range(50)}}


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        (entity("a/get_invoice", ""), {"no_description": ""}),
        (entity("a/invoice", "The newest one of a customer."), {"no_verb": ""}),
        (entity("a/run", "Run the tool."), {"no_object": ""}),
        (entity("a/list_it", "List it.", PARAMETER), {"undescribed_parameters": "at"}),
        (entity("a/get_invoice", HEAP), {"stuffed": ""}),
    ],
)
def test_each_lint_rule_finds_its_problem(described: object, expected: dict[str, str]) -> None:
    good = entity("b/pay_invoice", "Pay an invoice from the account.")

    problems = find_faults([described, good])  # type: ignore[list-item]

    assert expected.items() <= {**problems["a/" + described.name]}.items()  # type: ignore[attr-defined]
    assert "b/pay_invoice" not in problems


@pytest.mark.parametrize(
    "said",
    [
        "Get one invoice of a customer.",
        "Gets the invoice.",
        "Dispatches an invoice to the customer.",
        "Heat up the invoice.",
        "Zeigt Rechnungen an.",
        "请求发票",
    ],
)
def test_no_verb_rule_accepts_descriptions_with_a_verb(said: str) -> None:
    """A word before an article counts as a verb. Other languages than English are not checked."""
    assert "no_verb" not in find_faults([entity("a/invoice", said)]).get("a/invoice", {})


def test_lint_rules_compare_tools_of_different_servers() -> None:
    small = [
        entity(f"c/get_part_{number}", f"Get part {number} of an engine.") for number in range(9)
    ]
    problems = find_faults(
        [
            entity("a/read_invoices", LONG, HEAVY),
            entity("b/open_invoices", LONG),
            entity("b/readInvoice", "Read another invoice."),
            *small,
        ]
    )

    assert {"a/read_invoices", "b/open_invoices", "b/readInvoice"} == problems.keys()
    assert "b/open_invoices" == problems["a/read_invoices"]["duplicate"]
    assert "b/readInvoice" == problems["a/read_invoices"]["similar_name"]
    assert "tokens" in problems["a/read_invoices"]["heavy_schema"]
    assert {"similar_name": "a/read_invoices"} == problems["b/readInvoice"]


def test_documentation_lists_each_lint_finding_with_its_meaning() -> None:
    document = (Path(__file__).parents[3] / "docs" / "quality.md").read_text("utf-8")
    documented = re.findall(r"^\| `(\w+)` \| (.*) \|$", document, re.MULTILINE)

    assert [*FINDINGS.items()] == documented


Look = Callable[..., LintReport]


@pytest.fixture
def lint_catalog(open_gateway: OpenGateway) -> Look:
    """Function that lints a small catalog, ranked by words."""
    gateway = open_gateway()
    gateway.add_source(
        ListSource(
            "desk",
            [
                tool("set_point", ""),
                tool("pay_invoice", "Pay an invoice from the account."),
                *(
                    tool(f"warm_{number}", f"Warm up the room {number} of the house.")
                    for number in range(8)
                ),
            ],
        )
    )

    def run_lint(*requests: EvalRequest, **arguments: object) -> LintReport:
        return gateway.bridge.call(lambda: lint(gateway, requests, **arguments))  # type: ignore[arg-type]

    return run_lint


def ask(text: str, name: str) -> EvalRequest:
    return EvalRequest(text=text, wanted=((name,),))


def test_lint_compares_recall_with_and_without_a_finding(lint_catalog: Look) -> None:
    report = lint_catalog(
        ask("it is cold, warm up the house", "set_point"), ask("pay what i owe", "pay_invoice")
    )

    assert (10, "desk/set_point") == (report.tools, report.findings[0].tool)
    (effect,) = [
        item for item in report.effects if (item.code, item.source) == ("no_description", "user")
    ]
    assert (1, 0.0, 1.0) == (effect.tools, effect.with_it, effect.without)
    assert "rules" in {item.source for item in report.effects}
    first = report.findings[0]
    assert first.found == first.requests - 1


def test_lint_refuses_requests_for_an_unknown_tool(lint_catalog: Look) -> None:
    with pytest.raises(InvalidRequestError, match="nobody"):
        lint_catalog(ask("a", "nobody"))
