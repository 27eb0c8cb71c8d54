"""Who wants to be found for everything, and how broad a catalog is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.embed.yardstick import Yardstick
from gateway.search.dense.doubts import MAX_DOUBT, Boasts, among, doubts
from gateway.search.dense.kinship import LEARNED, UNLEARNED, narrowness
from gateway.search.dense.mates import Mates
from gateway.search.dense.scan import VectorIndex
from gateway.search.eligible import Mask
from gateway.search.index.names import Names
from gateway.vectors import Matrix, Vector
from graphs import Postings
from graphs.arrays import Moves

WEIGHTS = {"name": 3.0, "description": 1.0}
NAMES = ("weather", "flight", "invoice", "recipe", "train", "parcel", "song", "doctor", "lamp")
BOAST = Yardstick(strangers=0.0, matches=0.2, boast=np.array([1, 0], np.float32))


def index(*texts: tuple[str, str]) -> Postings:
    return Postings.build(
        [{"name": name, "description": told} for name, told in texts], weights=WEIGHTS
    )


def honest() -> list[tuple[str, str]]:
    return [(f"get_{name}", f"Get one {name}.") for name in NAMES]


def lost(
    words: Postings,
    servers: Sequence[str],
    rows: Matrix | None = None,
    yardstick: Yardstick | None = None,
    listed: Mask | None = None,
) -> Vector | None:
    """What each tool of a fresh catalog loses."""
    vectors = None if rows is None else VectorIndex.of(rows)
    moves = Moves(size=0, gone=(), new=range(words.size))
    near_a_boast = Boasts().change(vectors, moves, None, yardstick)
    return doubts(Names.of(words), Mates.of(servers), near_a_boast, listed)


def test_who_speaks_of_what_all_others_do_is_doubted() -> None:
    """Not who speaks of its own server's things, and nobody where there is one server."""
    heap = ("do_it", f"Do {' '.join(NAMES)}.")
    words = index(*honest(), heap)

    stranger = lost(words, [*(["own"] * len(NAMES)), "stranger"])

    assert stranger is not None
    assert stranger[-1] > 0
    assert not stranger[:-1].any()
    assert lost(words, ["own"] * (len(NAMES) + 1)) is None


def test_one_tool_of_a_server_may_speak_of_others_by_chance() -> None:
    """Most of them do not."""
    heap = ("do_it", f"Do {' '.join(NAMES)}.")
    plain = [(f"wash_{number}", f"Wash shirt {number}.") for number in range(5)]
    owners = ["own"] * len(NAMES)

    assert lost(index(*honest(), heap, *plain), [*owners, *(["stranger"] * 6)]) is None
    most = lost(index(*honest(), heap, *([heap] * 3), *plain[:2]), [*owners, *(["stranger"] * 6)])
    assert most is not None
    assert most[len(NAMES) : len(NAMES) + 4].all()


def test_the_name_of_what_no_server_lists_is_nobody_elses_word() -> None:
    """A server's own entry is not its tool's rival, nor is an agent."""
    entries = [(name, f"All about one {name}.") for name in NAMES]
    words = index(*entries, ("do_it", f"Do {' '.join(NAMES)}."))
    owners = [*NAMES, "mine"]

    rivals = lost(words, owners)

    assert rivals is not None
    assert rivals[-1] > 0
    assert lost(words, owners, listed=np.array([*([False] * len(NAMES)), True])) is None


def test_nobody_is_doubted_for_a_few_words() -> None:
    """Nor in a catalog without names, or without anything."""
    words = index(*honest(), ("take_it", "Take the weather to the train."))

    assert lost(words, [*(["own"] * len(NAMES)), "stranger"]) is None
    assert lost(Postings.build([], weights=WEIGHTS), []) is None
    nameless = Postings.build([{"description": "a"}] * 2, weights={"description": 1.0})
    assert lost(nameless, ["own", "other"]) is None


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=2))
def test_what_boasts_loses_and_never_more_than_the_most(cosines: Sequence[float]) -> None:
    """The nearer to a boast, the more."""
    low, high = sorted(cosines)
    rows = np.array([[low, (1 - low**2) ** 0.5], [high, (1 - high**2) ** 0.5]], np.float32)

    found = lost(index(("a", "b"), ("c", "d")), ["s", "s"], rows, BOAST)

    losses = np.zeros(2) if found is None else found
    assert 0 <= losses[0] <= losses[1] <= MAX_DOUBT
    assert (losses[1] > 0) == (BOAST.nearness(float(rows[1, 0])) > 1.3 + 1e-6)


def test_without_a_vector_of_boasts_nobody_boasts() -> None:
    """As in a catalog too small to measure a model for."""
    rows = np.array([[1, 0]], np.float32)
    unmeasured = Yardstick(strangers=0, matches=0.2)

    assert lost(index(("a", "b")), ["s"], rows, unmeasured) is None


def near(likeness: float, count: int = 40) -> Matrix:
    """Give tools in pairs that are so like each other, and like nobody else."""
    rows = np.eye(count, dtype=np.float32)
    rows[1::2] = likeness * rows[::2] + (1 - likeness**2) ** 0.5 * rows[1::2]
    return rows


@pytest.mark.parametrize("learned", [False, True])
def test_a_catalog_of_strangers_is_broad_and_one_of_kin_narrow(*, learned: bool) -> None:
    """What has its like beside it belongs to a subject."""
    least = (LEARNED if learned else UNLEARNED).least
    broad, half, narrow = (
        narrowness(VectorIndex.of(near(each)), BOAST, learned=learned) for each in (0.5, 0.6, 0.7)
    )

    assert (least, 1.0) == (broad, narrow)
    assert least < half < 1


def test_two_heaps_of_strangers_are_no_subject() -> None:
    """What foreign kin come beside, is as lonely as it was."""
    alone = near(0.3)
    both = np.zeros((70, 80), np.float32)
    both[:40, :40], both[40:, 40:] = alone, near(0.9)[:30]

    assert LEARNED.least == narrowness(VectorIndex.of(both), BOAST, learned=True)
    assert LEARNED.least == narrowness(VectorIndex.of(alone), BOAST, learned=True)


def test_without_a_scale_nobody_says_no_early() -> None:
    """Words need none; one tool alone has nothing in common with anybody; many are kin."""
    rows = VectorIndex.of(near(0.1))

    assert (1.0, UNLEARNED.least) == (narrowness(None, BOAST), narrowness(rows, None))
    assert UNLEARNED.least == narrowness(VectorIndex.of(near(0.1)[:1]), BOAST)


def test_a_large_catalog_is_slower_to_say_no() -> None:
    """Of twice as many tools one is twice as likely to serve; beyond a bound nobody counts."""
    rows = [np.tile(near(0.7, 20), (size // 20 + 1, 1))[:size] for size in (500, 1000, 4001, 8002)]
    learned, unlearned = (
        [narrowness(VectorIndex.of(each), BOAST, learned=by) for each in rows]
        for by in (True, False)
    )

    assert [1.0, 0.5, 0.125, 0.125] == learned
    assert [1.0] * 4 == unlearned


def test_what_stays_is_not_measured_again() -> None:
    """A row that came and one that left: as if all were measured anew."""
    before = np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32)
    after = np.array([[0.8, 0.6], [0, 1], [0.6, 0.8]], np.float32)
    fresh = np.array([0])
    kept = Boasts()
    kept.change(VectorIndex.of(before), Moves(size=0, gone=(), new=range(3)), None, BOAST)

    moves = Moves(size=3, gone=(0,), new=(0,))
    found = kept.change(VectorIndex.of(after), moves, fresh, BOAST)

    assert found is not None
    np.testing.assert_allclose(found, BOAST.nearness(after[:, 0]))


@pytest.mark.parametrize("below", [10, 1 << 40])
def test_a_crowd_of_servers_is_judged_as_a_few_are(below: int) -> None:
    """Where a table would not fit, numbers are searched for."""
    found = among(np.array([3, 1, 9, 3]), np.array([3, 4]), below)

    assert [True, False, False, True] == found.tolist()
