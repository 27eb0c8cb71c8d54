"""The ranking of well-known servers, measured."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from benchmarks.provisioning import Intent, app, intents, judged, measured
from gateway.provision.candidates import ServerCandidate, bundled_servers
from gateway.provision.registry_schema import RegistryEntry
from tests.conftest import OpenGateway


def test_every_entry_that_an_intent_names_is_on_the_list() -> None:
    """A renamed entry would count as a miss."""
    asked = tuple(intents())

    assert {60, 30} == {
        sum(bool(each.servers) for each in asked),
        sum(not each.servers for each in asked),
    }
    named = {name for each in asked for name in each.servers}
    assert named <= {entry.name for entry in bundled_servers()}


def test_what_is_counted() -> None:
    def ranked(name: str, confidence: float) -> tuple[ServerCandidate, ...]:
        return (ServerCandidate(entry=RegistryEntry(name=name), confidence=confidence),)

    served = Intent(text="a", servers=frozenset({"a/a"}))
    nothing = Intent(text="b", servers=frozenset())
    figures = judged(
        [
            (served, ranked("a/a", 0.95)),
            (served, ranked("a/a", 0.5)),
            (served, ranked("b/b", 0.95)),
            (served, (*ranked("b/b", 0.5), *ranked("a/a", 0.4))),
            (nothing, ()),
            (nothing, ranked("a/a", 0.99)),
        ],
        0.9,
    )

    assert (4, 2, 0.5, 0.75) == (figures.served, figures.unserved, figures.first, figures.listed)
    assert (0.25, 0.25, 0.5) == (
        figures.right_and_sure,
        figures.wrong_and_sure,
        figures.sure_of_nothing,
    )
    assert 0.0 == judged([], 0.9).first


async def test_a_few_requests_are_ranked(open_gateway: OpenGateway) -> None:
    some = [
        Intent(text="extract the text of a PDF", servers=frozenset({"modelcontextprotocol/pdf"}))
    ]

    found = await measured(open_gateway(), some, 0.9)

    assert {"even", "odd"} == set(found)
    assert 1.0 == sum(figures.first for figures in found.values())


def test_the_command_tells_both_ways() -> None:
    """By words alone, which needs no model."""
    person = CliRunner().invoke(app, ["--strategy", "graph", "--limit", "1"])
    told = CliRunner().invoke(app, ["--strategy", "graph", "--limit", "6", "--json"])
    found = json.loads(told.stdout)

    assert (0, "graph", 0.9) == (told.exit_code, found["strategy"], found["bar"])
    assert person.stdout.startswith("even: served ")
    assert 6 == found["even"]["served"] + found["odd"]["served"]
