"""A peer (another tool search to compare with) that needs no installation."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.peering.wire import Setting, Tool, serve


class FakePeer:
    """A peer that ranks by shared words, or by vectors with ``way``."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._way = str(setting.options.get("way", "words"))
        self._texts: dict[str, str] = {}
        self._rows: dict[str, list[float]] = {}

    async def build(self, tools: Sequence[Tool]) -> str:
        print("a library that talks to standard output")  # noqa: T201  (it is what is tested)
        self._texts = {tool.name: f"{tool.name} {tool.description}" for tool in tools}
        if self._way == "vectors":
            rows = self._setting.vectors(list(self._texts.values()))
            self._rows = dict(zip(self._texts, rows, strict=True))
        return "talks"

    async def search(self, text: str, limit: int) -> Sequence[str]:
        if self._way == "vectors":
            return self._nearest(self._setting.vectors([text])[0])
        words = set(text.lower().split())
        shared = {
            name: len(words & set(own.lower().replace("_", " ").split()))
            for name, own in self._texts.items()
        }
        return sorted(shared, key=lambda name: -shared[name])

    def _nearest(self, vector: Sequence[float]) -> list[str]:
        near = {
            name: sum(a * b for a, b in zip(vector, row, strict=True))
            for name, row in self._rows.items()
        }
        return sorted(near, key=lambda name: -near[name])


if __name__ == "__main__":
    serve(FakePeer, package="")
