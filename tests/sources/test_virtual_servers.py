"""What an alias of a resource or a prompt stands for, and which nothing may have."""

from __future__ import annotations

import pytest

from gateway.errors import ConfigError
from gateway.sources.virtual import Alias, VirtualServer, resolve_alias

ALIASES = {
    "docs:today": "files/file:///notes.txt",
    "docs:{path}": "files/file:///{path}",
    "docs:old/{path}": "attic/box://{path}",
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("docs:today", "files/file:///notes.txt"),
        ("docs:{path}", "files/file:///{path}"),
        ("docs:a/b.txt", "files/file:///a/b.txt"),
        ("docs:old/a", "attic/box://a"),
        ("doc:x", None),
    ],
)
def test_an_alias_leads_to_what_it_stands_for(name: str, expected: str | None) -> None:
    """A URI that was made of the alias of a template too, by the longest that fits."""
    assert expected == resolve_alias(ALIASES, "resource", name)


def test_the_name_of_a_prompt_is_no_template() -> None:
    """It is called as it is, or not at all."""
    assert [None, "s/a{b"] == [
        resolve_alias({"a{b": "s/a{b"}, "prompt", each) for each in ("ac", "a{b")
    ]


@pytest.mark.parametrize(
    ("alias", "of", "told"),
    [
        ("today", "files/a:b", "is a URI"),
        ("docs:\u200b", "files/a:b", "can be seen"),
        (" ", "files/a:b", "can be seen"),
        ("d:" + "x" * 2000, "files/a:b", "can be seen"),
        ("docs:{id}", "files/file:///{path}", "must end as"),
        ("docs:x", "files/file:///{path}", "must end as"),
        ("docs:x", "files", "server/URI"),
    ],
)
def test_a_resource_that_nothing_could_be_called_is_refused(alias: str, of: str, told: str) -> None:
    """Before anything is read."""
    with pytest.raises(ConfigError, match=told):
        VirtualServer(name="v", tools={}, resources={alias: Alias(of=of)})


def test_a_prompt_that_nothing_could_be_called_is_refused() -> None:
    """It is shorter than a URI."""
    with pytest.raises(ConfigError, match="1 to 128 characters"):
        VirtualServer(name="v", tools={}, prompts={"p" * 129: Alias(of="a/b")})


def test_tables_without_things_are_the_same_as_before() -> None:
    """What was pinned under a table stays pinned."""
    plain = VirtualServer(name="v", tools={"a": Alias(of="s/b")})
    more = VirtualServer(name="v", tools=plain.tools, prompts={"p": Alias(of="s/q")})

    assert plain.fingerprint.startswith("f616347d")
    assert plain.fingerprint != more.fingerprint
    assert {"s"} == more.servers
