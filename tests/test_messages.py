"""The page of messages is up to date."""

from __future__ import annotations

import pytest

from tests.messages import PAGE, Message, collect_messages, render

REMEDY = "docs/messages.md is out of date: run python -m tests.messages"


@pytest.fixture(scope="module")
def messages() -> list[Message]:
    return collect_messages()


def test_page_of_messages_lists_the_messages_of_the_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), REMEDY


@pytest.mark.parametrize(
    ("module", "kind", "text"),
    [
        (
            "gateway/cli/session.py",
            "InvalidRequestError",
            "no server '{name}' is configured; configured servers: {choices}",
        ),
        (
            "gateway/search/request.py",
            "diagnostic context_ignored",
            "the context cannot be written as JSON",
        ),
        ("gateway/cli/commands/search.py", "option help", "Delete all stored vectors first."),
        (
            "gateway/cli/commands/search.py",
            "command help",
            "Call one tool. With an id, only its server is started.",
        ),
        ("gateway/cli/commands/servers.py", "InvalidRequestError", "--env requires NAME=VALUE"),
    ],
)
def test_collect_messages_finds_each_kind_of_message(
    messages: list[Message], module: str, kind: str, text: str
) -> None:
    assert (module, kind, text) in {(item.module, item.kind, item.text) for item in messages}
