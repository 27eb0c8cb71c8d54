"""`gateway graph propose`: edges from a chat model, written down for a person to judge."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gateway.cli.exits import NOTHING, OK
from gateway.cli.graphing import keep_documents, snapshot_of, told
from gateway.cli.screen import emit, note
from gateway.cli.settings import opened
from gateway.errors import ConfigError
from gateway.search.proposing import Batch, batches
from graphs import render

_CHARS_A_TOKEN = 4
"""About; an endpoint counts for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Who is asked, about what."""

    model: str
    base_url: str
    servers: tuple[str, ...]
    dry_run: bool


def propose(
    *, out: Path | None, asking: Asking, force: bool, config: Path | None, as_json: bool
) -> int:
    """Write what a model proposes to the folder *out*, or to standard output."""
    if not (asking.model or asking.dry_run):
        raise ConfigError("no model is named: choose one with --model, or look with --dry-run")
    with opened(config, strategy="graph") as session:
        if asking.dry_run:
            _dry(batches(snapshot_of(session), asking.servers), as_json=as_json)
            return session.code
        from gateway.search.openai import connected  # noqa: PLC0415  (openai is heavy)

        with connected(model=asking.model, base_url=asking.base_url) as proposer:
            found = session.gateway.propose_edges(proposer, servers=asking.servers)
    for notice in found.notices:
        note(notice)
    note(f"{found.requests} requests, {found.input_tokens} tokens in, {found.output_tokens} out")
    if out is not None:
        keep_documents(found.documents, out, force=force)
    if as_json:
        texts = [{"path": each.path, "content": render(each)} for each in found.documents]
        counts = {
            "requests": found.requests,
            "input_tokens": found.input_tokens,
            "output_tokens": found.output_tokens,
        }
        emit({"version": 1, "documents": texts, "notices": list(found.notices), **counts})
    elif out is None:
        told(found.documents)
    else:
        note(f"{len(found.documents)} documents written to {out}: read them, then --graph {out}")
    return session.code or (OK if found.documents else NOTHING)


def _dry(asked: tuple[Batch, ...], *, as_json: bool) -> None:
    tokens = sum(len(batch.text) for batch in asked) // _CHARS_A_TOKEN
    if as_json:
        shown = [{"server": each.server, "text": each.text} for each in asked]
        emit({"requests": shown, "about_input_tokens": tokens})
        return
    for batch in asked:
        note(f"{batch.server}: {len(batch.tools)} tools")
    note(f"{len(asked)} requests of about {tokens} tokens in all; nothing was sent")
