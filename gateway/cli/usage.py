"""`gateway usage`: what calls say, what that would change, documents to commit, and forgetting."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import graphs
from gateway.cli.exits import NOTHING, OK
from gateway.cli.graphing import keep_documents, snapshot_of, told
from gateway.cli.screen import emit, note, out, printable
from gateway.cli.settings import chosen, opened
from gateway.errors import InvalidRequestError
from gateway.options import Options
from gateway.options.environment import ledger_path
from gateway.search.replay import Replayed, replay
from gateway.search.usage import bounded
from gateway.search.usage.bounded import Outcomes
from gateway.search.usage.past import past_of, worn
from gateway.search.usage.sequences import Followed, followed, trusted
from gateway.storage.call_log import SqliteLedger
from gateway.types import Strategy
from gateway.usage.call_log import Tally

_DOCUMENT = "urn:tool-gateway:shown-by-use"
_NONE = "no calls are noted: a program has them noted with UsageOptions(record=True)"


def show(tool: str, *, as_json: bool) -> int:
    """Tell how the calls of each tool ended, what that does to its scores, and what follows it."""
    with _ledger() as ledger:
        tallies = [each for each in ledger.tallies() if tool in {"", each.tool}]
        tasks = [each.tools for each in ledger.tasks()]
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
        out().print(printable("\n".join(lines) or _NONE), soft_wrap=True)
        if nexts and not believed:
            note("these orders may be chance: the tasks do not foretell each other yet")
    return OK if rows else NOTHING


def export(*, target: Path | None, min_count: int, force: bool, as_json: bool) -> int:
    """Write what follows what as a Markdown-LD document, for a person to read and commit."""
    with _ledger() as ledger:
        tasks = [each.tools for each in ledger.tasks()]
    found = followed(tasks, min_count=min_count)
    if found and not trusted(tasks):
        note("these orders may be chance: the tasks do not foretell each other yet")
    documents = [document(found)] if found else []
    if target is not None:
        keep_documents(documents, target, force=force)
    if as_json:
        texts = [{"path": each.path, "content": graphs.render(each)} for each in documents]
        emit({"version": 1, "documents": texts, "followed": [_pair(each) for each in found]})
    elif not found:
        note("nothing was called after something else often enough to be written down")
    elif target is None:
        told(documents)
    else:
        note(f"{len(found)} edges written to {target}: read them, then --graph {target}")
    return OK if found else NOTHING


def report(
    *, config: Path | None, documents: Path | None, strategy: Strategy | None, as_json: bool
) -> int:
    """Tell what the signals would have changed for the calls that are noted."""
    with _ledger() as ledger:
        past = past_of(ledger)
    with opened(config, strategy=chosen(strategy), documents=documents) as session:
        found = replay(snapshot_of(session), past.tasks, past.outcomes)
    if as_json:
        emit({"tasks": len(past.tasks), "believed": past.trusted, **rows(found, past.trusted)})
    else:
        out().print(printable(lines(found, past.trusted)), soft_wrap=True)
    return session.code or (OK if found.learn.calls else NOTHING)


def rows(found: Replayed, believed: bool) -> dict[str, dict[str, object]]:
    """Give the gain of each signal, and whether ``auto`` would turn it on."""
    return {
        "learn": {**asdict(found.learn), "on": found.learn.measured and believed},
        "rerank": {**asdict(found.rerank), "on": found.rerank.measured},
    }


def lines(found: Replayed, believed: bool) -> str:
    """Say the same in a line each."""
    return "\n".join(
        f"{name}: {row['calls']} calls of {row['tasks']} tasks, {row['higher']} would stand higher "
        f"and {row['lower']} lower; 1/place {row['mean']:+.4f} ({row['low']:+.4f} to "
        f"{row['high']:+.4f}): auto is {'on' if row['on'] else 'off'}"
        for name, row in rows(found, believed).items()
    )


def forget(*, tool: str, tenant: str, everything: bool, as_json: bool) -> int:
    """Forget calls, and tell how many."""
    if not (tool or tenant or everything):
        raise InvalidRequestError("say what to forget: --tool, --tenant, or --all")
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
        "of": each.of,
        "confidence": each.confidence,
    }


def _line(each: Followed) -> str:
    counted = f"{each.count} of {each.of} tasks, sure to {each.confidence:.2f}"
    return f"`{each.before}` then `{each.after}`: {counted}"
