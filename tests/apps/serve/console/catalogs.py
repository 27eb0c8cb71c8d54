"""Catalogs on which every console page is tested."""

from __future__ import annotations

from gateway.catalog import Entry
from gateway.types import Hints, ToolDefinition
from tests.fakes import tool

SMALL = (
    tool("send_email", "Send an e-mail to somebody."),
    tool("read_email", "Read the newest e-mail."),
    tool("play_music", "Play a song."),
)
"""Tools of the server ``mail``."""
ENTRIES = (
    Entry(kind="agent", name="courier", title="Courier", description="Writes e-mail for you."),
    Entry(kind="skill", name="letter-writing", description="How to write a good letter."),
    Entry(
        kind="agent",
        name="asleep",
        description="An agent for e-mail that is switched off.",
        hints=Hints(enabled=False, tags=("mail",)),
    ),
)
MARKUP = '<img src=x onerror="window.broken=1"><script>window.broken=1</script>"\'{{7*7}}</a>'
RIGHT_TO_LEFT = "\u202egnihton\u2066 שלום العربية"
LONG = "very long " * 10_000
HOSTILE = (
    tool("markup", f"{MARKUP} {RIGHT_TO_LEFT}"),
    tool("long", LONG),
    tool("unbroken", "x" * 100_000),
)
HOSTILE_ENTRIES = (
    Entry(
        kind="agent",
        name="markup",
        title=MARKUP[:200],
        description=f"{MARKUP} {RIGHT_TO_LEFT} e-mail",
        hints=Hints(tags=(MARKUP[:60],)),
        metadata={MARKUP: [MARKUP]},
    ),
)


def many_tools(count: int) -> tuple[ToolDefinition, ...]:
    verbs = ("send", "read", "list", "delete", "update", "find", "copy", "move", "count", "open")
    nouns = ("invoice", "letter", "ticket", "branch", "image", "contact", "order", "room", "song")
    return tuple(
        tool(
            f"{verbs[n % 10]}_{nouns[n % 9]}_{n}",
            f"{verbs[n % 10].title()} the {nouns[n % 9]} of department {n // 90}.",
        )
        for n in range(count)
    )
