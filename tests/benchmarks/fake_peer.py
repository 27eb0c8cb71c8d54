"""A peer that needs no installation, with an adapter that speaks the real protocol."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Sequence

from benchmarks.peering.wire import Setting, Tool, serve


class FakePeer:
    """Ranks by shared words; by the option ``way`` by vectors or in other, worse manners."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._way = str(setting.options.get("way", "words"))
        self._texts: dict[str, str] = {}
        self._rows: dict[str, list[float]] = {}

    async def build(self, tools: Sequence[Tool]) -> str:
        if self._way == "crash":
            raise RuntimeError("the catalog is not to my taste")
        print("a library that talks to standard output")  # noqa: T201  (it is what is tested)
        self._texts = {tool.name: f"{tool.name} {tool.description}" for tool in tools}
        if self._way == "vectors":
            rows = self._setting.vectors(list(self._texts.values()))
            self._rows = dict(zip(self._texts, rows, strict=True))
        if self._way == "http":
            self._rows = {name: self._posted(text) for name, text in self._texts.items()}
        return "talks"

    async def search(self, text: str, limit: int) -> Sequence[str]:
        if self._way == "hang":
            sys.stdin.readline()
        if self._way == "vectors":
            return self._nearest(self._setting.vectors([text])[0])
        if self._way == "http":
            return self._nearest(self._posted(text))
        words = set(text.lower().split())
        shared = {
            name: len(words & set(own.lower().replace("_", " ").split()))
            for name, own in self._texts.items()
        }
        return sorted(shared, key=lambda name: -shared[name])

    def _nearest(self, asked: Sequence[float]) -> list[str]:
        near = {
            name: sum(a * b for a, b in zip(asked, row, strict=True))
            for name, row in self._rows.items()
        }
        return sorted(near, key=lambda name: -near[name])

    def _posted(self, text: str) -> list[float]:
        body = json.dumps({"input": text, "model": "given"}).encode()
        address = f"{self._setting.endpoint}/embeddings"
        request = urllib.request.Request(address, data=body, method="POST")  # noqa: S310  (ours)
        with urllib.request.urlopen(request) as answer:  # noqa: S310  (ours)
            row: list[float] = json.load(answer)["data"][0]["embedding"]
        return row


if __name__ == "__main__":
    serve(FakePeer, package="")
