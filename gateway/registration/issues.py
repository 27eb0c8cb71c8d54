"""What wants a person's attention, as rows: what happened, since when, and what mends it."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal, get_args

from gateway.catalog.approvals import COMMAND_LINE_PIN
from gateway.catalog.identity import entity_id
from gateway.errors import ConfigError
from gateway.index.snapshot import IndexBuild
from gateway.mcp.servers import HttpServer
from gateway.options import UpstreamOptions
from gateway.registration.changes import (
    Change,
    difference_lines,
    difference_of,
    find_changes,
    find_similar,
)
from gateway.runtime.cache import Clock
from gateway.sources.cached import CachedSource
from gateway.sources.listing_store import ListingStore, StoredServer, attempt_store
from gateway.sources.registry import AccessRules
from gateway.sources.virtual import VirtualSource
from gateway.types import Code, Diagnostic, ToolDefinition

IssueKind = Literal[
    "changed",
    "waiting",
    "suspicious",
    "store",
    "signed_out",
    "failing",
    "quarantined",
    "similar",
    "never_found",
    "configuration",
    "index",
]
"""The most urgent first. *changed*: in use, but not as it was approved; *waiting*: left out until
it is approved; *suspicious*: a definition looks like an attack on a model; *store*: a store fails;
*signed_out*: a server wants a sign-in; *failing*: a server cannot be reached or listed;
*quarantined*: definitions cannot be used; *similar*: names hardly differ; *never_found*: no test
request finds the tool; *configuration*, *index*: what else is wrong there."""
Action = Literal["approve", "disable", "sign_in", "retry", "accept", "refresh", "reload", ""]
"""The method of `Gateway` that mends it; empty if none does."""
KINDS: tuple[IssueKind, ...] = get_args(IssueKind)
_NOTES: Mapping[Code, tuple[IssueKind, Action]] = {
    "catalog_unavailable": ("store", "refresh"),
    "store_unavailable": ("store", "refresh"),
    "store_rebuilt": ("store", ""),
    "listing_incomplete": ("failing", "retry"),
    "tool_quarantined": ("quarantined", "retry"),
    "listing_truncated": ("quarantined", "retry"),
    "config_warning": ("configuration", "reload"),
    "embedder_missing": ("index", ""),
    "embedding_failed": ("index", "refresh"),
    "vectors_incomplete": ("index", "refresh"),
    "graph_unavailable": ("index", "refresh"),
    "graph_document_invalid": ("index", "refresh"),
}
"""The diagnostics of an index build that are issues as they stand."""
_MAX_DETAILS = 3
"""How many diagnostics of one code and server are told in full."""
_CONFIGURED_PIN = "; look at it, then: pin "
"""What a change of an alias says whose pin stands in a file: nothing but the file approves it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """One thing that wants a person's attention."""

    kind: IssueKind
    id: str
    """What the action takes: the id of an entity, a server, ``name:NAME``, or the ids of tools."""
    server: str = ""
    detail: str = ""
    """What happened; parts of it came from servers."""
    since: float | None = None
    """When, in seconds since the epoch; None if it is not known."""
    action: Action = ""
    command: str = ""
    """What does the same on the command line; empty if nothing does."""
    digest: str = ""
    """Of what `Gateway.approve` would approve."""
    difference: tuple[str, ...] = ()
    """How a definition changed; see `difference_lines`."""
    address: str = ""
    """Where a person goes on to sign in, once that has begun."""


@dataclass(eq=False, repr=False)
class IssueFinder:
    """Finds the issues of one gateway, as it is at one moment.

    Args:
        build: The newest index build.
        store: Where listings and pins are kept.
        cached: The servers that have a listing of their own, by name.
        owners: The owner of the pins of each server, by name.
        names: The owner of the exposed names.
        in_files: The servers of configuration files, which commands know.
        rules: What the host and the catalog say of the use of things.
        options: The policies.
        addresses: Where a sign-in goes on that has begun, by server.
        clock: Seconds that only grow.
        wall: Seconds since the epoch.
    """

    build: IndexBuild
    _: KW_ONLY
    store: ListingStore
    cached: Mapping[str, CachedSource]
    owners: Mapping[str, str]
    names: str
    in_files: frozenset[str]
    rules: AccessRules
    options: UpstreamOptions
    addresses: Mapping[str, str]
    clock: Clock
    wall: Clock = time.time

    def __post_init__(self) -> None:
        """Read once what the store holds of each owner."""
        nothing: Mapping[str, float] = {}
        self._first_seen = lru_cache(maxsize=None)(
            lambda owner: attempt_store(lambda: self.store.first_seen(owner), nothing)[0]
        )

    def find(self, warnings: Iterable[Diagnostic], reports: Path | None) -> tuple[Issue, ...]:
        """Return all issues, the most urgent first.

        Args:
            warnings: Those of the configuration files.
            reports: A folder of evaluation reports; None has none.
        """
        found = [
            *map(self._of_change, self._changes[0]),
            *self._suspicious(),
            *self._servers(),
            *self._similar(),
            *self._never_found(reports),
            *self._noted((*self._changes[1], *warnings)),
        ]
        return tuple(sorted(found, key=lambda issue: (KINDS.index(issue.kind), issue.id)))

    @cached_property
    def _changes(self) -> tuple[tuple[Change, ...], tuple[Diagnostic, ...]]:
        """What is not as it was approved, or why that cannot be read."""
        nothing: tuple[Change, ...] = ()
        return attempt_store(lambda: find_changes(self.store, self.owners, self.names), nothing)

    def _of_change(self, change: Change) -> Issue:
        blocks = self.options.on_change == "block"
        end = "; it is left out until it is approved" if blocks else "; it is in use"
        if change.is_name:
            detail = f"{change.after} wants the name of {change.before}, whose server is gone"
        elif change.item == COMMAND_LINE_PIN:
            detail = f"what would run, or be asked, is not what was approved{end}"
        else:
            detail = f"the definition is not the one that was approved{end}"
        difference = difference_of(change, lambda digest: self._definition(change, digest))
        command = f"gateway approve {shlex.quote(change.label)}"
        return Issue(
            kind="waiting" if blocks or change.is_name else "changed",
            id=change.label,
            server=change.server,
            detail=detail,
            since=self._first_seen(change.owner).get(change.after),
            action="approve",
            command=command if change.server in self.in_files else "",
            digest=change.after,
            difference=difference_lines(difference),
        )

    def _definition(self, change: Change, digest: str) -> ToolDefinition | None:
        """Return the definition of *digest*: of the server as it is now, or from the store."""
        source = self.cached.get(change.server)
        now = source.listed.pinned(digest) if source is not None else None
        return now or attempt_store(lambda: self.store.definition(digest), None)[0]

    def _suspicious(self) -> Iterator[Issue]:
        """Yield what looks like an attack and is not disabled; an alias goes with its original."""
        end = "; it is left out" if self.options.on_suspicion == "block" else ""
        for server, result in self.build.listed.items():
            if isinstance(result.registration.source, VirtualSource):
                continue
            for key, reasons in result.listing.suspicions.items():
                kind, _, name = ("tool:" + key if ":" not in key else key).partition(":")
                if self.rules.access(server, name).enabled is False:
                    continue
                itself = kind == "server"
                digest = result.listing.digests.get(key, "")
                what = "what it says of itself" if itself else f"the {kind}"
                yield Issue(
                    kind="suspicious",
                    id=entity_id(kind, server, server if itself else name),
                    server=server,
                    detail=f"{what} looks like an attack on a model: {', '.join(reasons)}{end}",
                    since=self._first_seen(self.owners.get(server, "")).get(digest),
                    action="" if itself else "disable",
                )

    def _servers(self) -> Iterator[Issue]:
        """Yield each server that wants a sign-in, or cannot be reached or listed."""
        nothing: Mapping[str, StoredServer] = {}
        keys = {each.key.fingerprint: each.key.pin_owner for each in self.cached.values()}
        stored, _ = attempt_store(lambda: self.store.read(keys), nothing)
        blocked = {
            change.server
            for change in self._changes[0]
            if change.item == COMMAND_LINE_PIN and self.options.on_change == "block"
        }
        for name, result in self.build.listed.items():
            if name in blocked or isinstance(result.registration.source, VirtualSource):
                continue
            notes = [
                note.detail
                for note in result.listing.diagnostics
                if note.code == "source_load_failed" and result.failed
            ]
            source = self.cached.get(name)
            if source is not None:
                known = stored.get(source.key.fingerprint, StoredServer())
                yield from self._of_server(name, source, notes, known)
            elif notes:
                yield Issue(kind="failing", id=name, server=name, detail=notes[0], action="retry")

    def _of_server(
        self, name: str, source: CachedSource, notes: list[str], stored: StoredServer
    ) -> Iterator[Issue]:
        live, fault = source.live, source.live.supervisor.fault
        failed_at, noted = stored.failure or (None, "")
        # A server that refuses one request is well.
        is_down = fault is not None and not live.healthy and fault.kind != "refused"
        reasons = [fault.with_stderr if fault is not None and is_down else "", *notes, noted]
        reason = next(filter(None, reasons), "it could not be listed" if source.is_stale else "")
        since = live.supervisor.failing_since if is_down else None
        at = failed_at if since is None else self.wall() - (self.clock() - since)
        auth = live.target.auth if isinstance(live.target, HttpServer) else None
        login = f"gateway login {name}"
        if auth is not None and (login in reason or auth.tokens is None or not auth.tokens.read()):
            yield Issue(
                kind="signed_out",
                id=name,
                server=name,
                detail="it wants a person to sign in",
                since=at,
                action="sign_in",
                command=login if name in self.in_files else "",
                address=self.addresses.get(name, ""),
            )
        elif reason:
            state = "left alone for a while" if live.supervisor.breaker.is_open else live.state
            command = f"gateway servers test {name}" if name in self.in_files else ""
            yield Issue(
                kind="failing",
                id=name,
                server=name,
                detail=f"{reason} ({state})",
                since=at,
                action="retry",
                command=command,
            )

    def _similar(self) -> Iterator[Issue]:
        """Yield tools that may be found and whose names hardly differ; the host names aliases."""
        virtual = {
            name
            for name, result in self.build.listed.items()
            if isinstance(result.registration.source, VirtualSource)
        }
        own_names = {
            entity.id: entity.name
            for entity in self.build.snapshot.entities
            if entity.kind == "tool" and entity.hints.enabled and entity.server not in virtual
        }
        nothing: tuple[tuple[str, ...], ...] = ()
        groups, _ = attempt_store(lambda: find_similar(own_names, self.store, self.names), nothing)
        for keys in groups:
            yield Issue(
                kind="similar",
                id=", ".join(keys),
                detail="the names hardly differ: look before you take one for the other",
                action="accept" if self.names else "",
            )

    def _never_found(self, reports: Path | None) -> Iterator[Issue]:
        """Yield the tools that no request of the newest report finds, if they are still there."""
        if reports is None:
            return
        from gateway.quality.report import newest_report, report_files  # noqa: PLC0415  (pydantic is heavy: only who reads reports pays for it)

        files = report_files(reports)
        try:
            report = newest_report(reports)
        except ConfigError as error:
            yield Issue(kind="configuration", id=files[-1].name, detail=str(error))
            return
        enabled = {each.id: each for each in self.build.snapshot.entities if each.hints.enabled}
        for tool in report.tools if report else ():
            if tool.findable or tool.id not in enabled:
                continue
            above = ", ".join([*tool.outranked_by][:_MAX_DETAILS])
            words = ", ".join(tool.missing_words)
            parts = [f"none of {tool.requests} test requests finds it"]
            parts += [f"above it: {above}"] if above else []
            parts += [f"words that it lacks: {words}"] if words else []
            yield Issue(
                kind="never_found",
                id=tool.id,
                server=enabled[tool.id].server,
                detail="; ".join(parts),
                since=files[-1].stat().st_mtime,
                command="gateway lint",
            )

    def _noted(self, others: Iterable[Diagnostic]) -> Iterator[Issue]:
        """Yield one issue for the diagnostics of one code and server."""
        servers = {
            note: server
            for server, result in self.build.listed.items()
            for note in result.listing.diagnostics
        }
        groups: dict[tuple[IssueKind, Action, str, str], list[str]] = {}
        for note in dict.fromkeys((*self.build.snapshot.diagnostics, *others)):
            server = servers.get(note, "")
            kind, action = _NOTES.get(note.code, ("index", ""))
            if note.code == "tool_changed" and _CONFIGURED_PIN in note.detail:
                kind = "waiting" if self.options.on_change == "block" else "changed"
            elif note.code not in _NOTES:
                continue
            where = "" if kind == "store" else server
            groups.setdefault((kind, action, note.code, where), []).append(note.detail)
        for (kind, action, code, server), details in groups.items():
            more = len(details) - _MAX_DETAILS
            end = f"; and {more} more" if more > 0 else ""
            yield Issue(
                kind=kind,
                id=server or code,
                server=server,
                detail="; ".join(details[:_MAX_DETAILS]) + end,
                action=action,
            )
