"""What may come in: policy checks of a plan, and the consent of a person.

Each check says pass, ask or refuse. ``refuse`` is final; ``ask`` is a doubt that a person may
settle and ``--yes`` may not. All checks are reported: a plan is judged by reading it.

A person is asked up to three times, each time with commands whole, never cut (as the protocol's
security practices for installing local servers demand): before the install, which runs nothing of
the package; before the server runs for the first time; and before it stays, if its tools look like
an attack.
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
_Finding: TypeAlias = tuple[Verdict, str]
"""A verdict and its reason."""

_PYPI_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_NPM_NAME = re.compile(r"(@[a-z0-9~][a-z0-9._~-]{0,98}/)?[a-z0-9~][a-z0-9._~-]{0,98}")
_PYPI_VERSION = re.compile(
    r"(\d+!)?\d+(\.\d+){0,8}((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+([._-][a-z0-9]+)*)?",
    re.ASCII,
)
_NPM_VERSION = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?", re.ASCII)
_FORMS = {"pypi": (_PYPI_NAME, _PYPI_VERSION), "npm": (_NPM_NAME, _NPM_VERSION)}
_TRANSPORTS = frozenset({"streamable-http", "http"})


@dataclass(frozen=True, slots=True)
class PolicyCheck:
    """One condition and its verdict."""

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
    """Judge *plan*.

    Args:
        plan: What would be done.
        confidence: The probability that the server is what was asked for, 0 to 1.
        options: The policy.
        programs: What installs here.
        private_hosts: Hosts of the host's own network that may be used.
    """
    entry, route = plan.entry, plan.route
    if isinstance(route, Package):
        route_checks = _check_package(route, programs, options)
    else:
        route_checks = _check_remote(route, plan.url, private_hosts)
    suspicions = ", ".join(entry.suspicions)
    confident: Verdict = "pass" if confidence >= options.min_confidence else "ask"
    findings: dict[str, _Finding] = {
        "status": _check_status(entry.status),
        "source": _check_source(entry, options),
        **route_checks,
        "confidence": (confident, f"{confidence:.2f}, wanted {options.min_confidence:.2f}"),
        "text": ("refuse", f"its description {suspicions}")
        if suspicions
        else ("pass", "nothing suspicious in its description"),
        "inputs": _check_inputs(plan),
    }
    return tuple(PolicyCheck(name, *finding) for name, finding in findings.items())


Stage = Literal["install", "run", "keep"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a person is asked to agree to."""

    stage: Stage
    plan: Plan
    commands: tuple[tuple[str, ...], ...] = ()
    """The commands that run now, whole: program and arguments of each."""
    launch: tuple[str, ...] = ()
    """The command that runs as the server: before the install as the plan has it, before the run by
    the absolute path of a file in the package's folder. Empty for a remote server, and while only
    the installed package can tell."""
    gates: tuple[PolicyCheck, ...] = ()
    """The policy checks of the plan."""
    warnings: tuple[str, ...] = ()
    """What else speaks against it."""


Consent = Callable[[Question], Awaitable[bool]]
"""Returns whether it may be done."""


async def by_policy(question: Question) -> bool:
    """Agree where every check passes and there is no warning: what ``--yes`` means."""
    return all(check.verdict == "pass" for check in question.gates) and not question.warnings


async def refuse_all(question: Question) -> bool:
    """Agree to nothing."""
    del question
    return False


def _check_status(status: str) -> _Finding:
    if status == "active":
        return "pass", "active"
    if status == "deprecated":
        return "ask", "deprecated: its publisher says to use something else"
    return "refuse", f"{status!r}: it was taken out of the registry"


def _check_source(entry: RegistryEntry, options: ProvisionOptions) -> _Finding:
    if entry.source == BUNDLED:
        return "pass", "on the bundled list of well-known servers"
    if {f"{entry.namespace}/*", entry.name} & set(options.namespaces):
        return "pass", f"{entry.namespace} is trusted ({entry.source})"
    return "ask", f"{entry.namespace} is not among the trusted namespaces ({entry.source})"


def _check_package(
    package: Package, programs: Programs, options: ProvisionOptions
) -> dict[str, _Finding]:
    kind, version = package.kind, package.version
    if kind not in _FORMS:
        reason = f"packages of kind {kind!r} are not installed here: pypi and npm are"
        return {"package": ("refuse", reason)}
    name_form, version_form = _FORMS[kind]
    faults = {
        "no name of a package": not name_form.fullmatch(package.identifier),
        f"speaks {package.transport!r}: stdio is what is run": package.transport != "stdio",
        "wants arguments for the program that runs it": package.runtime_arguments,
        "gives a file's hash, which is not checked for this kind": package.sha256,
        "neither uv nor pip is installed": kind == "pypi" and not (programs.uv or programs.pip),
        "npm is not installed": kind == "npm" and not (programs.npm and programs.node),
    }
    fault = next((reason for reason, is_wrong in faults.items() if is_wrong), "")
    return {
        "package": ("refuse", f"{package.identifier!r}: {fault}")
        if fault
        else ("pass", f"{package.identifier} of {kind}"),
        "version": ("pass", f"pinned to {version}")
        if version_form.fullmatch(version)
        else ("refuse", f"{version!r} is not one exact version"),
        "index": _check_index(package.base_url.rstrip("/"), options),
    }


def _check_index(index: str, options: ProvisionOptions) -> _Finding:
    """Check the index that the entry names; packages come from this machine's index alone."""
    if not index or index in {url.rstrip("/") for url in options.indexes}:
        return "pass", "the index that this machine is set to"
    reason = f"the entry means {index}; what is fetched is what this machine's index has"
    return "ask", f"{reason} of that name"


def _check_remote(remote: Remote, url: str, private_hosts: tuple[str, ...]) -> dict[str, _Finding]:
    if remote.transport not in _TRANSPORTS:
        reason = f"speaks {remote.transport!r}: streamable HTTP is what is spoken"
        return {"transport": ("refuse", reason)}
    reason = "a remote server has no version: it may change at any time"
    return {"address": _check_url(url, private_hosts), "version": ("ask", reason)}


def _check_url(url: str, private_hosts: tuple[str, ...]) -> _Finding:
    try:
        shown = HttpServer(url).origin
        # The addresses of a name are checked when it is connected to.
        check_url(url, private_hosts)
    except ConfigError as error:
        return "refuse", str(error)
    if "@" in urlsplit(url).netloc or "{" in url:
        return "refuse", "the address of the server cannot be used"
    return "pass", shown


def _check_inputs(plan: Plan) -> _Finding:
    needs = plan.needs
    if needs.unsafe:
        return "refuse", "; ".join(needs.unsafe)
    if needs.missing:
        return "refuse", f"needs {', '.join(needs.missing)}: give it by name"
    if needs.handed:
        return "ask", f"would be given {', '.join(needs.handed)} of this environment"
    names = ", ".join(sorted({*plan.env, *plan.headers}))
    return "pass", f"gives it {names}" if names else "needs none"
