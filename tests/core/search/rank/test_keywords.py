"""Keyword scores with the weights of server registries; values are computed by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gateway.index import lexical_fields
from gateway.search import Keywords, count_keywords
from gateway.types import Entity, Hints, Kind
from graphs import BM25Index
from tests.fakes import entity, tool


def thing(name: str, text: str = "", *, kind: Kind = "tool", tags: Sequence[str] = ()) -> Entity:
    """Return an entity of the server `box`, or that server itself."""
    definition = entity(tool(name, text, hints=Hints(tags=tuple(tags))), server="box")
    return Entity(
        id="server:box" if kind == "server" else definition.id,
        kind=kind,
        exposed_name=name,
        server="box",
        definition=definition.definition,
        parent="" if kind == "server" else "server:box",
    )


def keywords(query: str, *entities: Entity, mask: Sequence[bool] = ()) -> Keywords:
    index = BM25Index.build(
        [lexical_fields(entity) for entity in entities],
        weights={"name": 3.0, "title": 2.0, "hints": 2.0, "description": 1.0, "server": 0.7},
    )
    allowed = np.asarray(mask or [True] * len(entities))
    return count_keywords(index, index.analyze(query), entities, allowed)


def test_each_field_with_a_word_of_the_query_adds_its_boost_once() -> None:
    """Boosts: server and name 5, name 3, description 2, tag 1.5. Two words in one field count
    once.
    """
    scores = keywords(
        "send mail",
        thing("send_mail", "Deliver a mail, send it."),
        thing("deliver", "Send a letter."),
        thing("other", tags=["mail"]),
        thing("unrelated", "Nothing of it."),
    )

    np.testing.assert_allclose(scores.boost, [5 + 3 + 2, 2, 1.5, 0])


def test_server_boost_grows_with_its_matching_eligible_tools() -> None:
    """Each tool counts once, whether its name or its description matches. Ineligible tools do not
    count.
    """
    catalog = (
        thing("box", kind="server"),
        thing("send_mail"),
        thing("read", "Read mail."),
        thing("mail_secretly"),
    )

    assert 2 == keywords("mail", *catalog, mask=[True, True, True, False]).boost[0]
    assert 3 == keywords("mail", *catalog).boost[0]


def test_keywords_match_only_whole_words() -> None:
    """`mail` does not match `mailbox`. Endings of words do not matter."""
    scores = keywords("mails", thing("mailbox"), thing("send_mail"), thing("e"))

    np.testing.assert_allclose(scores.boost, [0, 8, 0])


def test_word_earns_ten_points_as_the_name_and_five_within_it() -> None:
    """The share is the points divided by the maximum: 12 for each word of the query, even for
    unknown ones.
    """
    scores = keywords(
        "search xyzzy", thing("search", "Search."), thing("search_mail"), thing("m", "Search it.")
    )

    np.testing.assert_allclose(scores.share, [12 / 24, 5 / 24, 2 / 24])


def test_words_that_form_the_whole_name_earn_ten_points_each() -> None:
    """The maximum for two words is 24. They earn 20 as the whole name, 10 as part of a name."""
    scores = keywords(
        "take screenshot",
        thing("take_screenshot"),
        thing("takeScreenshot"),
        thing("take_screenshot_now"),
    )

    np.testing.assert_allclose(scores.share, [20 / 24, 20 / 24, 10 / 24], rtol=1e-6)


def test_near_spellings_earn_no_points() -> None:
    assert not keywords("serach", thing("search")).boost.any()
