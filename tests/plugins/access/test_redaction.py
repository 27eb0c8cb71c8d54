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
def test_redactor_hides_the_value_at_a_path(path: str, value: object, hidden: object) -> None:
    """In a list, the path applies to each object. If the field is missing, nothing changes."""
    assert hidden == redactor(path).value(value)


def test_redactor_hides_secrets_recognized_by_form_or_field_name() -> None:
    value = {"password": "hunter2", "note": f"use {KEY} now", "list": [KEY], "count": 3}

    hidden = redactor(secrets=True).value(value)

    assert {
        "password": "[redacted]",
        "note": "use [redacted] now",
        "list": ["[redacted]"],
        "count": 3,
    } == hidden


def test_redactor_hides_values_in_structured_content_and_in_texts() -> None:
    """A text that is JSON is redacted by path too. Image data is not changed."""
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


def test_redactor_removes_duplicate_fields_from_json_texts() -> None:
    """Only the last value is redacted, and a reader of the text may use the first one."""
    text = '{"email": "ada@example.org", "email": null}'

    assert "ada" not in redactor("email").text(text)
    assert "ada" not in redactor("customer.email").text(f'{{"customer": {text}, "customer": {{}}}}')


def test_redaction_path_applies_inside_the_object_that_wraps_a_list() -> None:
    """MCP servers wrap a list in an object. The text of the result contains the list without it."""
    rows = [{"email": "ada@example.org"}]
    result = InvokeResult(
        tool_id="a/x",
        content=(Content(type="text", text=json.dumps(rows)),),
        structured={"result": rows},
    )

    assert "ada" not in repr(redactor("email").result(result))


def test_redactor_hides_secrets_in_lists_inside_a_content_block() -> None:
    block = {"type": "text", "text": "x", "_meta": {"seen": [KEY, {"last": KEY}]}}

    assert KEY not in repr(redactor(secrets=True).block(block))


def test_redactor_without_policies_returns_the_same_result_object() -> None:
    result = InvokeResult(tool_id="a/x", structured={"password": "x"})

    assert result is Redactor([]).result(result)
