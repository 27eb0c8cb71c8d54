from __future__ import annotations

from collections.abc import Iterable

import pytest

from gateway.errors import InvalidRequestError
from gateway.plugins.quality import EvalRequest, RequestSet, Tuning, tune, undo
from gateway.testing import HashingEmbedder
from gateway.types import SearchResult, Strategy
from tests.conftest import OpenGateway
from tests.fakes import ListSource, names, tool

TOOLS = [
    tool("set_point", "Moves the value of a loop."),
    tool("issue", "Draws a new one for a party."),
    tool("dispatch", "Hands it over to the line."),
    tool("book_flight", "Book a flight to a city."),
]
ASKED = {
    "set_point": "it is {} freezing, make the room cosy",
    "issue": "bill the {} customer for what they bought",
    "dispatch": "tell grandma {} that we arrived",
}
WORDS = ("dear", "old", "new", "small", "tall", "kind", "young", "rich", "fine", "late", "loud")


def requests(words: Iterable[str] = WORDS, *, source: str = "user") -> RequestSet:
    """Return requests in words that no definition contains."""
    return RequestSet(
        requests=tuple(
            EvalRequest(text=text.format(word), wanted=((name,),), source=source)  # type: ignore[arg-type]
            for word in words
            for name, text in ASKED.items()
        )
    )


@pytest.mark.parametrize("strategy", ["graph", "auto"])
def test_tuning_keeps_examples_that_help_and_undo_removes_them(
    open_gateway: OpenGateway, strategy: Strategy
) -> None:
    gateway = open_gateway(strategy=strategy, embedder=HashingEmbedder())
    gateway.add_source(ListSource("desk", [*TOOLS, *(tool(f"t{n}", "") for n in range(20))]))

    async def work() -> tuple[Tuning, SearchResult, SearchResult]:
        tuning = await tune(gateway, requests())
        after = await gateway.search("make my room cosy")
        await undo(gateway, tuning)
        return tuning, after, await gateway.search("make my room cosy")

    tuning, after, undone = gateway.bridge.call(work)

    assert (True, 33, ()) == (tuning.kept, tuning.requests, tuning.unfound)
    assert "set_point" == names(after)[0]
    assert "set_point" not in names(undone)[:1]
    assert {f"desk/{name}" for name in ASKED} == tuning.examples.keys() == tuning.before.keys()
    assert 11 == len(tuning.examples["desk/issue"])
    assert tuning.comparison is not None
    assert tuning.comparison.changes["recall@5"].low > 0


def test_trial_search_registers_no_gauges(open_gateway: OpenGateway) -> None:
    """Otherwise the queue of a finished trial would be reported in place of the gateway's."""
    gateway = open_gateway(strategy="auto", embedder=HashingEmbedder())
    gateway.add_source(ListSource("desk", TOOLS))
    observed = len(gateway.telemetry._gauges)  # noqa: SLF001

    gateway.bridge.call(lambda: tune(gateway, requests()))

    assert observed == len(gateway.telemetry._gauges)  # noqa: SLF001


def test_tuning_needs_enough_usable_requests(open_gateway: OpenGateway) -> None:
    """Generated requests and requests without a tool are not usable."""
    gateway = open_gateway()
    gateway.add_source(ListSource("desk", TOOLS))
    unserved = tuple(EvalRequest(text=f"mend my bicycle {number}") for number in range(40))
    for request_set in (
        requests(WORDS[:9]),
        requests(source="rules"),
        RequestSet(requests=unserved),
    ):
        tuning = gateway.bridge.call(lambda request_set=request_set: tune(gateway, request_set))  # type: ignore[misc]

        assert not tuning.kept
        assert "too few" in tuning.reason
        assert {} == tuning.examples


def test_tuning_is_rejected_without_an_improvement(open_gateway: OpenGateway) -> None:
    gateway = open_gateway()
    gateway.add_source(ListSource("desk", TOOLS))
    test_requests = [
        EvalRequest(text=f"book a {word} flight", wanted=(("book_flight",),))
        for word in (*WORDS, *map(str.upper, WORDS), *(word[::-1] for word in WORDS))
    ]
    tuning = gateway.bridge.call(lambda: tune(gateway, RequestSet(requests=tuple(test_requests))))

    assert (False, 33) == (tuning.kept, tuning.requests)
    assert "uncertain" in tuning.reason


def test_tuning_is_rejected_if_it_hides_a_tool(open_gateway: OpenGateway) -> None:
    """Six other tools get examples with all the words of a tool, and push it out of the results."""
    gateway = open_gateway()
    rivals = ("aaaaa", "bbbbb", "ccccc", "ddddd", "eeeee", "fffff")
    nothing = [tool(rival, "Nothing.") for rival in rivals]
    gateway.add_source(ListSource("desk", [tool("zz9", "An invoice."), *nothing]))
    test_requests = [
        EvalRequest(text=f"an invoice {word} q{rival[:2]}", wanted=((rival,),))
        for word in WORDS
        for rival in rivals
    ]
    tuning = gateway.bridge.call(lambda: tune(gateway, RequestSet(requests=tuple(test_requests))))

    assert (False, ("desk/zz9",)) == (tuning.kept, tuning.unfound)
    assert "1 tool would no longer be found: desk/zz9" in tuning.reason
    assert {} == tuning.examples


def test_tuning_refuses_requests_for_an_unknown_tool(open_gateway: OpenGateway) -> None:
    gateway = open_gateway()
    gateway.add_source(ListSource("desk", TOOLS))
    request_set = RequestSet(requests=(EvalRequest(text="a", wanted=(("nobody",),)),) * 30)

    with pytest.raises(InvalidRequestError, match="nobody"):
        gateway.bridge.call(lambda: tune(gateway, request_set))
