"""What every source returns: a row for each tool and each query, in the common format."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.errors import ConfigError

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedSet:
    """A set in the common format."""

    tools: tuple[Row, ...]
    queries: tuple[Row, ...]


def query_row(key: str, text: str, relevant: Iterable[str], *, lang: str = "en") -> Row:
    """Return the row of a query; each id of *relevant* counts once."""
    return {"id": key, "query": text, "lang": lang, "relevant": list(dict.fromkeys(relevant))}


def tool_row(name: str, server: str, description: str, schema: Row, *, key: str = "") -> Row:
    """Return the row of a tool; its id is *key*, or its name without one."""
    return {
        "id": key or name,
        "name": name,
        "server": server,
        "description": description,
        "input_schema": schema,
    }


def read_json(path: Path) -> Any:
    """Read a JSON file of a package.

    Raises:
        ConfigError: There is no such file.
    """
    return json.loads(require(path).read_text(encoding="utf-8"))


def require(path: Path) -> Path:
    """Return *path*, a file or a folder of a package.

    Raises:
        ConfigError: It does not exist.
    """
    if not path.exists():
        raise ConfigError(f"{path} is missing: give the folder of the unpacked package")
    return path
