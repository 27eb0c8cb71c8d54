"""The bundled list of well-known servers: facts that we wrote down, versions as they were then.

``known.json`` has the shape of a registry's answer. An entry is of this list only if a name, a
version and what the server is for were looked up; it is no promise that the server is safe.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from gateway.provision.entries import KNOWN, Entry
from gateway.provision.reading import read_entry

_FILE = Path(__file__).with_name("known.json")


@cache
def known_servers() -> tuple[Entry, ...]:
    """Give the entries of the list, in its order."""
    raw = json.loads(_FILE.read_text(encoding="utf-8"))
    return tuple(read_entry(item, source=KNOWN) for item in raw)
