"""A source whose listing outlives its connection.

* What was listed once is known at the next start, without starting the server.
* An old listing is used while it is read anew in the background; so is one that the server says
  has changed.
* A server that was never listed is waited for, but not for long: its tools come later.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import TypeVar

from gateway.catalog.approvals import COMMAND_LINE_PIN, apply_policies, is_hidden
from gateway.errors import InvalidRequestError, StoreError, UpstreamError, UpstreamTimeoutError
from gateway.mcp.traffic import Bucket
from gateway.options import UpstreamOptions
from gateway.runtime.cache import Clock, SingleFlight
from gateway.runtime.naming import request_target
from gateway.sources.listing_store import ListingStore, StoredListing, StoredServer, attempt_store
from gateway.sources.mcp import McpSource
from gateway.types import Diagnostic, InvokeResult, JsonObject, Kind
from gateway.types.listing import Listing, WatchCallbacks

V = TypeVar("V")

_RENEWALS = (0.5, 5)
"""How often a listing is read anew for changes, in a second and at once: each may be a build."""
_SLOW_S = 1.0
"""A failure that took less costs a later process nothing."""
_CLOCK_DRIFT_S = 60.0
"""By how much the clocks of two processes may differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheKey:
    """Under which names a source is stored."""

    fingerprint: str
    """Of its configuration; if empty, its listing is not stored."""
    owner: str = ""
    """The name that its pins belong to: the place of the configuration and the server's name in it.
    Empty for a server that code configures: then they belong to the fingerprint."""
    command_line: str = ""
    """The digest of what would run, pinned as well; empty pins nothing."""

    @property
    def pin_owner(self) -> str:
        """The name that its pins belong to, in the store."""
        return self.owner or self.fingerprint


def preload(sources: Iterable[object]) -> None:
    """Read at once what is stored of those *sources* that load it at their next `list_tools`."""
    cold = [each for each in sources if isinstance(each, CachedSource) and each.is_cold]
    for store in {id(each.store): each.store for each in cold}.values():
        own = [each for each in cold if each.store is store]
        try:
            stored = store.read({each.key.fingerprint: each.key.pin_owner for each in own})
        except StoreError as error:
            for each in own:
                each.stored = error
        else:
            for each in own:
                each.stored = stored[each.key.fingerprint]


@dataclass(eq=False, repr=False)
class CachedSource:
    """A source with a stored listing.

    Args:
        live: The source itself.
        store: Where its listing and its pins are kept.
        key: Under which names.
        flights: Where it is listed, on a loop of its own; other sources may share it.
        options: How old a listing may be, and how long the first one may take.
        on_change: Called when the listing differs from the one before.
        clock: Seconds that only grow.
        wall: Seconds since the epoch.
    """

    _failure_before = ""
    """Why the first `list_tools` need not try: an earlier process did."""
    _invalid = False

    live: McpSource
    _: KW_ONLY
    store: ListingStore
    key: CacheKey
    flights: SingleFlight[Listing]
    options: UpstreamOptions
    on_change: Callable[[], None]
    clock: Clock = time.monotonic
    wall: Clock = time.time

    def __post_init__(self) -> None:
        """Begin with nothing read and nothing listed."""
        self.server = self.live.server
        self.trusted = self.live.trusted
        self.listed = Listing()
        """All that the server has, whatever the policies leave of it."""
        self._listing: Listing | None = None
        """What the policies leave of that; None before it was listed."""
        self._due = math.inf
        """When to read the listing anew, by the clock."""
        self._loaded = False
        self.stored: StoredServer | StoreError | None = None
        """What `preload` read for the next listing, or why it could not."""
        self._expired = False
        """Whether the next caller waits for a new listing."""
        self._renewals = Bucket(*_RENEWALS, clock=self.clock)
        self.is_stale = False
        """Whether its listing is of before, since it could not be read anew."""
        self._command_line_changed: bool | None = None
        self._unchecked: tuple[Diagnostic, ...] = ()
        """Why the command line was not compared with the approved one."""
        self._rebuilt: tuple[Diagnostic, ...] = ()
        """What the store lost, if it began anew."""

    @property
    def is_cold(self) -> bool:
        """Whether the next `list_tools` loads what is stored."""
        return not self._loaded and bool(self.key.fingerprint)

    @property
    def asks_server(self) -> bool:
        """Whether the next `list_tools` asks the server itself, as far as `preload` has read."""
        if self.options.stored_only:
            return False
        if self._listing is not None or not isinstance(self.stored, StoredServer):
            return self._listing is None or self._expired
        listing = self.stored.listing
        return self._expired or listing is None or self._is_expired(listing)

    def _is_expired(self, stored: StoredListing) -> bool:
        too_old = self._age_s(stored) - self.options.listing_ttl_s > self.options.max_stale_s
        return too_old and not self.options.stored_only

    def _age_s(self, stored: StoredListing) -> float:
        age_s = self.wall() - stored.listed_at
        # A stamp from the future is of a clock that was wrong: its age is unknown.
        return math.inf if age_s < -_CLOCK_DRIFT_S else max(age_s, 0.0)

    async def list_tools(self) -> Listing:
        """Return the listing as it was last read; read it if it never was, or expired.

        An expired one serves, with a diagnostic, if it cannot be read anew.

        Raises:
            UpstreamError: What would run is not what was approved, or the server failed, or was
                never listed and may not be asked.
            UpstreamTimeoutError: It is still being read for the first time.
            ClosedError: After `close`.
        """
        try:
            self.check_command_line()
            if not self._loaded:
                self._load()
        finally:
            self.stored = None
        if self._listing is None:
            failure, self._failure_before = self._failure_before, ""
            if failure and not self._expired:
                detail = f"{failure}; to try again now: gateway servers test {self.server}"
                raise UpstreamError(self.server, detail, kind="connect", sent=False)
            return await self._read_first()
        if not self._expired:
            return self._listing
        listing = await self._read_or_keep()
        # It may be that which could not be read.
        self.check_command_line()
        return listing

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call a tool; see `Source.call`."""
        self.check_command_line()
        return await self.live.call(tool, arguments, tool_id=tool_id)

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request that changes nothing; see `ResourceSource.ask`."""
        self.check_command_line()
        self._check_shown(*request_target(params))
        return await self.live.ask(method, params)

    async def watch(self, uri: str, callbacks: WatchCallbacks) -> None:
        """Report changes of a resource; see `Watchable.watch`."""
        self.check_command_line()
        self._check_shown("resource", uri)
        await self.live.watch(uri, callbacks)

    async def close(self) -> None:
        """Close the source; its listing stays stored."""
        await self.live.close()

    def expire(self) -> None:
        """Make the next `list_tools` read the listing anew."""
        self._expired = not self.options.stored_only

    def invalidate(self) -> None:
        """Read the listing anew, in the background: the server says that it changed."""
        self._invalid = True
        if self._listing is not None:
            self.flights.start((self, "renew"), self._renew)

    def refresh_if_stale(self) -> float:
        """Read the listing anew, in the background, if it is old.

        Returns:
            When it will be old, by the clock; minus infinity if that is not known yet.
        """
        if self._listing is None or self.options.stored_only:
            return -math.inf
        if self.clock() < self._due:
            return self._due
        self.flights.start((self, "renew"), self._renew)
        return -math.inf

    def recheck(self, *, relisted: bool = False) -> bool:
        """Make the next `list_tools` look whether what had changed is approved by now.

        It looks for a new listing in the store too: always, if another process *relisted* it.
        Returns whether there is anything to look at.
        """
        notes = self._listing.diagnostics if self._listing is not None else ()
        is_changed = any(note.code == "tool_changed" for note in notes)
        is_suspect = relisted or is_changed or bool(self._command_line_changed)
        if is_suspect:
            self._command_line_changed = None
            self._loaded = False
        return is_suspect

    def forget(self) -> None:
        """Delete the stored listing."""
        self._attempt(lambda: self.store.forget(self.key.fingerprint), None)

    def check_command_line(self, *, again: bool = False) -> None:
        """Refuse under ``block`` to go on if what would run is not what was approved."""
        digest = self.key.command_line
        if not digest:
            return
        blocks = self.options.on_change == "block"
        if self._command_line_changed is None or (self._unchecked and (again or blocks)):
            changed, self._unchecked = self._record_seen({COMMAND_LINE_PIN: digest})
            self._command_line_changed = bool(changed)
        if self._command_line_changed and blocks:
            detail = (
                "what would run is not what was approved: look at its configuration, then: "
                f"gateway approve {self.server}"
            )
            if self._unchecked:
                detail = self._unchecked[0].detail.removeprefix(f"{self.server!r} ")
            raise UpstreamError(self.server, detail, kind="config", sent=False)

    def _check_shown(self, kind: Kind, name: str) -> None:
        shown = self._listing
        if shown is not None and is_hidden(kind, name, listed=self.listed, shown=shown):
            raise InvalidRequestError(
                f"{self.server!r}: {kind} {name!r} is left out: the diagnostics of a search say why"
            )

    def _record_seen(
        self, digests: Mapping[str, str]
    ) -> tuple[frozenset[str], tuple[Diagnostic, ...]]:
        """Record *digests*; return the names that changed.

        If the store fails a diagnostic says that nothing was checked; under the policy ``block``
        all count as changed then.
        """
        pins = self.stored.pins if isinstance(self.stored, StoredServer) else {}
        if digests and all(pins.get(name) == (new, new) for name, new in digests.items()):
            return frozenset(), ()
        return self._attempt(
            lambda: self.store.record_seen(self.key.pin_owner, digests),
            frozenset(digests if self.options.on_change == "block" else ()),
            prefix=f"{self.server!r} was not compared with what was approved: ",
        )

    def _take(self, listing: Listing, store_notes: tuple[Diagnostic, ...] = ()) -> Listing:
        """Make *listing* the present one, as far as the policies show it."""
        seen, unchecked = self._record_seen(listing.digests)
        if seen and unchecked:
            self._due = self.clock() + self.options.retry_after_s
        changed = dict.fromkeys(seen, "")
        if self._command_line_changed:
            changed[COMMAND_LINE_PIN] = ""
        shown = apply_policies(listing, changed, server=self.server, options=self.options)
        self.listed = listing
        # One note of the store, the graver one, is enough for each server.
        notes = unchecked or self._unchecked or store_notes or self._rebuilt
        self._listing = replace(shown, diagnostics=(*shown.diagnostics, *notes))
        return self._listing

    def _load(self) -> None:
        """Take the stored listing, if there is one."""
        self._loaded = True
        stored = self._read_stored()
        if stored is None:
            if isinstance(self.stored, StoredServer):
                ttl_s = self.options.failure_ttl_s
                self._failure_before = self.stored.recent_failure(self.wall(), ttl_s)
            return
        self._due = self.clock() + max(self.options.listing_ttl_s - self._age_s(stored), 0.0)
        # If there is no new one, the old one serves.
        self._expired |= self._is_expired(stored)
        self.live.note_repeatable(stored.listing)
        self._take(stored.listing)

    def _read_stored(self) -> StoredListing | None:
        if isinstance(self.stored, StoredServer):
            return self.stored.listing
        return self._attempt(lambda: self.store.listing(self.key.fingerprint), None)[0]

    async def _read_first(self) -> Listing:
        if self.options.stored_only:
            raise UpstreamError(self.server, "was never listed", kind="unavailable", sent=False)
        limit_s, began = self.options.first_listing_s, self.clock()
        try:
            async with asyncio.timeout(limit_s):
                return await self.flights.run((self, "list"), self._read)
        except TimeoutError as error:
            self.flights.start((self, "late"), self._load_late)
            detail = f"was not listed within {limit_s} s; its tools come as soon as they are"
            self._note_failure(detail, began)
            raise UpstreamTimeoutError(self.server, detail) from error
        except UpstreamError as error:
            self._note_failure(error.detail, began)
            raise

    def _note_failure(self, detail: str, began: float) -> None:
        """Let later processes know what cost this one its time."""
        if self.options.failure_ttl_s and self.clock() - began >= _SLOW_S:
            self._attempt(lambda: self.store.note_failure(self.key.fingerprint, detail), None)

    async def _read(self) -> Listing:
        # A store that failed the first time may only have been busy.
        self.check_command_line(again=True)
        listing = await self.live.list_tools()
        self._expired = self.is_stale = False
        _, notes = self._attempt(
            lambda: self.store.keep(self.key.fingerprint, self.server, listing), None
        )
        self._due = self.clock() + self.options.listing_ttl_s
        return self._take(listing, notes)

    async def _load_late(self) -> Listing:
        listing = await self.flights.run((self, "list"), self._read)
        self.on_change()
        return listing

    async def _renew(self) -> Listing:
        await asyncio.sleep(self._renewals.take(1))
        before = self._listing
        listing = await self._read_or_keep()
        if self._invalid:
            # Once: some servers say that they changed whenever they are listed.
            listing = await self._read_or_keep()
        if before is None or before.content != listing.content:
            self.on_change()
        return listing

    async def _read_or_keep(self) -> Listing:
        self._invalid = False
        try:
            return await self.flights.run((self, "list"), self._read)
        except UpstreamError as error:
            detail = error.detail
            self._attempt(lambda: self.store.note_failure(self.key.fingerprint, detail), None)
            old = self._listing or Listing()
            others = tuple(note for note in old.diagnostics if note.code != "source_stale")
            note = Diagnostic(stage="catalog", code="source_stale", detail=str(error))
            self._listing = replace(old, diagnostics=(*others, note))
            self._due = self.clock() + self.options.retry_after_s
            self._expired, self.is_stale = False, True
            return self._listing

    def _attempt(
        self, work: Callable[[], V], fallback: V, *, prefix: str = ""
    ) -> tuple[V, tuple[Diagnostic, ...]]:
        """Return what *work* does with the store; *fallback* and a diagnostic if that fails.

        Without a fingerprint nothing is stored.
        """
        if not self.key.fingerprint:
            return fallback, ()

        def ask() -> V:
            if isinstance(failed := self.stored, StoreError):
                # One that begins anew can be asked now.
                self.stored = None if failed.rebuilt else failed
                raise failed
            return work()

        found, notes = attempt_store(ask, fallback, prefix=prefix)
        self._rebuilt += tuple(note for note in notes if note.code == "store_rebuilt")
        return found, tuple(note for note in notes if note.code != "store_rebuilt")
