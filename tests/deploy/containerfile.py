"""Reads `deploy/Containerfile`: its stages and their instructions."""

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
    """What stands between one FROM and the next: the words and the arguments of instructions."""

    instructions: tuple[tuple[str, str], ...]

    def all(self, word: str) -> list[str]:
        """The arguments of each instruction *word*."""
        return [text for each, text in self.instructions if each == word]

    def one(self, word: str) -> str:
        """Those of the only one."""
        (text,) = self.all(word)
        return text

    def command(self, word: str) -> Any:
        """Its list of arguments, such as that of CMD."""
        return json.loads(re.sub(r"^.*?CMD ", "", self.one(word), flags=re.DOTALL))

    @property
    def env(self) -> dict[str, str]:
        """The variables that it sets."""
        pairs = (pair for text in self.all("ENV") for pair in shlex.split(text))
        return dict(pair.split("=", 1) for pair in pairs)


def stages() -> tuple[Stage, Stage]:
    """The stage that builds, and the one that runs."""
    lines = [line for line in FILE.read_text("utf-8").splitlines() if not line.startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ")
    found = [tuple(line.split(" ", 1)) for line in whole.splitlines() if line]
    starts = [number for number, (word, _) in enumerate(found) if word == "FROM"]
    build, run = starts
    return Stage(tuple(found[build:run])), Stage(tuple(found[run:]))  # type: ignore[arg-type]
