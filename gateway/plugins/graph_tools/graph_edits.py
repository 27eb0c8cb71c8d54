"""A person's decisions on edges, written into the host's own documents.

* An accepted edge is declared from then on. A rejected one is forbidden: no rule derives it.
* All decisions on the tools of one server stand in one document, for people to read and commit.
* The difference is shown first; a file that changed meanwhile is not written.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import graphs
from gateway.config.config_file import read_text, write_text
from gateway.errors import ConfigError
from gateway.runtime.text import digest

Verdict = Literal["accept", "reject"]
_ID = "urn:tool-gateway:reviewed:"


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEdit:
    """One document before and after a decision; nothing is written yet."""

    path: str
    """Relative to the folder of documents."""
    file: Path
    before: str
    """Empty if there is no such file yet."""
    after: str
    """The same as before if the document says so already."""

    @property
    def diff(self) -> str:
        """The difference as a unified diff; empty if there is none.

        No lines stand around it: they may name tools that its reader may not see.
        """
        before, after = self.before.splitlines(), self.after.splitlines()
        return "\n".join(unified_diff(before, after, self.path, self.path, n=0, lineterm=""))

    @property
    def revision(self) -> str:
        """The digest of the document before."""
        return digest(self.before)

    def write(self, *, revision: str | None = None) -> None:
        """Write the document at once; missing folders are made.

        Args:
            revision: Of the document whose difference was shown; None does not compare.

        Raises:
            ConfigError: The document is another one by now, or cannot be written.
        """
        if revision not in {None, self.revision}:
            raise ConfigError(f"{self.path!r} was changed meanwhile: look at the difference again")
        if self.after != self.before:
            write_text(self.file, self.after, expected=self.before)


def plan_edit(folder: Path, edge: graphs.Edge, verdict: Verdict, *, server: str) -> GraphEdit:
    """Return how *edge* is accepted or rejected in the document of its server.

    Args:
        folder: The host's folder of documents.
        edge: With ends that mean the same in every document.
        verdict: Whether it is to be declared or forbidden.
        server: The server of the edge's subject; empty if it has none.

    Raises:
        ConfigError: *folder* is no folder, or the document is broken or cannot be edited safely.
    """
    if not folder.is_dir():
        raise ConfigError(f"{str(folder)!r} is no folder of documents: make it, or name another")
    name = server or "other"
    path = f"reviewed/{quote(name, safe='')}.md"
    file = folder / path
    before, identity = read_text(file), f"{_ID}{quote(name, safe='')}"
    empty = graphs.Document(id=identity, title=f"Reviewed edges of {name}")
    text = before or graphs.render(empty)
    try:
        after = graphs.add_edge(text, edge, path=path, forbidden=verdict == "reject")
    except graphs.DocumentError as error:
        raise ConfigError(str(error)) from error
    return GraphEdit(path=path, file=file, before=before, after=after)
