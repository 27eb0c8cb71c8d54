from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from gateway.attention.changes import difference_lines, difference_of, find_changes, find_similar
from gateway.catalog.approvals import COMMAND_LINE_PIN
from gateway.catalog.identity import entity_id
from gateway.catalog.visibility import AccessRules
from gateway.errors import Failed, attempt_call
from gateway.hookspecs import IssueSource
from gateway.index.snapshot import IndexBuild
from gateway.mcp.servers import HttpServer, OAuth
from gateway.options import UpstreamOptions
from gateway.runtime.cache import Clock
from gateway.sources.cached import CachedSource
from gateway.sources.listing_store import ListingStore, StoredServer, attempt_store
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
"""Kinds of issues, most urgent first.

*changed*: a definition in use is not the approved one. *waiting*: a definition is blocked until it
is approved. *suspicious*: possible prompt injection. *store*: a store fails. *signed_out*: a server
requires a sign-in. *failing*: a server cannot be reached or listed. *quarantined*: definitions are
invalid. *similar*: tools have almost the same name. *never_found*: no test request finds the tool.
*configuration*, *index*: other problems of the configuration files or of the index build."""
Action = Literal["approve", "disable", "sign_in", "retry", "accept", "refresh", "reload", ""]
"""Method of `Gateway` that resolves an issue; "" if there is none."""
KINDS: tuple[IssueKind, ...] = get_args(IssueKind)
_NOTES: Mapping[Code, tuple[IssueKind, Action]] = {
    "catalog_unavailable": ("store", "refresh"),
    "store_unavailable": ("store", "refresh"),
    "store_rebuilt": ("store", ""),
    "listing_incomplete": ("failing", "retry"),
    "tool_quarantined": ("quarantined", "retry"),
    "listing_truncated": ("quarantined", "retry"),
    "config_warning": ("configuration", "reload"),
    "plugin_failed": ("configuration", ""),
    "embedder_missing": ("index", ""),
    "embedding_failed": ("index", "refresh"),
    "text_refused": ("index", ""),
    "vectors_incomplete": ("index", "refresh"),
    "vectors_unavailable": ("store", "refresh"),
    "graph_unavailable": ("index", "refresh"),
    "graph_document_invalid": ("index", "refresh"),
}
"""Kind and action of the issue for a diagnostic of an index build, keyed by diagnostic code."""
_MAX_DETAILS = 3
"""Maximum number of diagnostics that one issue shows in full."""
_COMMANDS: Mapping[Action, str] = {
    "approve": "gateway approve",
    "sign_in": "gateway login",
    "retry": "gateway servers test",
}
_CONFIGURED_PIN = "; look at it, then: pin "
"""Text in the diagnostic of a changed alias whose pin is in a configuration file. Only an edit of
that file approves the change, so its issue has no action."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """A problem that a person has to resolve."""

    kind: IssueKind
    id: str
    """Argument for the action: the label of a change (see `Change.label`), an entity id, a server,
    or tool ids separated by ", ". Otherwise the code of a diagnostic, or the name of a plugin."""
    detail: str
    """Description of the problem, which may contain text from servers."""
    since: float | None = None
    """Time at which the problem began, in seconds since the epoch; None if not known."""
    action: Action = ""
    command: str = field(init=False)
    """Shell command for *action*, or "". It works only for servers of a configuration file."""
    digest: str = ""
    """Digest of the value that `Gateway.approve` would approve, or ""."""
    difference: tuple[str, ...] = ()
    """Lines with the changes of a definition; see `difference_lines`."""
    address: str = ""
    """URL for the browser of a running sign-in, or ""."""

    def __post_init__(self) -> None:
        command = _COMMANDS.get(self.action, "")
        text = f"{command} {shlex.quote(self.id)}" if command else ""
        object.__setattr__(self, "command", text)


@dataclass(eq=False, repr=False)
class IssueFinder:
    """Finds the issues of one gateway at one moment.

    Args:
        cached: Sources with a stored listing, keyed by server.
        owners: Owners of the servers' pins, keyed by server.
        names: Owner of the pins of exposed names.
        addresses: URLs of running sign-ins, keyed by server.
        wall: Clock with seconds since the epoch.
    """

    build: IndexBuild
    _: KW_ONLY
    store: ListingStore
    cached: Mapping[str, CachedSource]
    owners: Mapping[str, str]
    names: str
    rules: AccessRules
    options: UpstreamOptions
    addresses: Mapping[str, str]
    clock: Clock
    wall: Clock = time.time

    def __post_init__(self) -> None:
        # The problems of virtual servers come from other servers.
        self._listed = {
            name: result
            for name, result in self.build.listed.items()
            if not isinstance(result.registration.source, VirtualSource)
        }
        self._blocks = self.options.on_change == "block"

    def find(
        self,
        warnings: Iterable[Diagnostic],
        reports: Path | None,
        sources: Iterable[IssueSource] = (),
    ) -> tuple[Issue, ...]:
        """Return all issues, the most urgent first.

        Args:
            warnings: Warnings about the configuration files.
            reports: Folder of evaluation reports; None ignores reports.
            sources: Issue sources of plugins. An error of one is an issue too.
        """
        nothing: list[Issue] = []
        pinned, notes = attempt_store(lambda: [*self._changed(), *self._similar()], nothing)
        waiting = {issue.id for issue in pinned if issue.kind == "waiting"}
        issues = [
            *pinned,
            *self._suspicious(),
            *(issue for issue in self._servers() if issue.id not in waiting),
            *(issue for source in sources for issue in self._of_plugin(source, reports)),
            *self._noted((*notes, *warnings)),
        ]
        return tuple(sorted(issues, key=lambda issue: (KINDS.index(issue.kind), issue.id)))

    def _changed(self) -> Iterator[Issue]:
        end = "; it is left out until it is approved" if self._blocks else "; it is in use"
        for change in find_changes(self.store, self.owners, self.names):
            detail = f"the definition is not the one that was approved{end}"
            if change.is_name:
                detail = (
                    f"{change.after} would get the name of {change.before} from a removed server"
                )
            elif change.item == COMMAND_LINE_PIN:
                detail = f"the command line or URL changed since it was approved{end}"
            difference = difference_of(change, partial(self._definition, change.server))
            yield Issue(
                kind="waiting" if self._blocks or change.is_name else "changed",
                id=change.label,
                detail=detail,
                since=self.store.first_seen(change.owner).get(change.after),
                action="approve",
                digest=change.after,
                difference=difference_lines(difference),
            )

    def _definition(self, server: str, digest: str) -> ToolDefinition | None:
        source = self.cached.get(server)
        now = source.listed.pinned(digest) if source is not None else None
        return now or self.store.definition(digest)

    def _similar(self) -> Iterator[Issue]:
        own_names = {
            entity.id: entity.name
            for entity in self.build.snapshot.entities
            if entity.kind == "tool" and entity.hints.enabled and entity.server in self._listed
        }
        detail = "the names hardly differ: check that you use the right one"
        action: Action = "accept" if self.names else ""
        for keys in find_similar(own_names, self.store, self.names):
            yield Issue(kind="similar", id=", ".join(keys), detail=detail, action=action)

    def _suspicious(self) -> Iterator[Issue]:
        end = "; it is left out" if self.options.on_suspicion == "block" else ""
        for server, result in self._listed.items():
            for key, reasons in result.listing.suspicions.items():
                kind, _, name = key.partition(":") if ":" in key else ("tool", "", key)
                rules = self.rules.access(server, name), self.rules.of_server(server, name)
                if any(rule.enabled is False for rule in rules):
                    continue
                yield Issue(
                    kind="suspicious",
                    id=entity_id(kind, server, name),
                    detail=f"possible prompt injection: {', '.join(reasons)}{end}",
                    # A server's instructions are always withheld.
                    action="" if kind == "server" else "disable",
                )

    def _servers(self) -> Iterator[Issue]:
        """Yield an issue for each server that requires a sign-in, or is unreachable."""
        nothing: Mapping[str, StoredServer] = {}
        keys = {cached.key.fingerprint: cached.key.pin_owner for cached in self.cached.values()}
        stored, _ = attempt_store(lambda: self.store.read(keys), nothing)
        for name, result in self._listed.items():
            notes = [
                note.detail
                for note in result.listing.diagnostics
                if result.failed and note.code == "source_load_failed"
            ]
            if source := self.cached.get(name):
                record = stored.get(source.key.fingerprint, StoredServer())
                yield from self._of_server(name, source, notes, record.failure or (None, ""))
            elif notes:
                yield Issue(kind="failing", id=name, detail=notes[0], action="retry")

    def _of_server(
        self, name: str, source: CachedSource, notes: list[str], stored: tuple[float | None, str]
    ) -> Iterator[Issue]:
        live, fault = source.live, source.live.supervisor.fault
        since, noted = stored
        # A server that only refuses a request is healthy.
        if fault is not None and not live.healthy and fault.kind != "refused":
            notes = [fault.with_stderr, *notes]
            since = self.wall() - (self.clock() - (live.supervisor.failing_since or self.clock()))
        stale = "it could not be listed" if source.is_stale else ""
        reason = next(filter(None, (*notes, noted, stale)), "")
        auth = live.target.auth if isinstance(live.target, HttpServer) else None
        is_empty = isinstance(auth, OAuth) and not (
            auth.per_user or (auth.tokens is not None and auth.tokens.read())
        )
        if is_empty or f"gateway login {name}" in reason:
            detail, address = "the server requires a sign-in", self.addresses.get(name, "")
            yield Issue(
                kind="signed_out",
                id=name,
                detail=detail,
                since=since,
                action="sign_in",
                address=address,
            )
        elif reason:
            state = (
                "skipped by the circuit breaker" if live.supervisor.breaker.is_open else live.state
            )
            detail = f"{reason} ({state})"
            yield Issue(kind="failing", id=name, detail=detail, since=since, action="retry")

    def _of_plugin(self, source: IssueSource, reports: Path | None) -> Iterable[Issue]:
        issues = attempt_call(lambda: [*source.find(self.build, reports)])
        if isinstance(issues, Failed):
            return [Issue(kind="configuration", id=source.name, detail=issues.reason)]
        return issues

    def _noted(self, others: Iterable[Diagnostic]) -> Iterator[Issue]:
        """Yield issues for the diagnostics of the index build and for *others*.

        Diagnostics of one server with the same kind and action share one issue. Without a server,
        and for stores, diagnostics with the same code share one issue.
        """
        servers = {
            note: server
            for server, result in self.build.listed.items()
            for note in result.listing.diagnostics
        }
        groups: dict[tuple[IssueKind, Action, str], list[str]] = {}
        for note in dict.fromkeys((*self.build.snapshot.diagnostics, *others)):
            kind, action = _NOTES.get(note.code, ("index", ""))
            if note.code == "tool_changed" and _CONFIGURED_PIN in note.detail:
                kind = "waiting" if self._blocks else "changed"
            elif note.code not in _NOTES:
                continue
            key = note.code if kind == "store" else servers.get(note, note.code)
            groups.setdefault((kind, action, key), []).append(note.detail)
        for (kind, action, key), details in groups.items():
            more = len(details) - _MAX_DETAILS
            end = f"; and {more} more" if more > 0 else ""
            detail = "; ".join(details[:_MAX_DETAILS]) + end
            yield Issue(kind=kind, id=key, detail=detail, action=action)
