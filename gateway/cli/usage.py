"""`gateway usage`: what calls say, what follows what as documents to commit, and forgetting."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import graphs
from gateway.catalog.ledger import SqliteLedger, Tally
from gateway.cli.exits import NOTHING, OK
from gateway.cli.graphing import keep_documents, told
from gateway.cli.screen import emit, note, out, printable
from gateway.config import Options, ledger_path
from gateway.search.usage import bounded
from gateway.search.usage.bounded import Outcomes
from gateway.search.usage.memory import worn
from gateway.search.usage.sequences import Followed, followed, trusted

_DOCUMENT = "urn:tool-gateway:shown-by-use"


def show(tool: str, *, as_json: bool) -> int:
    """Tell how the calls of each tool ended, what that does to its scores, and what follows it."""
    with _ledger() as ledger:
        tallies = [each for each in ledger.tallies() if tool in {"", each.tool}]
        tasks = ledger.tasks()
    nexts = [each for each in followed(tasks) if tool in {"", each.before}]
    rows = _rows(tallies)
    believed = trusted(tasks)
    if as_json:
        pairs = [_pair(each) for each in nexts]
        emit({"tools": rows, "followed": pairs, "tasks": len(tasks), "believed": believed})
    else:
        lines = [
            f"{row['tool']}: {row['succeeded']} of {row['calls']} calls succeeded, "
            f"scores x {row['multiplier']}"
            for row in rows
        ]
        lines += [_line(each) for each in nexts]
        out().print(printable("\n".join(lines) or "no calls are noted"), soft_wrap=True)
        if nexts and not believed:
            note("these orders may be chance: the tasks do not foretell each other yet")
    return OK if rows else NOTHING


def export(*, target: Path | None, min_count: int, force: bool, as_json: bool) -> int:
    """Write what follows what as a Markdown-LD document, for a person to read and commit."""
    with _ledger() as ledger:
        tasks = ledger.tasks()
    found = followed(tasks, min_count=min_count)
    if found and not trusted(tasks):
        note("these orders may be chance: the tasks do not foretell each other yet")
    documents = [document(found)] if found else []
    if target is not None:
        keep_documents(documents, target, force=force)
    if as_json:
        texts = [{"path": each.path, "content": graphs.render(each)} for each in documents]
        emit({"version": 1, "documents": texts, "followed": [_pair(each) for each in found]})
    elif target is None:
        told(documents)
    else:
        note(f"{len(found)} edges written to {target}: read them, then --graph {target}")
    return OK if found else NOTHING


def forget(*, tool: str, tenant: str, everything: bool, as_json: bool) -> int:
    """Forget calls, and tell how many."""
    if not (tool or tenant or everything):
        note("say what: --tool, --tenant, or --all for everything")
        return NOTHING
    with _ledger() as ledger:
        gone = ledger.forget(tool=tool, tenant=tenant)
    if as_json:
        emit({"forgotten": gone})
    else:
        out().print(f"{gone} calls forgotten")
    return OK


def document(found: Sequence[Followed]) -> graphs.Document:
    """Write next steps that use has shown as one document; counts stand beside each."""
    edges = tuple(
        graphs.Edge(subject=each.before, predicate="nextStep", object=each.after) for each in found
    )
    text = "\n".join(f"- {_line(each)}" for each in found)
    return graphs.Document(
        id=_DOCUMENT,
        path="shown-by-use.md",
        title="Next steps that use has shown",
        edges=edges,
        sections=(graphs.Section(heading="Counts", level=2, text=text),),
    )


def _ledger() -> closing[SqliteLedger]:
    return closing(SqliteLedger(ledger_path(Options())))


def _rows(tallies: Sequence[Tally]) -> list[dict[str, object]]:
    plain = worn([replace(each, age_s=0.0) for each in tallies])
    return [
        {
            "tool": tool,
            "calls": int(plain[tool].calls),
            "succeeded": int(plain[tool].succeeded),
            "multiplier": round(bounded.multiplier(Outcomes(), ended), 3),
        }
        for tool, ended in sorted(worn(tallies).items())
    ]


def _pair(each: Followed) -> dict[str, object]:
    return {
        "before": each.before,
        "after": each.after,
        "tasks": each.count,
        "confidence": each.confidence,
    }


def _line(each: Followed) -> str:
    return f"`{each.before}` then `{each.after}`: {each.count} tasks, sure to {each.confidence:.2f}"
