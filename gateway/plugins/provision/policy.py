"""Policy checks of an installation plan, and a person's consent to it.

Each check passes, asks or refuses. ``refuse`` is final. ``ask`` is a doubt that a person may
settle, but ``--yes`` may not.

A person is asked up to three times, with the full commands, as the protocol's security practices
for local servers require:

* before the installation, which runs no package code,
* before the server runs for the first time,
* before the server is kept, if its tools may contain a prompt injection.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from gateway.errors import ConfigError
from gateway.mcp.servers import HttpServer
from gateway.mcp.ssrf_guard import check_url
from gateway.options.provision import ProvisionOptions
from gateway.plugins.provision.plan import Plan, Programs
from gateway.plugins.provision.registry_schema import BUNDLED, Package, RegistryEntry, Remote

Verdict = Literal["pass", "ask", "refuse"]
_CheckResult: TypeAlias = tuple[Verdict, str]
"""Verdict of a check, and its reason."""

_PYPI_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_NPM_NAME = re.compile(r"(@[a-z0-9~][a-z0-9._~-]{0,98}/)?[a-z0-9~][a-z0-9._~-]{0,98}")
_PYPI_VERSION = re.compile(
    r"(\d+!)?\d+(\.\d+){0,8}((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+([._-][a-z0-9]+)*)?",
    re.ASCII,
)
_NPM_VERSION = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?", re.ASCII)
_FORMATS = {"pypi": (_PYPI_NAME, _PYPI_VERSION), "npm": (_NPM_NAME, _NPM_VERSION)}
_TRANSPORTS = frozenset({"streamable-http", "http"})


@dataclass(frozen=True, slots=True)
class PolicyCheck:
    """Result of one policy check."""

    name: str
    verdict: Verdict
    reason: str


def check_plan(
    plan: Plan,
    *,
    confidence: float,
    options: ProvisionOptions,
    programs: Programs,
    private_hosts: tuple[str, ...],
) -> tuple[PolicyCheck, ...]:
    """Run all policy checks of *plan*.

    Args:
        plan: Plan to check.
        confidence: Probability that the server serves the intent, 0 to 1.
        options: Options with the policy.
        programs: Installers of this machine.
        private_hosts: Private hosts that a remote server may use.
    """
    entry, route = plan.entry, plan.route
    if isinstance(route, Package):
        route_checks = _check_package(route, programs, options)
    else:
        route_checks = _check_remote(route, plan.url, private_hosts)
    suspicions = ", ".join(entry.suspicions)
    confident: Verdict = "pass" if confidence >= options.min_confidence else "ask"
    findings: dict[str, _CheckResult] = {
        "status": _check_status(entry.status),
        "source": _check_source(entry, options),
        **route_checks,
        "confidence": (
            confident,
            f"{confidence:.2f}, at least {options.min_confidence:.2f} is required",
        ),
        "text": ("refuse", f"possible prompt injection: the description {suspicions}")
        if suspicions
        else ("pass", "the description is not suspicious"),
        "inputs": _check_inputs(plan),
    }
    return tuple(PolicyCheck(name, *finding) for name, finding in findings.items())


Stage = Literal["install", "run", "keep"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Question whether a person agrees to the next step of an installation."""

    stage: Stage
    plan: Plan
    commands: tuple[tuple[str, ...], ...] = ()
    """Commands that run after consent."""
    launch: tuple[str, ...] = ()
    """Command that starts the server: the planned one, and after the installation the one with the
    absolute path. Empty for a remote server, or if not known yet."""
    gates: tuple[PolicyCheck, ...] = ()
    """Results of the policy checks."""
    warnings: tuple[str, ...] = ()
    """Further reasons against the step, such as suspicious tools."""


Consent = Callable[[Question], Awaitable[bool]]
"""Function that asks a person, and returns True for consent."""


async def by_policy(question: Question) -> bool:
    """Agree if every check passes without a warning, as ``--yes`` does."""
    return all(check.verdict == "pass" for check in question.gates) and not question.warnings


async def refuse_all(question: Question) -> bool:
    """Refuse every question."""
    del question
    return False


def _check_status(status: str) -> _CheckResult:
    if status == "active":
        return "pass", "active"
    if status == "deprecated":
        return "ask", "deprecated: its publisher advises against it"
    return "refuse", f"{status!r}: it was removed from the registry"


def _check_source(entry: RegistryEntry, options: ProvisionOptions) -> _CheckResult:
    if entry.source == BUNDLED:
        return "pass", "on the bundled list of well-known servers"
    if {f"{entry.namespace}/*", entry.name} & set(options.namespaces):
        return "pass", f"{entry.namespace} is trusted ({entry.source})"
    return "ask", f"{entry.namespace} is not among the trusted namespaces ({entry.source})"


def _check_package(
    package: Package, programs: Programs, options: ProvisionOptions
) -> dict[str, _CheckResult]:
    kind, version = package.kind, package.version
    if kind not in _FORMATS:
        reason = f"packages of type {kind!r} are not supported, only pypi and npm"
        return {"package": ("refuse", reason)}
    name_form, version_form = _FORMATS[kind]
    problems = {
        "not a package name": not name_form.fullmatch(package.identifier),
        f"its transport is {package.transport!r}, but must be stdio": package.transport != "stdio",
        "it requires arguments for the program that runs it": package.runtime_arguments,
        "it has a file hash, which cannot be checked for this type": package.sha256,
        "neither uv nor pip is installed": kind == "pypi" and not (programs.uv or programs.pip),
        "npm is not installed": kind == "npm" and not (programs.npm and programs.node),
    }
    fault = next((reason for reason, is_wrong in problems.items() if is_wrong), "")
    return {
        "package": ("refuse", f"{package.identifier!r}: {fault}")
        if fault
        else ("pass", f"{package.identifier} of {kind}"),
        "version": ("pass", f"pinned to {version}")
        if version_form.fullmatch(version)
        else ("refuse", f"{version!r} is not one exact version"),
        "index": _check_index(package.base_url.rstrip("/"), options),
    }


def _check_index(index: str, options: ProvisionOptions) -> _CheckResult:
    """Return a doubt if the entry names an index other than this machine's, which is used."""
    if not index or index in {url.rstrip("/") for url in options.indexes}:
        return "pass", "packages come from the package index of this machine"
    reason = f"the entry names {index}, but the package of that name is fetched from"
    return "ask", f"{reason} this machine's index"


def _check_remote(
    remote: Remote, url: str, private_hosts: tuple[str, ...]
) -> dict[str, _CheckResult]:
    if remote.transport not in _TRANSPORTS:
        reason = f"its transport is {remote.transport!r}, but must be streamable HTTP"
        return {"transport": ("refuse", reason)}
    reason = "a remote server has no version and may change at any time"
    return {"address": _check_url(url, private_hosts), "version": ("ask", reason)}


def _check_url(url: str, private_hosts: tuple[str, ...]) -> _CheckResult:
    try:
        url_origin = HttpServer(url).origin
        # The IP addresses of the host are checked when connecting.
        check_url(url, private_hosts)
    except ConfigError as error:
        return "refuse", str(error)
    if "@" in urlsplit(url).netloc or "{" in url:
        return "refuse", "the address of the server cannot be used"
    return "pass", url_origin


def _check_inputs(plan: Plan) -> _CheckResult:
    needs = plan.needs
    if needs.unsafe:
        return "refuse", "; ".join(needs.unsafe)
    if needs.missing:
        return "refuse", f"needs {', '.join(needs.missing)}, but no value is given"
    if needs.handed:
        return "ask", f"it would get {', '.join(needs.handed)} from this environment"
    names = ", ".join(sorted({*plan.env, *plan.headers}))
    return "pass", f"it gets {names}" if names else "no inputs are required"
