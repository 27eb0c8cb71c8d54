"""Redaction of arguments and results by policies."""

from __future__ import annotations

import json

import pytest

from gateway.options import AccessPolicy
from gateway.plugins.access import Redactor
from gateway.types import Content, InvokeResult

KEY = "ghp_" + "a1B2" * 10


def redactor(*paths: str, secrets: bool = False) -> Redactor:
    return Redactor([AccessPolicy(action="redact", paths=paths, secrets=secrets)])


@pytest.mark.parametrize(
    ("path", "value", "hidden"),
    [
        ("a", {"a": 1, "b": {"a": 2}}, {"a": "[redacted]", "b": {"a": 2}}),
        ("a.b", {"a": {"b": {"c": 1}, "d": 2}}, {"a": {"b": "[redacted]", "d": 2}}),
        ("a.b", {"a": [{"b": 1}, {"c": 2}]}, {"a": [{"b": "[redacted]"}, {"c": 2}]}),
        (
            "*.b",
            {"x": {"b": 1}, "y": {"b": 2}},
            {"x": {"b": "[redacted]"}, "y": {"b": "[redacted]"}},
        ),
        ("a.b.c", {"a": {"b": 1}}, {"a": {"b": 1}}),
        ("a", [{"a": 1}], [{"a": "[redacted]"}]),
    ],
)
def test_path_redacts_a_field(path: str, value: object, hidden: object) -> None:
    """Paths apply to objects in lists. A missing field is ignored."""
    assert hidden == redactor(path).value(value)


def test_secrets_are_redacted_by_form_and_by_field_name() -> None:
    value = {"password": "hunter2", "note": f"use {KEY} now", "list": [KEY], "count": 3}

    hidden = redactor(secrets=True).value(value)

    assert {
        "password": "[redacted]",
        "note": "use [redacted] now",
        "list": ["[redacted]"],
        "count": 3,
    } == hidden


def test_result_is_redacted_in_all_its_forms() -> None:
    """JSON in a text is redacted by path. Image data is not changed."""
    whole = {"customer": {"email": "ada@example.org", "name": "Ada"}}
    picture = {"type": "image", "mimeType": "image/png", "data": KEY}
    text = json.dumps(whole)
    result = InvokeResult(
        tool_id="a/x",
        content=(
            Content(type="text", text=text, data={"type": "text", "text": text}),
            Content(type="image", data=picture),
            Content(
                type="resource",
                text=text,
                data={"type": "resource", "resource": {"uri": "u://x", "text": text}},
            ),
        ),
        structured=whole,
    )

    hidden = redactor("customer.email", secrets=True).result(result)

    assert "ada@example.org" not in repr(hidden)
    assert 4 <= repr(hidden).count("Ada")
    assert picture == hidden.content[1].data
    assert {"customer": {"email": "[redacted]", "name": "Ada"}} == json.loads(
        hidden.text.split("\n")[0]
    )


def test_duplicate_field_in_a_text_is_removed_or_redacted() -> None:
    """A reader of the text may use the first occurrence."""
    text = '{"email": "ada@example.org", "email": null}'

    assert "ada" not in redactor("email").text(text)
    assert "ada" not in redactor("customer.email").text(f'{{"customer": {text}, "customer": {{}}}}')


def test_path_applies_inside_the_object_that_a_server_wraps_around_a_list() -> None:
    """The text of the result contains the list without that object."""
    rows = [{"email": "ada@example.org"}]
    result = InvokeResult(
        tool_id="a/x",
        content=(Content(type="text", text=json.dumps(rows)),),
        structured={"result": rows},
    )

    assert "ada" not in repr(redactor("email").result(result))


def test_secrets_in_lists_of_a_block_are_redacted() -> None:
    block = {"type": "text", "text": "x", "_meta": {"seen": [KEY, {"last": KEY}]}}

    assert KEY not in repr(redactor(secrets=True).block(block))


def test_result_is_not_copied_without_rules() -> None:
    result = InvokeResult(tool_id="a/x", structured={"password": "x"})

    assert result is Redactor([]).result(result)
