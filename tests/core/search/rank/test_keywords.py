"""The keyword scales of registries, by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gateway.index import lexical_fields
from gateway.search import Keywords, count_keywords
from gateway.types import Entity, Hints, Kind
from graphs import BM25Index
from tests.fakes import entity, tool


def thing(name: str, text: str = "", *, kind: Kind = "tool", tags: Sequence[str] = ()) -> Entity:
    """Make an entity of the server `box`, or that server itself."""
    made = entity(tool(name, text, hints=Hints(tags=tuple(tags))), server="box")
    return Entity(
        id="server:box" if kind == "server" else made.id,
        kind=kind,
        exposed_name=name,
        server="box",
        definition=made.definition,
        parent="" if kind == "server" else "server:box",
    )


def keywords(query: str, *entities: Entity, mask: Sequence[bool] = ()) -> Keywords:
    index = BM25Index.build(
        [lexical_fields(each) for each in entities],
        weights={"name": 3.0, "title": 2.0, "hints": 2.0, "description": 1.0, "server": 0.7},
    )
    allowed = np.asarray(mask or [True] * len(entities))
    return count_keywords(index, index.analyze(query), entities, allowed)


def test_each_field_adds_its_weight_once() -> None:
    """Path 5, name 3, description 2, tag 1.5; two words in one field are one."""
    found = keywords(
        "send mail",
        thing("send_mail", "Deliver a mail, send it."),
        thing("deliver", "Send a letter."),
        thing("other", tags=["mail"]),
        thing("unrelated", "Nothing of it."),
    )

    np.testing.assert_allclose(found.boost, [5 + 3 + 2, 2, 1.5, 0])


def test_a_server_counts_its_tools_that_may_be_found() -> None:
    """One each, whatever field; what is not eligible speaks for nobody."""
    catalog = (
        thing("box", kind="server"),
        thing("send_mail"),
        thing("read", "Read mail."),
        thing("mail_secretly"),
    )

    assert 2 == keywords("mail", *catalog, mask=[True, True, True, False]).boost[0]
    assert 3 == keywords("mail", *catalog).boost[0]


def test_a_word_stands_as_a_word() -> None:
    """`the` is not in `theme`, nor `mail` in `mailbox`; endings do not matter."""
    found = keywords("mails", thing("mailbox"), thing("send_mail"), thing("e"))

    np.testing.assert_allclose(found.boost, [0, 8, 0])


def test_a_name_that_is_the_word_earns_ten_and_one_that_holds_it_five() -> None:
    """12 is what a word can earn: the share is of 12 for each word, also for those nobody knows."""
    found = keywords(
        "search xyzzy", thing("search", "Search."), thing("search_mail"), thing("m", "Search it.")
    )

    np.testing.assert_allclose(found.share, [12 / 24, 5 / 24, 2 / 24])


def test_words_that_are_a_name_together_earn_ten_each() -> None:
    """Of what two words can earn, 24: the name in whatever spelling 20, a part of one 10."""
    found = keywords(
        "take screenshot",
        thing("take_screenshot"),
        thing("takeScreenshot"),
        thing("take_screenshot_now"),
    )

    np.testing.assert_allclose(found.share, [20 / 24, 20 / 24, 10 / 24], rtol=1e-6)


def test_near_spellings_earn_nothing() -> None:
    """They are guesses."""
    assert not keywords("serach", thing("search")).boost.any()
