"""Who wants to be found for everything, and how broad a catalog is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.embed.yardstick import Yardstick
from gateway.index.eligibility import Mask
from gateway.index.name_terms import NameTerms
from gateway.index.vectors.exact import VectorIndex
from gateway.runtime.vectors import Matrix, Vector
from gateway.search.dense.boasts import Boasts
from gateway.search.dense.doubting import among, doubts
from gateway.search.dense.doubts import MAX_DOUBT, Doubts
from gateway.search.dense.kinship import LEARNED, UNLEARNED, narrowness
from gateway.search.dense.mates import Mates
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
    found = doubted(words, servers, rows, yardstick, listed)
    return None if found is None else found.lost


def doubted(
    words: Postings,
    servers: Sequence[str],
    rows: Matrix | None = None,
    yardstick: Yardstick | None = None,
    listed: Mask | None = None,
) -> Doubts | None:
    """Weigh a fresh catalog."""
    vectors = None if rows is None else VectorIndex.of(rows)
    moves = Moves(size=0, gone=(), new=range(words.size))
    mates = Mates.of(servers)
    near_a_boast = Boasts().change(vectors, moves, None, yardstick, mates)
    return doubts(NameTerms.of(words), mates, near_a_boast, listed)


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
    assert not most[: len(NAMES)].any()


def test_where_most_of_a_server_is_doubted_all_of_it_is() -> None:
    """Also who says little: a request would find it instead."""
    heap = ("do_it", f"Do {' '.join(NAMES)}.")
    words = index(*honest(), *([heap] * 5), ("do_it", "Do it."))

    found = lost(words, [*(["own"] * len(NAMES)), *(["stranger"] * 6)])

    assert found is not None
    assert found[-1] == pytest.approx(found[-2])


def test_where_many_speak_of_all_the_others_do_too_nobody_is_doubted() -> None:
    """Beside a large server whose names hold nearly every word, each says what somebody's name is.

    The large one's own tools say as much of each other; where it speaks of nobody, that tells.
    """
    pairs = [(one, other) for one in NAMES for other in NAMES if one < other]
    large = [(f"{one}_{other}", f"Do {' '.join(NAMES)}.") for one, other in pairs]
    plain = [(f"{one}_{other}", "Do it.") for one, other in pairs]
    small = [("wash", f"Wash {' '.join(NAMES)}.")] * 3
    owners = [*(["large"] * len(pairs)), *(["small"] * 3)]

    assert lost(index(*large, *small), owners) is None
    against = lost(index(*plain, *small), owners)
    assert against is not None
    assert against[-3:].all()


def test_what_third_parties_say_of_others_is_usual_too() -> None:
    """As many words of the others' names as most servers hold are no sign."""
    told = f"Do {' '.join(NAMES)}."
    words = index(*honest(), *[(f"wash_{each}", told) for each in range(4)])
    owners = [*(["own"] * len(NAMES)), "a", "b", "c", "d"]

    assert lost(words, owners) is None
    alone = lost(index(*honest(), ("wash", told)), owners[: len(NAMES) + 1])
    assert alone is not None


def test_a_name_as_long_as_a_text_is_no_name() -> None:
    """Whoever writes all words into one makes none its own, and nobody else's words foreign."""
    named = ("_".join(NAMES), f"Do {' '.join(NAMES)}.")
    words = index(*honest(), named, ("do_it", f"Do {' '.join(NAMES)}."))

    found = lost(words, [*(["own"] * len(NAMES)), "stranger", "stranger"])

    assert found is not None
    assert found[-2:].all()
    assert not found[:-2].any()
    plain = [("wash", f"Wash {' '.join(NAMES)}.")]
    assert lost(index(*plain, *([named] * 2)), ["own", "stranger", "stranger"]) is None


def test_of_many_doubted_tools_none_is_heard() -> None:
    """Of three each is, as of none; whoever is not doubted is heard in any case."""
    spoken = [[f"{name}{number}" for name in NAMES] for number in range(12)]
    plain = [(f"get_{word}", "Get it.") for each in spoken for word in each]
    unheard = []
    for count in (3, 6, 10, 12):
        heaps = [("do_it", f"Do {' '.join(each)}.") for each in spoken[:count]]
        found = doubted(index(*plain, *heaps), [*(["own"] * len(plain)), *(["other"] * count)])
        assert found is not None
        assert not found.unheard[: len(plain)].any()
        unheard.append(float(found.unheard[-1]))

    assert [0, pytest.approx(3 / 7), 1, 1] == unheard


def test_the_name_of_what_no_server_lists_is_nobody_elses_word() -> None:
    """A server's own entry is not its tool's rival, nor is an agent."""
    entries = [(name, f"All about one {name}.") for name in NAMES]
    words = index(*entries, ("do_it", f"Do {' '.join(NAMES)}."))
    owners = [*NAMES, "mine"]

    rivals = lost(words, owners)

    assert rivals is not None
    assert rivals[-1] > 0
    assert lost(words, owners, listed=np.array([*([False] * len(NAMES)), True])) is None


def test_an_entry_may_speak_of_tools() -> None:
    """A server's own does: it is no measure for tools either."""
    words = index(*honest(), ("mine", f"It has {' '.join(NAMES)}."), ("do_it", "Do it."))
    heap = index(
        *honest(), ("mine", f"It has {' '.join(NAMES)}."), ("do", f"Do {' '.join(NAMES)}.")
    )
    owners = [*(["own"] * len(NAMES)), "entry", "stranger"]
    listed = np.array([*([True] * len(NAMES)), False, True])

    assert lost(words, owners, listed=listed) is None
    found = lost(heap, owners, listed=listed)
    assert found is not None
    assert [False, True] == (found[-2:] > 0).tolist()


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

    found = lost(index(("a", "b"), ("c", "d")), ["s", "t"], rows, BOAST)

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


@pytest.mark.parametrize("below", [10, 1 << 40])
def test_a_crowd_of_servers_is_judged_as_a_few_are(below: int) -> None:
    """Where a table would not fit, numbers are searched for."""
    found = among(np.array([3, 1, 9, 3]), np.array([3, 4]), below)

    assert [True, False, False, True] == found.tolist()
