"""Edges that a model proposes, as Markdown-LD that a person reads, edits and commits.

* Asked a server at a time, a batch of its tools in one request; never part of a search.
* What the model says is looked at as data: an edge of a known kind between two tools of the batch
  is written down, everything else is dropped with a notice. Nothing is run or fetched, and no
  sentence of the model gets into a document.
* A proposal counts for nothing until it is given to a gateway as a document of the host.

A person's decisions on edges, written into the host's own documents.

* An accepted edge is declared from then on. A rejected one is forbidden: no rule derives it.
* All decisions on the tools of one server stand in one document, for people to read and commit.
* The difference is shown first; a file that changed meanwhile is not written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
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
_ID = "urn:tool-gateway:reviewed:"


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEdit:
    """One document before and after a decision; nothing is written yet."""

    path: str
    """Relative to the folder of documents."""
    file: Path
    before: str
    """Empty if there is no such file yet."""
    after: str
    """The same as before if the document says so already."""

    @property
    def diff(self) -> str:
        """The difference as a unified diff; empty if there is none.

        No lines stand around it: they may name tools that its reader may not see.
        """
        before, after = self.before.splitlines(), self.after.splitlines()
        return "\n".join(unified_diff(before, after, self.path, self.path, n=0, lineterm=""))

    @property
    def revision(self) -> str:
        """The digest of the document before."""
        return digest(self.before)

    def write(self, *, revision: str | None = None) -> None:
        """Write the document at once; missing folders are made.

        Args:
            revision: Of the document whose difference was shown; None does not compare.

        Raises:
            ConfigError: The document is another one by now, or cannot be written.
        """
        if revision not in {None, self.revision}:
            raise ConfigError(f"{self.path!r} was changed meanwhile: look at the difference again")
        if self.after != self.before:
            write_text(self.file, self.after, expected=self.before)


def plan_edit(folder: Path, edge: graphs.Edge, verdict: Verdict, *, server: str) -> GraphEdit:
    """Return how *edge* is accepted or rejected in the document of its server.

    Args:
        folder: The host's folder of documents.
        edge: With ends that mean the same in every document.
        verdict: Whether it is to be declared or forbidden.
        server: The server of the edge's subject; empty if it has none.

    Raises:
        ConfigError: *folder* is no folder, or the document is broken or cannot be edited safely.
    """
    if not folder.is_dir():
        raise ConfigError(f"{str(folder)!r} is no folder of documents: make it, or name another")
    name = server or "other"
    path = f"reviewed/{quote(name, safe='')}.md"
    file = folder / path
    before, identity = read_text(file), f"{_ID}{quote(name, safe='')}"
    empty = graphs.Document(id=identity, title=f"Reviewed edges of {name}")
    text = before or graphs.render(empty)
    try:
        after = graphs.add_edge(text, edge, path=path, forbidden=verdict == "reject")
    except graphs.DocumentError as error:
        raise ConfigError(str(error)) from error
    return GraphEdit(path=path, file=file, before=before, after=after)


BATCH = 24
"""Tools of one request: what belongs together is seen together, and an answer stays short."""
MAX_EDGES = 96
"""Edges that are read of one answer."""
_MAX_CHARS = 32_000
_HEADINGS = {
    "requires": "What must be used before",
    "nextStep": "What is often used after",
    "relatedTo": "What does something alike",
}
"""The kinds of edges that are asked for, and what a reader is told of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Tools of one server, asked about in one request."""

    server: str
    tools: tuple[Entity, ...]

    @property
    def text(self) -> str:
        """What the model is given: one line a tool."""
        return "\n".join(map(tool_line, self.tools))


def batches(
    snapshot: Snapshot, servers: Sequence[str] = (), caller: Caller | None = None
) -> tuple[Batch, ...]:
    """Return what would be asked: tools by server, in the order of their names.

    Args:
        snapshot: The catalog.
        servers: Which servers; empty for all. A tool that is alone on its server is left out.
        caller: Only what this party may see; None is the host, which sees all.

    Raises:
        InvalidRequestError: If there is no such server.
    """
    by_server: defaultdict[str, list[Entity]] = defaultdict(list)
    kinds = frozenset(each.kind for each in snapshot.entities if row_of(each.kind).graph)
    for entity in sorted(snapshot.visible(filters_for(caller, kinds)), key=lambda each: each.id):
        by_server[entity.server].append(entity)
    unknown = sorted(set(servers) - by_server.keys())
    if unknown:
        existing = ", ".join(sorted(by_server)) or "none"
        raise InvalidRequestError(f"no server {unknown[0]!r} with tools; there are: {existing}")
    return tuple(
        Batch(server=server, tools=tuple(tools[at : at + BATCH]))
        for server, tools in by_server.items()
        if len(tools) > 1 and (not servers or server in servers)
        for at in range(0, len(tools), BATCH)
    )


async def propose(
    snapshot: Snapshot,
    proposer: Proposer,
    telemetry: Telemetry,
    *,
    servers: Sequence[str] = (),
    caller: Caller | None = None,
) -> EdgeProposals:
    """Ask a chat model which tools belong together, as documents to read, edit and commit.

    Args:
        snapshot: The catalog.
        proposer: Such as `OpenAIProposer`; asked once for every few tools of a server.
        telemetry: Records each request.
        servers: Which servers; empty for all.
        caller: Only what this party may see; None is the host, which sees all.

    Raises:
        InvalidRequestError: If there is no such server.
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
    """Return the edges of *answer* that can be believed to be meant.

    Args:
        batch: What the model was asked about: both ends must be tools of it.
        answer: Whatever the model said.
        notices: Takes a notice of each line that is dropped.
    """
    lines = (
        line for line in answer[:_MAX_CHARS].splitlines() if not line.lstrip().startswith("`" * 3)
    )
    try:
        parsed = graphs.parse("---\ntitle: answer\n---\n\n" + "\n".join(lines).replace("\t", " "))
    except graphs.GraphError:
        notices.append(f"{batch.server}: the answer cannot be read")
        return
    notices += (f"{batch.server}: {clean(each.detail, limit=160)}" for each in parsed.notices)
    # The ids come last, so that they win.
    keys = ("name", "exposed_name", "id")
    names = {getattr(tool, key).casefold(): tool.id for key in keys for tool in batch.tools}
    for edge in parsed.edges[:MAX_EDGES]:
        ends = [names.get(end.casefold()) for end in (edge.subject, edge.object)]
        shown = clean(f"{edge.subject} --{edge.predicate}--> {edge.object}", limit=160)
        if None in ends or ends[0] == ends[1]:
            notices.append(f"{batch.server}: {shown!r} does not lie between two tools of it")
        elif edge.predicate not in _HEADINGS:
            notices.append(f"{batch.server}: {shown!r} is of a kind that was not asked for")
        else:
            yield graphs.Edge(subject=str(ends[0]), predicate=edge.predicate, object=str(ends[1]))
    if len(parsed.edges) > MAX_EDGES:
        left = len(parsed.edges) - MAX_EDGES
        notices.append(f"{batch.server}: {left} edges more than {MAX_EDGES} were left out")


def _document(server: str, edges: Sequence[graphs.Edge]) -> graphs.Document:
    """Write edges as arrows under a heading a kind; ids that no arrow can hold go to the front."""
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
