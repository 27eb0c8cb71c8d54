"""Edits of one member in a JSON file with comments."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from gateway.config import parse, with_member, without_member
from gateway.errors import ConfigError

COMMENTED = """\
// Mine.
{
    "mcpServers": {
        // The first.
        "a": {"command": "x"}, // stays
        "b": {
            "command": "y", /* y */
            "args": ["{", "//", "\\"}"],
        } // last
    },
    "theme": "dark",
}
"""


def add_member(text: str, *path: str, value: object = None) -> str:
    return with_member(text, path, {"command": "new"} if value is None else value, where="f.json")


def remove_member(text: str, *path: str) -> str:
    return without_member(text, path, where="f.json")


def test_new_member_is_appended_with_the_indent_of_the_file() -> None:
    """Comments keep their position."""
    expected = COMMENTED.replace(
        "        } // last\n",
        '        }, // last\n        "c": {\n            "command": "new"\n        }\n',
    )

    assert expected == add_member(COMMENTED, "mcpServers", "c")
    assert COMMENTED == remove_member(expected, "mcpServers", "c")


def test_existing_member_is_replaced_in_place() -> None:
    changed = add_member(COMMENTED, "mcpServers", "a", value={"url": "z"})

    assert '        "a": {\n            "url": "z"\n        }, // stays\n' in changed
    assert COMMENTED.split('"b"')[1] == changed.split('"b"')[1]


@pytest.mark.parametrize("name", ["a", "b"])
def test_member_is_removed_with_its_lines(name: str) -> None:
    """*name* is the first or the last member, with or without a comma."""
    remaining = remove_member(COMMENTED, "mcpServers", name)
    whole = parse(remaining, where="f")

    assert isinstance(whole, dict)
    assert {"a", "b"} - {name} == set(whole["mcpServers"])
    assert ("// The first." in remaining, '"theme": "dark",' in remaining) == (True, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '{\n  "s": {\n    "n": 1\n  }\n}\n'),
        ("{}", '{\n  "s": {\n    "n": 1\n  }\n}'),
        ('{"s": {}}', '{"s": {\n  "n": 1\n}}'),
        ('{"s": {"a": 2}}', '{"s": {"a": 2, "n": 1}}'),
        ('{"a": 2}', '{"a": 2, "s": {"n": 1}}'),
        ('{"s": {"a": 2,}}', '{"s": {"a": 2, "n": 1}}'),
        ('{\r\n\t"s": {\r\n\t}\r\n}', '{\r\n\t"s": {\r\n\t\t"n": 1\r\n\t}\r\n}'),
        ('{\n "s": {\n  "a": 2,\n }\n}', '{\n "s": {\n  "a": 2,\n  "n": 1\n }\n}'),
        ('{\n "s": 7\n}', '{\n "s": {\n  "n": 1\n }\n}'),
    ],
)
def test_edit_keeps_the_layout_of_small_files(text: str, expected: str) -> None:
    """A file of one line stays one line; tabs and line ends are kept."""
    assert expected == add_member(text, "s", "n", value=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"s": {"n": 1}}', '{"s": {}}'),
        ('{"s": {"n": 1, "a": 2}}', '{"s": {"a": 2}}'),
        ('{"s": {"a": 2, "n": 1}}', '{"s": {"a": 2}}'),
        ('{"s": {"a": 2}}', '{"s": {"a": 2}}'),
        ('{"a": 2}', '{"a": 2}'),
        ('{\n "s": {\n  "n": 1\n }\n}', '{\n "s": {\n }\n}'),
    ],
)
def test_removal_keeps_the_other_members(text: str, expected: str) -> None:
    """Removing a member that is missing changes nothing."""
    assert expected == remove_member(text, "s", "n")


KEYS = some.sampled_from(["a", "b", 'q"', "//", "é"])
VALUES = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@settings(deadline=None, max_examples=60)
@given(some.dictionaries(KEYS, VALUES), KEYS, VALUES, some.sampled_from([None, 2, "\t"]))
def test_set_and_remove_change_only_their_member(
    whole: dict[str, object], key: str, value: object, indent: str | int | None
) -> None:
    text = json.dumps(whole, indent=indent, ensure_ascii=False)
    changed = with_member(text, ("s", key), value, where="f")
    back = without_member(changed, ("s", key), where="f")

    assert {**whole, "s": {key: value}} == json.loads(changed)
    assert {**whole, "s": {}} == json.loads(back)


@pytest.mark.parametrize("text", ["[]", "7", "{", "{'s': {'n': 1}}"])
def test_edit_of_json_that_could_damage_the_file_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"f\.json"):
        add_member(text, "s", "m")


@pytest.mark.parametrize("text", ["{x: '}', }", "{a: 'x}y', \"s\": {}}", "{x: ',', }"])
def test_edit_of_json5_strings_with_braces_is_refused(text: str) -> None:
    """JSON5 allows single quotes, which the editor does not understand. It discards its result if
    that parses differently.
    """
    with pytest.raises(ConfigError, match="by hand"):
        add_member(text, "s", "m")


def test_removal_of_a_duplicate_member_is_refused() -> None:
    """Otherwise the other member of the same name would become effective."""
    with pytest.raises(ConfigError, match="twice in one object: remove one"):
        remove_member('{"s": {"n": 1, "n": 2}}', "s", "n")


def test_comments_and_trailing_commas_are_parsed() -> None:
    """VS Code writes comments and trailing commas."""
    assert {"a": [1]} == parse("{// x\n'a': [1,], /* y */}", where="f")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"a": }', "line 1, column 7: Expecting value"),
        ('// x\n{"a": 1,\n "b"}', "line 3"),
        ('{"a": "x', "line 1"),
        ("", "line 1, column 1"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_json_parse_error_names_line_and_column(text: str, named: str) -> None:
    with pytest.raises(ConfigError, match=r"f\.json") as caught:
        parse(text, where="f.json")

    assert named in str(caught.value)
