"""`gateway lint`: problems of tool definitions, and helpful search texts."""

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
from gateway.runtime.text import counted
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
        "File of your own requests, as for 'gateway eval'; repeatable.",
    ] = None,
    suggest: Annotated[bool, "Try search texts for tools that requests miss."] = True,
    model: Annotated[
        str, "Chat model that writes search texts; it uses the key of --normalize."
    ] = "",
    out: OutFile = None,
    force: options.Force = False,
    strict: Annotated[bool, "Exit with code 1 if there are findings."] = False,
    config: options.Config = options.DEFAULT_CONFIG,
    documents: options.Graph = None,
    strategy: options.Strategy = None,
    caller: Caller | None = None,
) -> Output:
    """Report problems of your tools' definitions, their cost and possible fixes.

    Helpful search texts are shown as a diff of the configuration that you may apply. Nothing else
    is written. Without --model nothing is sent anywhere.
    """
    own_requests = [
        request for file in requests or () for request in read_file(file, parse).requests
    ]
    with open_session(config, strategy=strategy, documents=documents) as session:
        gateway, settings = session.gateway.gateway, read_config(config).normalizer
        with _writer(session, with_model(settings, model) if model else None) as write:
            look = partial(look_at, gateway, own_requests, caller=caller or ANYONE)
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
    """Return a diff of *config*, for ``git apply``, that adds search texts to its rules.

    Raises:
        ConfigError: If the file cannot be read or edited.
    """
    where, before = str(config), read_text(config)
    after = before
    for suggestion in suggestions:
        member = ("rules", suggestion.tool, "search_text")
        after = with_member(after, member, suggestion.search_text, where=where)
    old, new = (text.splitlines(keepends=True) for text in (before, after))
    lines = unified_diff(old, new, f"a/{config.name}", f"b/{config.name}")
    return "".join(line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in lines)


def lint_view(report: LintReport, diff: str) -> RenderableType:
    """Return the findings, their cost and the diff."""
    effects = [{**to_jsonable(effect), "means": FINDINGS[effect.code]} for effect in report.effects]
    columns = (
        *("finding=code", "meaning=means", "requests from=source", "tools"),
        *("recall@5 with finding=with_it", "without finding=without"),
    )
    finding_columns = ("tool", "finding=code", "detail", "found", "requests")
    tools = counted(report.tools, "checked tool")
    helpful = ("tool", "requests from=judged_by", "before", "after")
    return Group(
        *listing(
            ("kind of finding with its effect", "kinds of findings with their effect"),
            effects,
            *columns,
        ),
        *listing(
            (f"finding in {tools}", f"findings in {tools}, least found tools first"),
            report.findings,
            *finding_columns,
        ),
        *listing(
            ("helpful search text", "helpful search texts, which hide no other tool"),
            report.suggestions,
            *helpful,
        ),
        Text(f"\n{diff}" if diff else ""),
    )
