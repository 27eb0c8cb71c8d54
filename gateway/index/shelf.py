"""Saved indexes: a file for each catalog, found by what the index would be made of.

* The mark of an index is the digest of all that it is made of: tools, the host's documents, model,
  options, and this very code. An index of another mark is another index: none is ever mended.
* A file that is not as it was written is left aside, with a diagnostic; the index is made anew.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from operator import attrgetter
from pathlib import Path

from gateway.errors import StoreError
from gateway.index.entities import line
from gateway.index.pack import read, write
from gateway.index.saved import packed, unpacked
from gateway.index.snapshot import Snapshot
from gateway.options import IndexOptions
from gateway.runtime import VERSION
from gateway.runtime.text import digest
from gateway.sources.listing_codec import digest_of
from gateway.sources.registry import ListResult, Registration
from gateway.types import Code, Diagnostic, Hints, ToolDefinition

_SUFFIX = ".index"
_DEFINED = attrgetter(*(each.name for each in fields(ToolDefinition) if each.name != "hints"))
_HINTED = attrgetter(*(each.name for each in fields(Hints)))
_CODE = ("gateway/index", "gateway/search", "gateway/catalog", "gateway/embed", "graphs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was on the shelf."""

    snapshot: Snapshot | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    """Why there is none, if there should be one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """A folder of saved indexes. May be used from any thread, and by several processes."""

    folder: Path
    options: IndexOptions

    def find(self, mark: str, *, version: int, diagnostics: Sequence[Diagnostic]) -> Found:
        """Open the index of *mark*.

        Args:
            mark: What `mark` gives.
            version: The number of this build.
            diagnostics: What is known to be wrong today.
        """
        path = self._path(mark)
        try:
            with _uncollected():
                pack = read(path)
                if pack is None:
                    return Found()
                snapshot = unpacked(pack, version=version, diagnostics=diagnostics)
        except StoreError as error:
            return Found(diagnostics=(_note("store_rebuilt", str(error)),))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            told = f"saved index {path.name!r} cannot be read: {error!r}"
            return Found(diagnostics=(_note("store_rebuilt", told),))
        with contextlib.suppress(OSError):
            os.utime(path)
        return Found(snapshot=snapshot)

    def keep(
        self, mark: str, snapshot: Snapshot, own: Sequence[Diagnostic]
    ) -> tuple[Diagnostic, ...]:
        """Save *snapshot* under its *mark*, and give up those that nobody used for longest.

        Args:
            mark: What `mark` gives.
            snapshot: The index.
            own: Those of its diagnostics that another start would find again.

        Returns:
            Why it was not saved; nothing if it was.
        """
        try:
            write(self._path(mark), packed(snapshot, own))
            self._clean()
        except (OSError, TypeError, ValueError) as error:
            return (_note("store_unavailable", f"the index was not saved: {error}"),)
        return ()

    def _path(self, mark: str) -> Path:
        return self.folder / f"{mark}{_SUFFIX}"

    def _clean(self) -> None:
        files = sorted(self.folder.glob(f"*{_SUFFIX}"), key=lambda path: -path.stat().st_mtime)
        for path in files[self.options.kept :]:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Do without the garbage collector: what is read lasts, and to look through it takes long.

    By its threshold, not by `gc.disable`: the host may switch the collector off meanwhile, on
    another thread, and nothing would say so to whoever switches it on again.
    """
    before = gc.get_threshold()
    ours = (0, *before[1:])
    gc.set_threshold(*ours)
    try:
        yield
    finally:
        # What somebody else has set meanwhile stays.
        if gc.get_threshold() == ours:
            gc.set_threshold(*before)


def mark(
    registrations: Mapping[str, Registration],
    listed: Mapping[str, ListResult],
    made_with: Iterable[object],
) -> str:
    """Give the digest of all that an index is made of.

    Args:
        registrations: The sources.
        listed: What each of them listed.
        made_with: Whatever else it depends on, each with a `repr` that says all of it.
    """
    hashed = hashlib.blake2b(_code().encode(), digest_size=20)
    for server in sorted(listed):
        registration, listing = registrations[server], listed[server].listing
        # What a server lists is kept, and comes to the same when the next start reads it late.
        tools_told = digest_of(listing) or digest(repr(listing.tools))
        told = (
            (server, registration.source.trusted, _said(registration.itself)),
            (registration.hints, tools_told, listing.things, listing.instructions),
        )
        hashed.update(repr(told).encode("utf-8", "surrogatepass"))
        for entity in listing.entities:
            hashed.update(line(entity))
    for part in made_with:
        hashed.update(repr(part).encode("utf-8", "surrogatepass"))
    return hashed.hexdigest()


def _said(itself: ToolDefinition | None) -> object:
    """Give all that is said of a server, whose `repr` costs a third of its own."""
    return itself and (_DEFINED(itself), _HINTED(itself.hints))


def mark_of_files(path: Path) -> str:
    """Give the digest of a file, or of all files in a folder; empty if they cannot be read."""
    try:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        read_ = [(str(each), each.read_bytes()) for each in files if not each.is_dir()]
    except OSError:
        return ""
    return digest(repr(read_))


@cache
def _code() -> str:
    """Say which code makes the index: what was saved by another is not trusted."""
    root = Path(__file__).parents[3]
    files = (each for folder in _CODE for each in _files(root / folder))
    return repr((VERSION, sys.version, sorted(files)))


def _files(folder: Path) -> Iterator[tuple[str, int, int]]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.is_dir():
            yield from _files(Path(entry.path))
        elif entry.name.endswith(".py"):
            told = entry.stat()
            yield entry.path, told.st_size, told.st_mtime_ns


def _note(code: Code, detail: str) -> Diagnostic:
    return Diagnostic(stage="store", code=code, detail=detail)
