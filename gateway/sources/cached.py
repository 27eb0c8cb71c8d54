"""Source with a stored listing, which stays in use while a new one is read in the background."""

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

_RENEWAL_RATE = (0.5, 5)
"""Rate limit (per second, burst) of new listings after changes that the server reports."""
_MIN_STORED_FAILURE_S = 1.0
"""Minimum duration of a failed listing that is stored for later processes, in seconds."""
_CLOCK_DRIFT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheKey:
    """Keys of one server's listing and approvals in a store."""

    fingerprint: str
    """Fingerprint of the server's configuration; if empty, nothing is stored."""
    owner: str = ""
    """Owner of the approvals: configuration file and server name; empty uses *fingerprint*."""
    command_line: str = ""
    """Digest of the command or URL, which also needs approval; empty if it needs none."""

    @property
    def pin_owner(self) -> str:
        """Owner of the approvals: *owner*, or *fingerprint* if it is empty."""
        return self.owner or self.fingerprint


def preload(sources: Iterable[object]) -> None:
    """Read the stored state of cold *sources*, in one query per store."""
    cold = [source for source in sources if isinstance(source, CachedSource) and source.is_cold]
    for store in {id(source.store): source.store for source in cold}.values():
        group = [source for source in cold if source.store is store]
        try:
            stored = store.read({source.key.fingerprint: source.key.pin_owner for source in group})
        except StoreError as error:
            for source in group:
                source.stored = error
        else:
            for source in group:
                source.stored = stored[source.key.fingerprint]


@dataclass(eq=False, repr=False)
class CachedSource:
    """Source of an MCP server that stores the server's listing.

    Args:
        flights: Runs listings on its own event loop; may be shared with other sources.
        on_change: Called when the listing differs from the previous one.
        wall: Clock with seconds since the epoch; ``clock`` is monotonic.
    """

    _failure_before = ""
    """Recent failure in an earlier process; the first `list_tools` raises it again."""
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
        self.server = self.live.server
        self.trusted = self.live.trusted
        self.listed = Listing()
        """Complete listing of the server, including hidden items."""
        self._listing: Listing | None = None
        """Listing without items that an approval policy hides; None before the first listing."""
        self._renew_at = math.inf
        self._loaded = False
        self.stored: StoredServer | StoreError | None = None
        """State of the server, or error of the store, as read by `preload`."""
        self._expired = False
        """True if the next caller waits for a new listing."""
        self._renewals = Bucket(*_RENEWAL_RATE, clock=self.clock)
        self.is_stale = False
        """True if an old listing is in use because the last attempt to read a new one failed."""
        self._command_line_changed: bool | None = None
        self._unchecked: tuple[Diagnostic, ...] = ()
        """Diagnostics of a store failure that prevented the check of the command or URL."""
        self._rebuilt: tuple[Diagnostic, ...] = ()

    @property
    def is_cold(self) -> bool:
        """True if the next `list_tools` loads the listing from the store."""
        return not self._loaded and bool(self.key.fingerprint)

    @property
    def asks_server(self) -> bool:
        """True if the next `list_tools` calls the server, judging by the state from `preload`."""
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
        # A timestamp in the future comes from a wrong clock.
        return math.inf if age_s < -_CLOCK_DRIFT_S else max(age_s, 0.0)

    async def list_tools(self) -> Listing:
        """Return the last listing. If it is missing or expired, read it from the server.

        On failure, an expired listing stays in use with a diagnostic.

        Raises:
            UpstreamError: If the command or URL is not approved, the server failed, or it was never
                listed and `stored_only` is set.
            UpstreamTimeoutError: If the first listing is not finished in time.
            ClosedError: If the source is closed.
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
        # Reading may have failed and kept the old listing, so check again.
        self.check_command_line()
        return listing

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call a tool. See `Source.call`."""
        self.check_command_line()
        return await self.live.call(tool, arguments, tool_id=tool_id)

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """See `ResourceSource.ask`."""
        self.check_command_line()
        self._check_visible(*request_target(params))
        return await self.live.ask(method, params)

    async def watch(self, uri: str, callbacks: WatchCallbacks) -> None:
        """See `Watchable.watch`."""
        self.check_command_line()
        self._check_visible("resource", uri)
        await self.live.watch(uri, callbacks)

    async def close(self) -> None:
        """Close the source. Its listing stays stored."""
        await self.live.close()

    def expire(self) -> None:
        """Make the next `list_tools` read the listing again, unless `stored_only` is set."""
        self._expired = not self.options.stored_only

    def invalidate(self) -> None:
        """Read the listing again in the background, because it changed at the server."""
        self._invalid = True
        if self._listing is not None:
            self.flights.start((self, "renew"), self._renew)

    def refresh_if_stale(self) -> float:
        """Read the listing again in the background, if it is old.

        Returns:
            Monotonic time at which the listing becomes old; minus infinity if unknown.
        """
        if self._listing is None or self.options.stored_only:
            return -math.inf
        if self.clock() < self._renew_at:
            return self._renew_at
        self.flights.start((self, "renew"), self._renew)
        return -math.inf

    def recheck(self, *, relisted: bool = False) -> bool:
        """Make the next `list_tools` load the stored listing, if needed; return whether it is.

        It is needed if changes may be approved now, or another process *relisted* the server.
        """
        notes = self._listing.diagnostics if self._listing is not None else ()
        is_changed = any(note.code == "tool_changed" for note in notes)
        is_suspect = relisted or is_changed or bool(self._command_line_changed)
        if is_suspect:
            self._command_line_changed = None
            self._loaded = False
        return is_suspect

    def forget(self) -> None:
        """Delete the stored listing of this source."""
        self._attempt(lambda: self.store.forget(self.key.fingerprint), None)

    def check_command_line(self, *, again: bool = False) -> None:
        """Raise `UpstreamError` if the policy ``block`` forbids the command or URL."""
        digest = self.key.command_line
        if not digest:
            return
        blocks = self.options.on_change == "block"
        if self._command_line_changed is None or (self._unchecked and (again or blocks)):
            changed, self._unchecked = self._record_seen({COMMAND_LINE_PIN: digest})
            self._command_line_changed = bool(changed)
        if self._command_line_changed and blocks:
            detail = (
                "the command or URL changed since it was approved: check the configuration, then: "
                f"gateway approve {self.server}"
            )
            if self._unchecked:
                detail = self._unchecked[0].detail.removeprefix(f"{self.server!r} ")
            raise UpstreamError(self.server, detail, kind="config", sent=False)

    def _check_visible(self, kind: Kind, name: str) -> None:
        visible = self._listing
        if visible is not None and is_hidden(kind, name, listed=self.listed, shown=visible):
            raise InvalidRequestError(
                f"{self.server!r}: {kind} {name!r} is left out: see the diagnostics of a search"
            )

    def _record_seen(
        self, digests: Mapping[str, str]
    ) -> tuple[frozenset[str], tuple[Diagnostic, ...]]:
        """Record *digests*, keyed by definition name; return the names of changed definitions.

        If the store fails, return a diagnostic too. If the store fails or the source has no
        fingerprint, the policy ``block`` treats all definitions as changed.
        """
        pins = self.stored.pins if isinstance(self.stored, StoredServer) else {}
        if digests and all(pins.get(name) == (new, new) for name, new in digests.items()):
            return frozenset(), ()
        return self._attempt(
            lambda: self.store.record_seen(self.key.pin_owner, digests),
            frozenset(digests if self.options.on_change == "block" else ()),
            prefix=f"{self.server!r} could not be compared with its approval: ",
        )

    def _set_listing(self, listing: Listing, store_notes: tuple[Diagnostic, ...] = ()) -> Listing:
        changed_names, unchecked = self._record_seen(listing.digests)
        if changed_names and unchecked:
            self._renew_at = self.clock() + self.options.retry_after_s
        changed = dict.fromkeys(changed_names, "")
        if self._command_line_changed:
            changed[COMMAND_LINE_PIN] = ""
        visible = apply_policies(listing, changed, server=self.server, options=self.options)
        self.listed = listing
        # The most serious diagnostic of the store is enough.
        notes = unchecked or self._unchecked or store_notes or self._rebuilt
        self._listing = replace(visible, diagnostics=(*visible.diagnostics, *notes))
        return self._listing

    def _load(self) -> None:
        self._loaded = True
        stored = self._read_stored()
        if stored is None:
            if isinstance(self.stored, StoredServer):
                ttl_s = self.options.failure_ttl_s
                self._failure_before = self.stored.recent_failure(self.wall(), ttl_s)
            return
        self._renew_at = self.clock() + max(self.options.listing_ttl_s - self._age_s(stored), 0.0)
        self._expired |= self._is_expired(stored)
        self.live.note_repeatable(stored.listing)
        self._set_listing(stored.listing)

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
                return await self.flights.run((self, "list"), self._read_listing)
        except TimeoutError as error:
            self.flights.start((self, "late"), self._finish_first_listing)
            detail = f"was not listed within {limit_s} s; its tools are added when they are listed"
            self._note_failure(detail, began)
            raise UpstreamTimeoutError(self.server, detail) from error
        except UpstreamError as error:
            self._note_failure(error.detail, began)
            raise

    def _note_failure(self, detail: str, began: float) -> None:
        if self.options.failure_ttl_s and self.clock() - began >= _MIN_STORED_FAILURE_S:
            self._attempt(lambda: self.store.note_failure(self.key.fingerprint, detail), None)

    async def _read_listing(self) -> Listing:
        # Check again, because the store may only have been busy.
        self.check_command_line(again=True)
        listing = await self.live.list_tools()
        self._expired = self.is_stale = False
        _, notes = self._attempt(
            lambda: self.store.keep(self.key.fingerprint, self.server, listing), None
        )
        self._renew_at = self.clock() + self.options.listing_ttl_s
        return self._set_listing(listing, notes)

    async def _finish_first_listing(self) -> Listing:
        listing = await self.flights.run((self, "list"), self._read_listing)
        self.on_change()
        return listing

    async def _renew(self) -> Listing:
        await asyncio.sleep(self._renewals.take(1))
        before = self._listing
        listing = await self._read_or_keep()
        if self._invalid:
            # Repeat only once, because some servers report a change whenever they are listed.
            listing = await self._read_or_keep()
        if before is None or before.content != listing.content:
            self.on_change()
        return listing

    async def _read_or_keep(self) -> Listing:
        self._invalid = False
        try:
            return await self.flights.run((self, "list"), self._read_listing)
        except UpstreamError as error:
            detail = error.detail
            self._attempt(lambda: self.store.note_failure(self.key.fingerprint, detail), None)
            old = self._listing or Listing()
            others = tuple(note for note in old.diagnostics if note.code != "source_stale")
            note = Diagnostic(stage="catalog", code="source_stale", detail=str(error))
            self._listing = replace(old, diagnostics=(*others, note))
            self._renew_at = self.clock() + self.options.retry_after_s
            self._expired, self.is_stale = False, True
            return self._listing

    def _attempt(
        self, work: Callable[[], V], fallback: V, *, prefix: str = ""
    ) -> tuple[V, tuple[Diagnostic, ...]]:
        """Return the result of *work*, or *fallback* and a diagnostic if the store fails."""
        if not self.key.fingerprint:
            return fallback, ()

        def ask() -> V:
            if isinstance(failed := self.stored, StoreError):
                # A rebuilt store can be used again.
                self.stored = None if failed.rebuilt else failed
                raise failed
            return work()

        result, notes = attempt_store(ask, fallback, prefix=prefix)
        self._rebuilt += tuple(note for note in notes if note.code == "store_rebuilt")
        return result, tuple(note for note in notes if note.code != "store_rebuilt")
