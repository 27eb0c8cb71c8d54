"""What every source gives: a row a tool and a row a query, in the common format."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gateway.errors import ConfigError

Row = dict[str, Any]
Rows = tuple[list[Row], list[Row]]
"""Tools and queries."""


def query(key: str, text: str, called: Iterable[str], *, lang: str = "en") -> Row:
    """Make the row of a request; *called* are the ids of its tools, each counts once."""
    return {"id": key, "query": text, "lang": lang, "relevant": list(dict.fromkeys(called))}


def loaded(path: Path) -> Any:
    """Read a JSON file of a package.

    Raises:
        ConfigError: If it is not there.
    """
    return json.loads(needed(path).read_text(encoding="utf-8"))


def needed(path: Path) -> Path:
    """Give *path*, which a package has.

    Raises:
        ConfigError: If it is not there.
    """
    if not path.exists():
        raise ConfigError(f"{path} is missing: give the folder of the unpacked package")
    return path
