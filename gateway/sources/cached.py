"""A source whose tool list outlives its connection.

* What was listed once is known at the next start, without starting the server.
* An old list is used while it is read anew in the background; so is one that the server says has
  changed. Tools that stayed as they were stay the same objects, so that only what changed is
  embedded and compiled again.
* A server that was never listed is waited for, but not for long: its tools come in later.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from gateway.catalog.approvals import LAUNCH, NOTHING, Withheld, vetted
from gateway.errors import InvalidRequestError, StoreError, UpstreamError, UpstreamTimeoutError
from gateway.mcp.naming import asked_of
from gateway.mcp.supervisor import State
from gateway.options import UpstreamOptions
from gateway.runtime.cache import Clock, SingleFlight
from gateway.sources.listing_store import Recorded, Records
from gateway.sources.protocol import ResourceSource, Source, Watchable, readable
from gateway.types import Diagnostic, InvokeResult, JsonObject, Kind, ToolDefinition
from gateway.types.listing import Listing, WatchCallbacks

_CLOCK_DRIFT_S = 60.0
"""By how much the clocks of two processes may differ."""


class Live(Source, ResourceSource, Watchable, Protocol):
    """A source with a connection, which can be told what its last listing said."""

    @property
    def state(self) -> State:
        """The state of the connection."""

    @property
    def healthy(self) -> bool:
        """Whether it can be reached, as far as is known."""

    def learn(self, listing: Listing) -> None:
        """Take from *listing* what calls need to know of its tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Where a source is remembered, and under which names."""

    records: Records
    fingerprint: str
    """Of its configuration; if empty, its list is not kept."""
    owner: str = ""
    """The name that its pins belong to: the place of the configuration and the server's name in it.
    Empty for a server that code configures: then they belong to the fingerprint."""
    launch: str = ""
    """The digest of what would run, pinned as well; empty pins nothing."""

    @property
    def pinned(self) -> str:
        """The name that its pins belong to."""
        return self.owner or self.fingerprint


@dataclass(frozen=True, slots=True)
class _Known:
    listing: Listing
    due: float
    """When to read it anew, by the clock."""


class LastingSource:
    """Wraps *live*.

    Args:
        live: The source itself.
        memory: Where it is remembered.
        flights: Where it is listed, on a loop of its own; others may be too.
        options: How old a list may be, and how long a first one may take.
        changed: Called when the tools are others than those given before.
        clock: Seconds that only grow.
        wall: Seconds since the epoch.
    """

    def __init__(  # noqa: PLR0913  (keyword-only, wired in one place)
        self,
        live: Live,
        *,
        memory: Memory,
        flights: SingleFlight[Listing],
        options: UpstreamOptions,
        changed: Callable[[], None],
        clock: Clock = time.monotonic,
        wall: Clock = time.time,
    ) -> None:
        self._live = live
        self._memory = memory
        self._options = options
        self._changed = changed
        self._clock = clock
        self._wall = wall
        self._flights = flights
        self._known: _Known | None = None
        self._loaded = not memory.fingerprint
        self._expired = False
        self._aged = False
        self._again = False
        self._launch_changed: frozenset[str] | None = None
        self._launch_unchecked: tuple[Diagnostic, ...] = ()
        self._withheld = NOTHING

    @property
    def server(self) -> str:
        """The host's name for the server."""
        return self._live.server

    @property
    def trusted(self) -> bool:
        """Whether the host vouches for what the server says of its tools."""
        return self._live.trusted

    @property
    def live(self) -> Live:
        """The source itself."""
        return self._live

    async def list_tools(self) -> Listing:
        """Give the tools as they were last read; read them only if they never were, or expired.

        Raises:
            UpstreamTimeoutError: They are still being read for the first time.
            ClosedError: After `close`.
        """
        at_hand = self._read_late()
        if at_hand is not None:
            return at_hand
        if self._known is not None:
            return await self._anew()
        limit_s = self._options.first_listing_s
        try:
            async with asyncio.timeout(limit_s):
                return await self._flights.run((self, "list"), self._read)
        except TimeoutError as error:
            self._flights.start((self, "late"), self._come_in)
            raise UpstreamTimeoutError(
                self.server,
                f"was not listed within {limit_s} s; its tools come as soon as they are",
            ) from error

    def at_hand(self) -> Listing | None:
        """Give the tools as they were last read; None if they must be read.

        Raises:
            UpstreamError: What would run is not what was approved.
        """
        self._check_launch()
        if not self._loaded:
            self._load()
        known = self._known
        return None if known is None or self._expired or self._aged else known.listing

    def _read_late(self) -> Listing | None:
        """Give what `at_hand` gives, with its tools read; if they changed, as the store has it."""
        found = self.at_hand()
        if found is None or readable(found):
            return found
        self._known, self._loaded = None, False
        found = self.at_hand()
        return found if found is None or readable(found) else None

    async def _anew(self) -> Listing:
        try:
            return await self._flights.run((self, "list"), self._read)
        except UpstreamError as error:
            if not self._aged:
                raise
            self._aged = False
            return self._stale(error)

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call a tool; see `Source.call`."""
        self._check_launch()
        return await self._live.call(tool, arguments, tool_id=tool_id)

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request that changes nothing; see `ResourceSource.ask`."""
        self._check_launch()
        self._check_shown(*asked_of(params))
        return await self._live.ask(method, params)

    async def watch(self, uri: str, heard: WatchCallbacks) -> None:
        """Tell *heard* of changes of a resource; see `Watchable.watch`."""
        self._check_launch()
        self._check_shown("resource", uri)
        await self._live.watch(uri, heard)

    async def close(self) -> None:
        """Close the source; its list stays remembered."""
        await self._live.close()

    def expire(self) -> None:
        """Make the next listing read the list anew."""
        self._expired = True

    def outdate(self) -> None:
        """Read the list anew, in the background: the server says that it changed."""
        self._again = True
        if self._known is not None:
            self._flights.start((self, "renew"), self._renew)

    def tend(self) -> float:
        """Read the list anew, in the background, if it is old.

        Returns:
            When it will be, by the clock; minus infinity if nobody can say yet.
        """
        known = self._known
        if known is None:
            return -math.inf
        if self._clock() < known.due:
            return known.due
        self._flights.start((self, "renew"), self._renew)
        return -math.inf

    def recheck(self) -> bool:
        """Make the next listing look again whether what had changed is approved by now.

        Returns:
            Whether there is anything to look at.
        """
        known = self._known
        codes = [note.code for note in known.listing.diagnostics] if known is not None else []
        doubtful = bool(self._launch_changed) or "tool_changed" in codes
        if doubtful:
            self._launch_changed = None
            self._loaded = False
        return doubtful

    def forget(self) -> None:
        """Forget the list."""
        if self._memory.fingerprint:
            self._attempt(lambda: self._memory.records.forget(self._memory.fingerprint))

    def _check_launch(self, *, again: bool = False) -> None:
        launch = self._memory.launch
        if not launch:
            return
        if self._launch_changed is None or (again and self._launch_unchecked):
            self._launch_changed, self._launch_unchecked = self._seen({LAUNCH: launch})
        if self._launch_changed and self._options.on_change == "block":
            raise UpstreamError(
                self.server,
                "what would run is not what was approved: look at its configuration, then: "
                f"gateway approve {self.server}",
                kind="config",
                sent=False,
            )

    def _check_shown(self, kind: Kind, name: str) -> None:
        if self._withheld.holds(kind, name):
            raise InvalidRequestError(
                f"{self.server!r}: {kind} {name!r} is left out: the diagnostics of a search say why"
            )

    def _seen(self, digests: Mapping[str, str]) -> tuple[frozenset[str], tuple[Diagnostic, ...]]:
        """Note *digests*; give the names that changed.

        A store that fails knows of none: then a diagnostic says that nothing was checked.
        """
        if not digests:
            return frozenset(), ()
        found: list[frozenset[str]] = []
        see = self._memory.records.see
        notes = self._attempt(
            lambda: found.append(see(self._memory.pinned, digests)),
            lost=f"{self.server!r} was not compared with what was approved: ",
        )
        return frozenset().union(*found), notes

    def _vetted(self, listing: Listing) -> Listing:
        changed, unchecked = (
            self._seen(listing.digests) if self._memory.fingerprint else (frozenset[str](), ())
        )
        changed |= self._launch_changed or frozenset()
        unchecked = unchecked or self._launch_unchecked
        left = vetted(listing, changed, server=self.server, options=self._options)
        self._withheld = Withheld.of(listing, left)
        if unchecked:
            # One note of the store, the graver one, is enough for each server.
            others = (note for note in left.diagnostics if note.code != "catalog_unavailable")
            left = replace(left, diagnostics=(*others, *unchecked))
        return left

    def _load(self) -> None:
        self._loaded = True
        found: list[Recorded | None] = []
        records, fingerprint = self._memory.records, self._memory.fingerprint
        self._attempt(lambda: found.append(records.listing(fingerprint)))
        for recorded in found:
            if recorded is not None:
                age_s = self._wall() - recorded.listed_at
                # A stamp from the future is of a clock that was wrong: its age is unknown.
                age_s = math.inf if age_s < -_CLOCK_DRIFT_S else max(age_s, 0.0)
                rest_s = self._options.listing_ttl_s - age_s
                due = self._clock() + max(rest_s, 0.0)
                self._aged = -rest_s > self._options.max_stale_s
                self._live.learn(recorded.listing)
                self._known = _Known(self._vetted(recorded.listing), due)

    async def _read(self) -> Listing:
        # A store that could not say may have been busy only.
        self._check_launch(again=True)
        listing = await self._live.list_tools()
        known = self._known
        # Before the store forgets them: what stays as it was must be the same objects.
        before = known.listing if known is not None and readable(known.listing) else Listing()
        self._expired = self._aged = False
        if self._memory.fingerprint:
            keep = self._memory.records.keep
            note = self._attempt(lambda: keep(self._memory.fingerprint, self.server, listing))
            listing = replace(listing, diagnostics=(*listing.diagnostics, *note))
        listing = self._vetted(listing)
        listing = _steady(listing, before)
        self._known = _Known(listing, self._clock() + self._options.listing_ttl_s)
        return listing

    async def _come_in(self) -> Listing:
        listing = await self._flights.run((self, "list"), self._read)
        self._changed()
        return listing

    async def _renew(self) -> Listing:
        before = self._known
        listing = await self._read_again()
        if self._again:
            # Once: some servers say that they changed whenever they are listed.
            listing = await self._read_again()
        if before is None or not _same(before.listing, listing):
            self._changed()
        return listing

    async def _read_again(self) -> Listing:
        self._again = False
        try:
            return await self._flights.run((self, "list"), self._read)
        except UpstreamError as error:
            return self._stale(error)

    def _stale(self, error: UpstreamError) -> Listing:
        known = self._known
        old = known.listing if known is not None else Listing()
        kept = tuple(note for note in old.diagnostics if note.code != "source_stale")
        note = Diagnostic(stage="catalog", code="source_stale", detail=str(error))
        listing = replace(old, diagnostics=(*kept, note))
        self._known = _Known(listing, self._clock() + self._options.retry_after_s)
        return listing

    def _attempt(self, work: Callable[[], None], *, lost: str = "") -> tuple[Diagnostic, ...]:
        """Do *work* with the store; if the store fails, say why, after what was *lost* by that."""
        try:
            work()
        except StoreError as error:
            told = f"{lost}{error}"
            return (Diagnostic(stage="store", code="catalog_unavailable", detail=told),)
        return ()


def _steady(new: Listing, old: Listing) -> Listing:
    """Give *new* with the objects of *old* for what stayed as it was."""
    before = {(each.kind, each.name): each for each in (*old.tools, *old.things)}

    def kept(each: ToolDefinition) -> ToolDefinition:
        known = before.get((each.kind, each.name))
        return known if known is not None and known == each else each

    return replace(new, tools=tuple(map(kept, new.tools)), things=tuple(map(kept, new.things)))


def _same(one: Listing, other: Listing) -> bool:
    # Tools that were never read, and that another process replaced, cannot be compared.
    if not (readable(one) and readable(other)):
        return False
    codes = [[note.code for note in listing.diagnostics] for listing in (one, other)]
    mine, others = ((*listing.tools, *listing.things) for listing in (one, other))
    return (
        len(mine) == len(others)
        and all(a is b for a, b in zip(mine, others, strict=True))
        and codes[0] == codes[1]
        and one.instructions == other.instructions
    )
