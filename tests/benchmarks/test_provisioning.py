"""The benchmark of the ranking of well-known servers."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from benchmarks.provisioning import Intent, app, compute_figures, read_intents
from gateway.plugins.provision import RegistryEntry, ServerCandidate, bundled_servers


def test_expected_servers_are_on_the_bundled_list() -> None:
    """A renamed server would count as a miss."""
    intents = tuple(read_intents())

    assert {60, 30} == {
        sum(bool(intent.servers) for intent in intents),
        sum(not intent.servers for intent in intents),
    }
    named = {name for intent in intents for name in intent.servers}
    assert named <= {entry.name for entry in bundled_servers()}


def test_figures_of_the_ranking_of_servers_are_counted() -> None:
    def ranked(name: str, confidence: float) -> tuple[ServerCandidate, ...]:
        return (ServerCandidate(entry=RegistryEntry(name=name), confidence=confidence),)

    served = Intent(text="a", servers=frozenset({"a/a"}))
    nothing = Intent(text="b", servers=frozenset())
    figures = compute_figures(
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

    assert {
        "served": 4,
        "unserved": 2,
        "first": 0.5,
        "listed": 0.75,
        "right_and_sure": 0.25,
        "wrong_and_sure": 0.25,
        "sure_of_nothing": 0.5,
    } == figures
    assert 0.0 == compute_figures([], 0.9)["first"]


def test_provisioning_command_prints_json() -> None:
    """The ranking by words needs no model."""
    data = CliRunner().invoke(app, ["--strategy", "graph", "--limit", "6", "--json"])
    result = json.loads(data.stdout)

    assert (0, "graph", 0.9) == (data.exit_code, result["strategy"], result["bar"])
    assert 6 == result["even"]["served"] + result["odd"]["served"]
