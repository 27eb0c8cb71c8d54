"""What `gateway discover` and `gateway provision` do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from gateway.cli import planned
from gateway.cli.exits import NOTHING, OK, UNAVAILABLE
from gateway.cli.jsonable import jsonable
from gateway.cli.progress import bars
from gateway.cli.screen import emit, err, note, out, warn
from gateway.cli.settings import DEFAULT_CONFIG, QUIET, chosen, opened
from gateway.cli.stored import store
from gateway.errors import InvalidRequestError
from gateway.gateway import Gateway
from gateway.manifests.mcp_json import read_manifest
from gateway.options import Options, UpstreamOptions
from gateway.provision.audit import Outcome, Step
from gateway.provision.consent import Consent, Question, by_policy
from gateway.provision.discover import discover as discovered
from gateway.provision.options import ProvisionOptions
from gateway.provision.provisioner import Provisioned, Provisioner
from gateway.types import Strategy

_OPTIONS = Options(upstream=UpstreamOptions(max_stale_s=0, first_listing_s=60))
"""A command ends too soon for anything to come in behind it."""
_CODES = {
    "local": OK,
    "planned": OK,
    "installed": OK,
    "none": NOTHING,
    "refused": NOTHING,
    "declined": NOTHING,
    "failed": UNAVAILABLE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the user wants of a provisioning."""

    apply: bool
    yes: bool
    registry: str
    trust: tuple[str, ...]
    pick: str
    values: tuple[str, ...]
    into: Path | None
    known: bool

    def inputs(self) -> dict[str, str]:
        """Give what the server is given, by name.

        Raises:
            InvalidRequestError: One of them is not of the form NAME=VALUE.
        """
        pairs = [value.partition("=") for value in self.values]
        if not all(name and sign for name, sign, _ in pairs):
            raise InvalidRequestError("--set takes NAME=VALUE, such as --set API_KEY=env:API_KEY")
        return {name: value for name, _, value in pairs}

    def options(self) -> ProvisionOptions:
        """Give the options of a provisioner."""
        return ProvisionOptions(
            registry=self.registry, known=self.known, namespaces=self.trust, folder=self.into
        )


def discover(
    intent: str,
    *,
    config: Path | None,
    documents: Path | None,
    strategy: Strategy | None,
    limit: int,
    as_json: bool,
) -> int:
    """Tell what the configured servers can do."""
    with opened(config, strategy=chosen(strategy), documents=documents) as session:
        gateway = session.gateway.gateway
        found = gateway.bridge.call(lambda: discovered(gateway, intent, limit=limit))
    told = {each.code for each in session.report.diagnostics}
    warn(each for each in found.diagnostics if each.code not in told | QUIET)
    if as_json:
        emit({"intent": intent, **_object(found)})
    else:
        out().print(planned.catalog(found))
    return session.code or (OK if found.tools else NOTHING)


def provision(
    intent: str, *, wish: Wish, config: Path | None, strategy: Strategy | None, as_json: bool
) -> int:
    """Find a server for *intent* and, if wished, bring it in."""
    inputs, path = wish.inputs(), config or DEFAULT_CONFIG
    with _gateway(path, chosen(strategy)) as gateway:
        provisioner = Provisioner(
            gateway,
            options=wish.options(),
            config=path,
            consent=by_policy if wish.yes else _asked(),
            progress=_progress,
        )
        with closing(provisioner):
            result = asyncio.run(
                provisioner.provision(intent, apply=wish.apply, pick=wish.pick, inputs=inputs)
            )
    warn(result.diagnostics)
    if as_json:
        emit({"intent": intent, **_object(result)})
    else:
        out().print(planned.provisioned(result), soft_wrap=True)
        _advise(result, wish)
    return _CODES[result.outcome]


@contextmanager
def _gateway(path: Path, strategy: Strategy) -> Iterator[Gateway]:
    """Make the gateway of a configuration that may not be there yet."""
    manifest = read_manifest(path) if path.is_file() else None
    with bars() as progress:
        gateway = Gateway(
            strategy=strategy,
            embedder=None if strategy == "graph" else "local",
            vector_store=store(),
            progress=progress,
            options=_OPTIONS,
        )
        with closing(gateway):
            if manifest is not None:
                warn(gateway.add_config(manifest))
            yield gateway


def _asked() -> Consent:
    async def consent(question: Question) -> bool:
        err().print(planned.question(question))
        try:
            return typer.confirm(planned.ASKS[question.stage], err=True)
        except typer.Abort:
            # Nobody is there to be asked.
            return False

    return consent


def _progress(step: Step, outcome: Outcome, about: str) -> None:
    note(f"{step} {outcome}" + (f": {about}" if about else ""))


def _advise(result: Provisioned, wish: Wish) -> None:
    if result.outcome == "planned" and not wish.apply:
        note("this was a dry run; --apply does it")
    if result.plan is not None and result.plan.needs.missing:
        options = " ".join(f"--set {name}=VALUE" for name in result.plan.needs.missing)
        note(f"give what it needs, secrets by reference such as env:NAME: {options}")
    if result.outcome == "declined" and wish.yes:
        note("--yes agrees only where every gate passes: without it you are asked")


def _object(value: object) -> dict[str, object]:
    told = jsonable(value)
    return told if isinstance(told, dict) else {}
