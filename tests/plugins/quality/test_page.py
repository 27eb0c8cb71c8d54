"""The report as a page."""

from __future__ import annotations

from html.parser import HTMLParser

from gateway.plugins.quality import EvalReport, EvalRequest, to_page
from tests.conftest import OpenGateway
from tests.fakes import tool
from tests.plugins.quality.conftest import Evaluate

LOADS = {"src", "href", "srcset", "data", "action", "background", "poster"}


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.words.append(data.strip())


def read(report: EvalReport) -> _Tags:
    tags = _Tags()
    tags.feed(to_page(report))
    return tags


def test_it_holds_the_figures_and_each_miss(run: Evaluate) -> None:
    words = read(run({"weather forecast": "play_music", "a song": "play_music"})).words

    assert {"50.0%", "weather forecast", "shelf/play_music", "not found"} <= {*words}
    assert "recall@5" in words


def test_what_servers_and_users_write_stays_text(run: Evaluate, open_gateway: OpenGateway) -> None:
    """No markup of theirs, and nothing that a browser would load."""
    evil = '<script src="http://x">$catalog</script>'
    gateway = open_gateway([tool("<img onerror=x>", "a song"), tool("b", "b")])
    asked = EvalRequest(text=evil, wanted=(("b",),), source="user", language="<i>")
    page = read(run({"a song": "b"}, asked, on=gateway))

    assert {"script", "img", "i", "link"}.isdisjoint(page.tags)
    assert (LOADS | {"onerror"}).isdisjoint(page.attributes)
    assert evil in page.words
