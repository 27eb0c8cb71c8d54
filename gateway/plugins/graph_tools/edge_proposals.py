"""Edges proposed by a chat model, and a person's decisions about edges, as Markdown documents.

* The model gets a batch of tools of one server in each request. Its reply is untrusted: only edges
  of a requested predicate between two tools of the batch are used, and none of its sentences.
* A proposal has no effect until the host adds its document to a gateway.
* A decision edits the host's document for the server of the edge. Acceptance declares the edge.
  Rejection forbids it, so that no rule derives it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from operator import attrgetter
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import graphs
from gateway.catalog.kinds import row_of
from gateway.config.config_file import read_text, write_text
from gateway.errors import ConfigError, Failed, InvalidRequestError, attempt
from gateway.index.snapshot import Snapshot
from gateway.index.texts import tool_line
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.text import clean, digest
from gateway.search.edges import EdgeProposals, Proposer
from gateway.search.normalize import ModelReply, ask
from gateway.types import Caller, Entity
from gateway.types.caller import filters_for

Verdict = Literal["accept", "reject"]
_ID_PREFIX = "urn:tool-gateway:reviewed:"


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEdit:
    """Planned change of one graph document, which only `write` writes."""

    path: str
    """Path relative to the folder of documents."""
    file: Path
    before: str
    """Text of the document before the change; empty if the file does not exist."""
    after: str
    """Text after the change; equal to `before` if the document already contains the decision."""

    @property
    def diff(self) -> str:
        """Unified diff from `before` to `after`; empty if both are equal.

        It has no context lines, because they might name tools that the reader may not see.
        """
        before, after = self.before.splitlines(), self.after.splitlines()
        return "\n".join(unified_diff(before, after, self.path, self.path, n=0, lineterm=""))

    @property
    def revision(self) -> str:
        """Digest of `before`."""
        return digest(self.before)

    def write(self, *, revision: str | None = None) -> None:
        """Write the document atomically, and create missing folders.

        Args:
            revision: `revision` of the edit that a person reviewed; None skips the comparison.

        Raises:
            ConfigError: If the document cannot be written, or changed since it was planned or
                reviewed.
        """
        if revision not in {None, self.revision}:
            raise ConfigError(f"{self.path!r} changed in the meantime: review the diff again")
        if self.after != self.before:
            write_text(self.file, self.after, expected=self.before)


def plan_edit(folder: Path, edge: graphs.Edge, verdict: Verdict, *, server: str) -> GraphEdit:
    """Plan the change that accepts or rejects *edge* in the document of *server*.

    Args:
        folder: Folder of the host's documents.
        edge: Edge between two entity ids.
        verdict: ``accept`` declares the edge, ``reject`` forbids it.
        server: Server of the edge's subject, or empty.

    Raises:
        ConfigError: If *folder* is not a folder, or the document cannot be edited safely.
    """
    if not folder.is_dir():
        raise ConfigError(
            f"{str(folder)!r} is not a folder: create it, or choose another folder of documents"
        )
    name = server or "other"
    path = f"reviewed/{quote(name, safe='')}.md"
    file = folder / path
    before, identity = read_text(file), f"{_ID_PREFIX}{quote(name, safe='')}"
    empty = graphs.Document(id=identity, title=f"Reviewed edges of {name}")
    text = before or graphs.render(empty)
    try:
        after = graphs.add_edge(text, edge, path=path, forbidden=verdict == "reject")
    except graphs.DocumentError as error:
        raise ConfigError(str(error)) from error
    return GraphEdit(path=path, file=file, before=before, after=after)


BATCH = 24
"""Maximum number of tools in one model request, which keeps replies short."""
MAX_EDGES = 96
"""Maximum number of edges read from one reply."""
_MAX_CHARS = 32_000
_HEADINGS = {"requires": "Prerequisites", "nextStep": "Next steps", "relatedTo": "Related tools"}
"""Document headings, keyed by the predicates that the model is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Tools of one server for one model request."""

    server: str
    tools: tuple[Entity, ...]

    @property
    def text(self) -> str:
        """Description of the tools for the model, one line each."""
        return "\n".join(map(tool_line, self.tools))


def batches(
    snapshot: Snapshot, servers: Sequence[str] = (), caller: Caller | None = None
) -> tuple[Batch, ...]:
    """Return the tools of each server, sorted by id and split into batches.

    Args:
        snapshot: Catalog.
        servers: Servers to include; empty is all. Servers with a single tool are skipped.
        caller: Caller who sees the tools; None is the host, which sees all.

    Raises:
        InvalidRequestError: If a server is unknown or has no visible tools.
    """
    by_server: defaultdict[str, list[Entity]] = defaultdict(list)
    kinds = frozenset(entity.kind for entity in snapshot.entities if row_of(entity.kind).graph)
    for entity in sorted(snapshot.visible(filters_for(caller, kinds)), key=attrgetter("id")):
        by_server[entity.server].append(entity)
    unknown = sorted(set(servers) - by_server.keys())
    if unknown:
        existing = ", ".join(sorted(by_server)) or "none"
        raise InvalidRequestError(
            f"server {unknown[0]!r} is unknown or has no tools; choose from: {existing}"
        )
    return tuple(
        Batch(server=server, tools=tuple(tools[start : start + BATCH]))
        for server, tools in by_server.items()
        if len(tools) > 1 and (not servers or server in servers)
        for start in range(0, len(tools), BATCH)
    )


async def propose(
    snapshot: Snapshot,
    proposer: Proposer,
    telemetry: Telemetry,
    *,
    servers: Sequence[str] = (),
    caller: Caller | None = None,
) -> EdgeProposals:
    """Ask a chat model for edges between the tools of each server.

    Args:
        snapshot: Catalog.
        proposer: Chat model, which gets one request for each batch of tools.
        telemetry: Records the requests.
        servers: Servers to include; empty is all.
        caller: Caller who sees the tools; None is the host, which sees all.

    Returns:
        Documents to review, and notices of dropped edges and failed requests.

    Raises:
        InvalidRequestError: If a server is unknown or has no visible tools.
    """
    edges: defaultdict[str, dict[graphs.Edge, None]] = defaultdict(dict)
    notices: list[str] = []
    replies: list[ModelReply] = []
    requests = batches(snapshot, servers, caller)
    for batch in requests:
        reply = await attempt(ask(proposer, proposer.propose(batch.text), telemetry))
        if isinstance(reply, Failed):
            notices.append(f"{batch.server}: the model could not be asked: {reply.reason}")
            continue
        replies.append(reply)
        edges[batch.server].update(dict.fromkeys(read(batch, reply.text, notices)))
    return EdgeProposals(
        documents=tuple(
            _document(server, tuple(proposed)) for server, proposed in edges.items() if proposed
        ),
        notices=tuple(notices),
        requests=len(requests),
        input_tokens=sum(reply.input_tokens or 0 for reply in replies),
        output_tokens=sum(reply.output_tokens or 0 for reply in replies),
    )


def read(batch: Batch, answer: str, notices: list[str]) -> Iterator[graphs.Edge]:
    """Yield the valid edges in a model's reply.

    Args:
        batch: Tools that the edges may connect.
        answer: Reply of the model.
        notices: Receives a notice for each dropped edge or line.
    """
    lines = (
        line for line in answer[:_MAX_CHARS].splitlines() if not line.lstrip().startswith("`" * 3)
    )
    try:
        parsed = graphs.parse("---\ntitle: answer\n---\n\n" + "\n".join(lines).replace("\t", " "))
    except graphs.GraphError:
        notices.append(f"{batch.server}: the model's reply cannot be parsed")
        return
    notices += (f"{batch.server}: {clean(notice.detail, limit=160)}" for notice in parsed.notices)
    # Ids are last, because they take precedence over equal names.
    keys = ("name", "exposed_name", "id")
    names = {getattr(tool, key).casefold(): tool.id for key in keys for tool in batch.tools}
    for edge in parsed.edges[:MAX_EDGES]:
        ends = [names.get(end.casefold()) for end in (edge.subject, edge.object)]
        edge_text = clean(f"{edge.subject} --{edge.predicate}--> {edge.object}", limit=160)
        if None in ends or ends[0] == ends[1]:
            notices.append(f"{batch.server}: {edge_text!r} is not an edge between two of its tools")
        elif edge.predicate not in _HEADINGS:
            notices.append(f"{batch.server}: {edge_text!r} has a predicate that was not requested")
        else:
            yield graphs.Edge(subject=str(ends[0]), predicate=edge.predicate, object=str(ends[1]))
    if len(parsed.edges) > MAX_EDGES:
        excess = len(parsed.edges) - MAX_EDGES
        notices.append(
            f"{batch.server}: {excess} edges above the limit of {MAX_EDGES} were left out"
        )


def _document(server: str, edges: Sequence[graphs.Edge]) -> graphs.Document:
    """Return a document for *server* with *edges* as arrows, under a heading for each predicate."""
    arrows: defaultdict[str, list[str]] = defaultdict(list)
    for edge in edges:
        arrows[edge.predicate].append(f"- `{edge.subject}` --{edge.predicate}--> `{edge.object}`")
    return graphs.Document(
        id=f"urn:tool-gateway:proposed:{quote(server, safe='')}",
        path=f"{quote(server, safe='')}.md",
        title=f"Proposed edges of {server}",
        edges=tuple(edges),
        sections=tuple(
            graphs.Section(heading=heading, level=2, text=text)
            for predicate, heading in _HEADINGS.items()
            if (text := "\n".join(arrows[predicate]))
        ),
    )
