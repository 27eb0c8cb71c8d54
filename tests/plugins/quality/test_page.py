"""Reports as HTML pages."""

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


def test_page_contains_figures_and_missed_requests(run: Evaluate) -> None:
    words = read(run({"weather forecast": "play_music", "a song": "play_music"})).words

    assert {"50.0%", "weather forecast", "shelf/play_music", "not found"} <= {*words}
    assert "recall@5" in words


def test_page_escapes_texts_of_servers_and_users(run: Evaluate, open_gateway: OpenGateway) -> None:
    hostile = '<script src="http://x">$catalog</script>'
    gateway = open_gateway([tool("<img onerror=x>", "a song"), tool("b", "b")])
    request = EvalRequest(text=hostile, wanted=(("b",),), source="user", language="<i>")
    page = read(run({"a song": "b"}, request, on=gateway))

    assert {"script", "img", "i", "link"}.isdisjoint(page.tags)
    assert (LOADS | {"onerror"}).isdisjoint(page.attributes)
    assert hostile in page.words
