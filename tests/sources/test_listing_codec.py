"""What a tool list that is kept comes to."""

from __future__ import annotations

from dataclasses import replace

from gateway.sources.listing_codec import decode, digest_of, encode

from gateway.types import Diagnostic
from gateway.types.listing import Listing
from tests.fakes import tool

KEPT = Listing(tools=(tool("a", "Send."), tool("b")), digests={"a": "1", "b": "2"})


def test_a_list_comes_to_the_same_when_it_is_read_late() -> None:
    """And to something else if any tool is another."""
    other = replace(KEPT, tools=(tool("a", "Receive."), tool("b")))

    assert digest_of(KEPT) == digest_of(decode(encode(KEPT)))
    assert digest_of(KEPT) != digest_of(other) != ""


def test_what_is_not_kept_or_doubted_comes_to_nothing() -> None:
    """A doubt is no part of what is kept, and must not pass for a tool that nobody doubts."""
    doubt = Diagnostic(stage="catalog", code="tool_suspicious", detail="srv/a")
    doubted = replace(KEPT, tools=(replace(KEPT.tools[0], doubts=(doubt,)), tool("b")))

    assert "" == digest_of(doubted) == digest_of(replace(KEPT, digests={}))
