"""Parser of `deploy/Containerfile`: stages and their instructions."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy" / "Containerfile"


@dataclass(frozen=True, slots=True)
class Stage:
    """Instructions of one stage, as (word, arguments)."""

    instructions: tuple[tuple[str, str], ...]

    def all(self, word: str) -> list[str]:
        return [text for item, text in self.instructions if item == word]

    def one(self, word: str) -> str:
        """Return the arguments of *word*, which must occur once."""
        (text,) = self.all(word)
        return text

    def command(self, word: str) -> Any:
        """Return the arguments of *word* that are a JSON list, as in CMD."""
        return json.loads(re.sub(r"^.*?CMD ", "", self.one(word), flags=re.DOTALL))

    @property
    def env(self) -> dict[str, str]:
        pairs = (pair for text in self.all("ENV") for pair in shlex.split(text))
        return dict(pair.split("=", 1) for pair in pairs)


def stages() -> tuple[Stage, Stage]:
    """Return the build stage and the runtime stage."""
    lines = [line for line in FILE.read_text("utf-8").splitlines() if not line.startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ")
    result = [tuple(line.split(" ", 1)) for line in whole.splitlines() if line]
    starts = [number for number, (word, _) in enumerate(result) if word == "FROM"]
    build, run = starts
    return Stage(tuple(result[build:run])), Stage(tuple(result[run:]))  # type: ignore[arg-type]
