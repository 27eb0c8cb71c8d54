"""`gateway lint`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import unified_diff
from functools import partial
from pathlib import Path
from typing import Annotated

from rich.console import Group, RenderableType
from rich.text import Text

from gateway.cli import options
from gateway.cli.command import Output, command, command_group, note
from gateway.cli.commands.evaluation import MODEL_TIMEOUT_S, OutFile, listing, read_file, write_file
from gateway.cli.exit_codes import NOTHING
from gateway.cli.session import CatalogSession, open_session, read_config, with_model
from gateway.cli.tables import to_jsonable
from gateway.config.config_file import read_text
from gateway.config.json_edit import with_member
from gateway.config.manifest import NormalizerSettings
from gateway.plugins.quality.linting import FINDINGS, LintReport
from gateway.plugins.quality.linting import lint as look_at
from gateway.plugins.quality.requests import parse
from gateway.plugins.quality.suggestions import (
    Suggestion,
    WriteTexts,
    write_by_model,
    write_by_rules,
)
from gateway.types import ANYONE, Caller

_NO_NEWLINE = "\\ No newline at end of file\n"

app = command_group()


@command(app)
def lint(
    *,
    requests: Annotated[
        list[Path] | None,
        "--requests",
        "-r",
        "Your own requests, as for 'gateway eval'; repeatable.",
    ] = None,
    suggest: Annotated[bool, "Try search texts where requests miss a tool."] = True,
    model: Annotated[str, "A chat model that writes them; its key is that of --normalize."] = "",
    out: OutFile = None,
    force: options.Force = False,
    strict: Annotated[bool, "Exit code 1 if there are findings."] = False,
    config: options.Config = options.DEFAULT_CONFIG,
    documents: options.Graph = None,
    strategy: options.Strategy = None,
    caller: Caller | None = None,
) -> Output:
    """Say what is wrong with your tools' definitions, what it costs and what would help.

    Search texts that help are shown as a diff of the configuration, which you may apply: nothing
    else is written. Without --model nothing is sent anywhere.
    """
    own = [each for file in requests or () for each in read_file(file, parse).requests]
    with open_session(config, strategy=strategy, documents=documents) as session:
        gateway, settings = session.gateway.gateway, read_config(config).normalizer
        with _writer(session, with_model(settings, model) if model else None) as write:
            look = partial(look_at, gateway, own, caller=caller or ANYONE)
            work = partial(look, write=write if suggest else None, progress=session.on_progress)
            report = gateway.bridge.call(work)
    diff = rules_diff(config, report.suggestions)
    if out is not None:
        write_file(out, diff, force=force)
    return Output(
        {**to_jsonable(report), "diff": diff},
        lint_view(report, "" if out else diff),
        code=session.code or (NOTHING if strict and report.findings else 0),
    )


@contextmanager
def _writer(session: CatalogSession, settings: NormalizerSettings | None) -> Iterator[WriteTexts]:
    if settings is None:
        yield write_by_rules
        return
    from gateway.search.openai import connected_normalizer  # noqa: PLC0415  (openai is heavy)

    write = partial(write_by_model, telemetry=session.gateway.gateway.telemetry, on_failure=note)
    with connected_normalizer(settings, timeout_s=MODEL_TIMEOUT_S) as model:
        yield partial(write, model=model, progress=session.on_progress)


def rules_diff(config: Path, suggestions: Sequence[Suggestion]) -> str:
    """Return what to change in *config*, so that its rules have the search texts.

    It is a diff as ``git apply`` takes it in the folder of the file.

    Raises:
        ConfigError: The file cannot be read or edited.
    """
    where, before = str(config), read_text(config)
    after = before
    for each in suggestions:
        member = ("rules", each.tool, "search_text")
        after = with_member(after, member, each.search_text, where=where)
    old, new = (text.splitlines(keepends=True) for text in (before, after))
    lines = unified_diff(old, new, f"a/{config.name}", f"b/{config.name}")
    return "".join(line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in lines)


def lint_view(report: LintReport, diff: str) -> RenderableType:
    """Return what is wrong, what it costs, and the diff."""
    effects = [{**to_jsonable(each), "means": FINDINGS[each.code]} for each in report.effects]
    columns = ("finding=code", "means", "requests=source", "tools", "recall@5=with_it", "without")
    found = ("tool", "finding=code", "detail", "found", "requests")
    helpful = ("tool", "requests=judged_by", "before", "after")
    return Group(
        *listing("findings have this effect", effects, *columns),
        *listing(f"findings in {report.tools} tools, least found first", report.findings, *found),
        *listing("search texts help and hide no other tool", report.suggestions, *helpful),
        Text(f"\n{diff}" if diff else ""),
    )
