"""Requests that are made by rules."""

from __future__ import annotations

import pytest

from gateway.errors import InvalidRequestError
from gateway.plugins.quality import holds_name, offline_requests, phrases
from gateway.types import Entity
from tests.plugins.quality.catalogs import entity


def texts(*tools: Entity, languages: tuple[str, ...] = ("en",)) -> dict[str, str]:
    return {each.style: each.text for each in offline_requests(tools, languages=languages)}


INVOICES = entity(
    "crm/list_invoices",
    "List invoices.",
    {
        "type": "object",
        "properties": {"customer_id": {}, "state": {"enum": ["open", "paid"]}, "page": {}},
        "required": ["customer_id", "state"],
    },
)


def test_a_tool_is_asked_for_by_what_it_is_about_and_by_its_parameters() -> None:
    """With a value that the schema gives, and once misspelt."""
    found = texts(INVOICES)

    assert "which invoices are there" == found["words"]
    assert "which invoices are there, by customer id, state open" == found["parameters"]
    assert "which ivoices are there, by cusotmer id, state open" == found["typos"]


def test_no_request_holds_the_name_of_its_tool() -> None:
    """Nor one of a single word, whose description helps out."""
    tools = [
        INVOICES,
        entity("web/fetch", "Fetch a page of the internet by its address."),
        entity("web/getPage", "Get page"),
        entity("x/about", ""),
    ]
    made = offline_requests(tools, languages=[*phrases()])
    by_id = {tool.id: tool for tool in tools}

    assert {"crm/list_invoices", "web/fetch", "web/getPage"} == {
        key for each in made for key in each.wanted[0]
    }
    assert not [each for each in made if holds_name(each.text, by_id[each.wanted[0][0]])]


def test_each_language_has_phrases_for_each_action() -> None:
    """The words of the tool stay."""
    assert {"en", "de", "es", "fr", "uk", "zh"} <= phrases().keys()
    assert 1 == len({tuple(each) for each in phrases().values()})
    assert "welche invoices gibt es" == texts(INVOICES, languages=("de",))["words"]
    with pytest.raises(
        InvalidRequestError, match="unknown language 'tlh'; the languages are en, de"
    ):
        texts(INVOICES, languages=("tlh",))


def test_what_two_tools_serve_alike_names_the_server() -> None:
    """Within one server any of them will do."""
    found = offline_requests(
        [entity(key, "") for key in ("hub/list_issues", "lab/list_issues", "lab/get_board")],
        typos=False,
    )
    same = offline_requests(
        [entity(f"a/{name}", "") for name in ("make_x", "create_x")], typos=False
    )

    assert [
        "hub: which issues are there",
        "lab: which issues are there",
        "tell me what the board says",
    ] == [each.text for each in found]
    assert [(("a/make_x", "a/create_x"),)] == [each.wanted for each in same]
