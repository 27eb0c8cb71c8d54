"""Which servers there are outside the catalog: the bundled list, and a registry if one is named.

Nothing is fetched that the host did not configure. A registry is asked once a day; while it
cannot be reached, its last answer serves, however old.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.errors import StoreError, UpstreamError
from gateway.options import UpstreamOptions
from gateway.provision.entries import Entry
from gateway.provision.fetched import Answer, Answers
from gateway.provision.known import known_servers
from gateway.provision.options import ProvisionOptions
from gateway.provision.registry import entries_of, fetch, origin
from gateway.types import Code, Diagnostic


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """What there is."""

    entries: tuple[Entry, ...] = ()
    """One for each name; the bundled list wins, for it is the one that was looked at."""
    diagnostics: tuple[Diagnostic, ...] = ()
    fetched: bool = False
    """Whether the registry was really asked."""


async def offers(options: ProvisionOptions, upstream: UpstreamOptions, answers: Answers) -> Offers:
    """Gather the entries.

    Args:
        options: Where to look.
        upstream: Limits of a connection.
        answers: What registries said before.

    Raises:
        ConfigError: The registry's address may not be asked.
    """
    found = {entry.name: entry for entry in (known_servers() if options.known else ())}
    if not options.registry:
        return Offers(entries=tuple(found.values()))
    source = origin(options.registry)
    answered = await _answer(options, upstream, answers)
    entries, faults = entries_of(answered.raw, source=source)
    for entry in entries:
        found.setdefault(entry.name, entry)
    return Offers(
        entries=tuple(found.values()),
        diagnostics=(*answered.diagnostics, *faults),
        fetched=answered.fetched,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answered:
    raw: tuple[object, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    fetched: bool = False


async def _answer(
    options: ProvisionOptions, upstream: UpstreamOptions, answers: Answers
) -> _Answered:
    base = options.registry
    notes: list[Diagnostic] = []
    kept = _get(answers, base, notes)
    if kept is not None and kept.age_s < options.cache_s:
        return _Answered(raw=kept.raw, diagnostics=tuple(notes))
    try:
        fresh = await fetch(base, options, upstream)
    except UpstreamError as error:
        notes.append(_note("registry_unavailable", str(error)))
        if kept is None:
            return _Answered(diagnostics=tuple(notes))
        hours = kept.age_s / 3600
        notes.append(_note("registry_stale", f"{origin(base)}: read {hours:.0f} hours ago"))
        return _Answered(raw=kept.raw, diagnostics=tuple(notes))
    if fresh.whole:
        _keep(answers, base, fresh.raw, notes)
    return _Answered(raw=fresh.raw, diagnostics=(*notes, *fresh.diagnostics), fetched=True)


def _get(answers: Answers, base: str, notes: list[Diagnostic]) -> Answer | None:
    try:
        return answers.get(base)
    except StoreError as error:
        notes.append(_unkept(error))
        return None


def _keep(answers: Answers, base: str, raw: tuple[object, ...], notes: list[Diagnostic]) -> None:
    try:
        answers.keep(base, raw)
    except StoreError as error:
        notes.append(_unkept(error))


def _unkept(error: StoreError) -> Diagnostic:
    return Diagnostic(stage="store", code="catalog_unavailable", detail=str(error))


def _note(code: Code, detail: str) -> Diagnostic:
    return Diagnostic(stage="catalog", code=code, detail=detail)
