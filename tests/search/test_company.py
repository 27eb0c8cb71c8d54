"""What company says for tools, servers and what stands alone, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from gateway.index.eligibility import Eligibility
from gateway.search.company import Company
from gateway.search.dense.mates import Mates
from gateway.types import Entity, Kind
from tests.fakes import entity, tool


def thing(name: str, server: str, kind: Kind = "tool") -> Entity:
    return replace(entity(tool(name), server=server), id=f"{kind}:{server}/{name}", kind=kind)


CATALOG = (
    thing("send", "mail"),
    thing("read", "mail"),
    thing("mail", "mail", "server"),
    thing("planner", "catalog", "agent"),
)


def lifted(
    scores: Sequence[float], *, catalog: Sequence[Entity] = CATALOG, parts: int = 0
) -> list[float]:
    mates = Mates.of([each.server if each.kind == "tool" else each.id for each in catalog])
    assert mates is not None
    company = Company(
        mates=mates, eligibility=Eligibility.of(catalog), entities=catalog, parts=parts
    )
    spots = np.flatnonzero(np.isfinite(scores))
    found: list[float] = company.lifted(spots, np.asarray(scores, np.float32)[spots]).tolist()
    return found


def test_company_adds_to_each_kind_what_speaks_for_it() -> None:
    """A server of two of four weighs log(2)/log(4) = 0.5: 0.35 x 0.5 of the best mate, or tool.

    An agent counts as if a mate fitted 0.6 as well.
    """
    by_hand = [2 + 0.35 * 0.5 * 1, 1 + 0.35 * 0.5 * 2, 0.5 + 0.35 * 0.5 * 2, 1 + 0.35 * 0.6 * 1]

    assert pytest.approx(by_hand) == lifted([2, 1, 0.5, 1])


@pytest.mark.parametrize(("parts", "job"), [(5, 0), (8, 0.6), (10, 1), (24, 1)])
def test_few_servers_do_a_job_of_many_steps(parts: int, job: float) -> None:
    """A mate then says the more the rarer its server is; nothing else does."""
    weight = (0.35 + job * 0.5) * 0.5
    by_hand = [2 + weight * 1, 1 + weight * 2, 0.5 + 0.35 * 0.5 * 2, 1 + 0.35 * 0.6 * 1]

    assert pytest.approx(by_hand) == lifted([2, 1, 0.5, 1], parts=parts)


def test_nobody_loses_by_company() -> None:
    """Who fits worse than the average speaks for nobody, and is left as it was."""
    assert pytest.approx([-1, -2, -1, -1]) == lifted([-1, -2, -1, -1])


def test_only_who_may_be_found_speaks() -> None:
    """Whoever is filtered out, or is not among the candidates, has no voice."""
    gone = float("nan")

    assert pytest.approx([1, 0.5 + 0.35 * 0.5 * 1]) == lifted([gone, 1, 0.5, gone])
    assert [] == lifted([gone] * 4)


def test_a_server_without_tools_stands_alone() -> None:
    """Also where others are told by the same name: only tools are a server's."""
    entries = (
        thing("box", "catalog", "server"), thing("planner", "catalog", "agent"),
        thing("send", "mail"), thing("read", "mail"),
    )  # fmt: skip

    assert pytest.approx(0.5 + 0.35 * 0.6 * 0.5) == lifted([0.5, 2, 2, 2], catalog=entries)[0]


def test_the_one_tool_of_a_server_speaks_for_it() -> None:
    """It stands alone itself."""
    few = (thing("send", "mail"), thing("mail", "mail", "server"))

    assert pytest.approx([2 + 0.35 * 0.6 * 2, 1 + 0.35 * 2]) == lifted([2, 1], catalog=few)


def test_a_name_space_is_not_the_server_of_that_name() -> None:
    """Whoever puts an entry among somebody's tools is not lifted by them."""
    guest = thing("guest", "mail", "server")
    alone = 1 + 0.35 * 0.6 * 1

    assert alone == pytest.approx(lifted([3, 1, 0, 0, 1], catalog=(*CATALOG, guest))[-1])
