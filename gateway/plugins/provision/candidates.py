"""Servers that could be added to the catalog, from the bundled list and a registry.

* A complete answer of the configured registry is stored for `ProvisionOptions.cache_s`. While the
  registry cannot be reached, an older answer is used.
* Names and descriptions form a separate catalog, searched with the gateway's strategy and embedder,
  so confidences are comparable with those of tools.
* In the bundled list, name, version and purpose of each entry were checked, but not its safety.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from gateway.embed.protocol import Embedded, Embedder, EmbedderInfo, Role
from gateway.errors import UpstreamError
from gateway.gateway import Gateway
from gateway.options import Options, UpstreamOptions
from gateway.options.provision import ProvisionOptions
from gateway.plugins.provision.registry import fetch, origin, parse_entries
from gateway.plugins.provision.registry_schema import BUNDLED, RegistryEntry, parse_entry
from gateway.runtime.atomic_file import write_atomically
from gateway.runtime.background_loop import Bridge
from gateway.types import (
    Code,
    Diagnostic,
    InvokeResult,
    JsonObject,
    Stage,
    Strategy,
    ToolDefinition,
)
from gateway.types.listing import Listing

_BUNDLED_FILE = Path(__file__).with_name("bundled_servers.json")
_SOURCE_NAME = "mcp-server"
"""Source name shared by all ranked entries, so that it does not affect their order."""


@cache
def bundled_servers() -> tuple[RegistryEntry, ...]:
    """Return the entries of the bundled list, in the order of its file."""
    raw = json.loads(_BUNDLED_FILE.read_text(encoding="utf-8"))
    return tuple(parse_entry(item, source=BUNDLED) for item in raw)


async def available_servers(
    options: ProvisionOptions, upstream: UpstreamOptions, folder: Path
) -> tuple[list[RegistryEntry], list[Diagnostic]]:
    """Return the servers in the bundled list and the configured registry.

    A bundled entry replaces a registry entry of the same name, because it was checked.

    Args:
        options: Registry and limits, and whether the bundled list is used.
        upstream: Limits of a connection.
        folder: Folder with stored answers.

    Raises:
        ConfigError: If the URL of the registry is not allowed.
    """
    entries = {entry.name: entry for entry in (bundled_servers() if options.known else ())}
    diagnostics: list[Diagnostic] = []
    if options.registry:
        raw = await _registry_answer(options, upstream, folder, diagnostics)
        source = origin(options.registry)
        parsed, fault = parse_entries(raw, source=source)
        entries |= {entry.name: entry for entry in parsed if entry.name not in entries}
        if fault:
            detail = f"{source}: {fault}"
            skipped = Diagnostic(stage="catalog", code="registry_entry_skipped", detail=detail)
            diagnostics.append(skipped)
    return list(entries.values()), diagnostics


async def _registry_answer(
    options: ProvisionOptions,
    upstream: UpstreamOptions,
    folder: Path,
    diagnostics: list[Diagnostic],
) -> Sequence[object]:
    """Return the items of the registry, or the stored ones if they are recent or it is unreachable.

    Failures are added to *diagnostics*.
    """
    registry_origin = origin(options.registry)
    path = folder / f"{hashlib.sha256(options.registry.encode()).hexdigest()[:16]}.json"
    stored = _read_answer(path)
    age_s = time.time() - path.stat().st_mtime if stored is not None else math.inf
    if stored is not None and age_s < options.cache_s:
        return stored

    def note(code: Code, detail: str, stage: Stage = "catalog") -> None:
        diagnostics.append(Diagnostic(stage=stage, code=code, detail=detail))

    try:
        answer = await fetch(options.registry, options, upstream)
    except UpstreamError as error:
        note("registry_unavailable", str(error))
        if stored is not None:
            note("registry_stale", f"{registry_origin}: read {age_s / 3600:.0f} hours ago")
        return stored or ()
    if answer.cut:
        note(
            "registry_truncated",
            f"{registry_origin}: {answer.cut}; {len(answer.raw)} entries were read",
        )
        return answer.raw
    try:
        write_atomically(path, json.dumps(answer.raw))
    except OSError as error:
        detail = f"the answer of {registry_origin} is not stored: {error.strerror}"
        note("catalog_unavailable", detail, stage="store")
    return answer.raw


def _read_answer(path: Path) -> list[object] | None:
    try:
        raw = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return raw if isinstance(raw, list) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCandidate:
    """A server from a registry or the bundled list that may serve an intent."""

    entry: RegistryEntry
    confidence: float
    """Calibrated confidence that the server serves the intent, 0 to 1."""


async def rank_servers(
    gateway: Gateway, entries: Sequence[RegistryEntry], intent: str, *, limit: int, max_ranked: int
) -> tuple[ServerCandidate, ...]:
    """Return the servers likely to serve *intent*, best first.

    Args:
        gateway: Gateway with the strategy and embedder for ranking.
        entries: Entries in any order. Equal scores are ordered by name.
        intent: Task that the server should serve.
        limit: Maximum number of candidates.
        max_ranked: Maximum number of entries to embed, preselected by words. Embedding a whole
            registry would take minutes.
    """
    embedder = gateway.embedder if gateway.strategy != "graph" else None
    if embedder is not None and len(entries) > max_ranked:
        preselected = await _search(gateway.options, entries, intent, limit=max_ranked)
        entries = [candidate.entry for candidate in preselected]
    return await _search(
        gateway.options,
        entries,
        intent,
        limit=limit,
        strategy=gateway.strategy,
        embedder=embedder and _BorrowedEmbedder(embedder, gateway.bridge),
    )


async def _search(
    options: Options,
    entries: Sequence[RegistryEntry],
    intent: str,
    *,
    limit: int,
    strategy: Strategy = "graph",
    embedder: Embedder | None = None,
) -> tuple[ServerCandidate, ...]:
    by_name: dict[str, RegistryEntry] = {}
    for entry in sorted(entries, key=lambda entry: entry.name):
        # A second entry with the same short name gets its full name.
        by_name[entry.name if entry.short in by_name else entry.short] = entry
    search = replace(options.search, max_limit=max(options.search.max_limit, limit))
    options = replace(options, search=search)
    async with Gateway(strategy=strategy, embedder=embedder, options=options) as catalog:
        catalog.add_source(_EntrySource(by_name))
        result = await catalog.search(intent, limit=limit)
    return tuple(
        ServerCandidate(
            entry=by_name[match.id.removeprefix(f"{_SOURCE_NAME}/")], confidence=match.confidence
        )
        for match in result.matches
    )


@dataclass(frozen=True, slots=True)
class _BorrowedEmbedder:
    """Embedder of another gateway, run on that gateway's loop, where its connections are."""

    embedder: Embedder
    bridge: Bridge

    @property
    def info(self) -> EmbedderInfo:
        return self.embedder.info

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        return await self.bridge.run(partial(self.embedder.embed, texts, role=role))


@dataclass(frozen=True)
class _EntrySource:
    """Registry entries as a source of tools that are ranked but never called."""

    by_name: Mapping[str, RegistryEntry]
    server = _SOURCE_NAME
    trusted = True
    # Entries are only ranked, and not scanned. Tools are scanned when their server lists them.

    async def list_tools(self) -> Listing:
        definitions = tuple(
            ToolDefinition(
                name=name,
                title=entry.title,
                description=entry.description,
                input_schema={"type": "object"},
            )
            for name, entry in self.by_name.items()
        )
        return Listing(definitions=definitions)

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        raise AssertionError(tool, arguments, tool_id)

    async def close(self) -> None:
        """Do nothing."""
