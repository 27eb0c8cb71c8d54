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
from typing import Literal
from urllib.parse import urlsplit

from gateway.errors import ConfigError
from gateway.mcp.servers import HttpServer
from gateway.mcp.ssrf_guard import check_url
from gateway.provision.options import ProvisionOptions
from gateway.provision.plan import Plan, Programs
from gateway.provision.registry_schema import BUNDLED, Package, RegistryEntry, Remote

Verdict = Literal["pass", "ask", "refuse"]

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
    is_confident = confidence >= options.min_confidence
    suspicions = ", ".join(entry.suspicions)
    return (
        _check_status(entry.status),
        _check_source(entry, options),
        *route_checks,
        PolicyCheck(
            "confidence",
            "pass" if is_confident else "ask",
            f"{confidence:.2f}, wanted {options.min_confidence:.2f}",
        ),
        PolicyCheck("text", "refuse", f"its description {suspicions}")
        if suspicions
        else PolicyCheck("text", "pass", "nothing suspicious in its description"),
        _check_inputs(plan),
    )


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


def _check_status(status: str) -> PolicyCheck:
    if status == "active":
        return PolicyCheck("status", "pass", "active")
    if status == "deprecated":
        return PolicyCheck("status", "ask", "deprecated: its publisher says to use something else")
    return PolicyCheck("status", "refuse", f"{status!r}: it was taken out of the registry")


def _check_source(entry: RegistryEntry, options: ProvisionOptions) -> PolicyCheck:
    if entry.source == BUNDLED:
        return PolicyCheck("source", "pass", "on the bundled list of well-known servers")
    if {f"{entry.namespace}/*", entry.name} & set(options.namespaces):
        return PolicyCheck("source", "pass", f"{entry.namespace} is trusted ({entry.source})")
    reason = f"{entry.namespace} is not among the trusted namespaces ({entry.source})"
    return PolicyCheck("source", "ask", reason)


def _check_package(
    package: Package, programs: Programs, options: ProvisionOptions
) -> tuple[PolicyCheck, ...]:
    kind, version = package.kind, package.version
    if kind not in _FORMS:
        reason = f"packages of kind {kind!r} are not installed here: pypi and npm are"
        return (PolicyCheck("package", "refuse", reason),)
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
    is_pinned = version_form.fullmatch(version)
    return (
        PolicyCheck("package", "refuse", f"{package.identifier!r}: {fault}")
        if fault
        else PolicyCheck("package", "pass", f"{package.identifier} of {kind}"),
        PolicyCheck("version", "pass", f"pinned to {version}")
        if is_pinned
        else PolicyCheck("version", "refuse", f"{version!r} is not one exact version"),
        _check_index(package.base_url.rstrip("/"), options),
    )


def _check_index(index: str, options: ProvisionOptions) -> PolicyCheck:
    """Check the index that the entry names; packages come from this machine's index alone."""
    if not index or index in {url.rstrip("/") for url in options.indexes}:
        return PolicyCheck("index", "pass", "the index that this machine is set to")
    reason = f"the entry means {index}; what is fetched is what this machine's index has"
    return PolicyCheck("index", "ask", f"{reason} of that name")


def _check_remote(
    remote: Remote, url: str, private_hosts: tuple[str, ...]
) -> tuple[PolicyCheck, ...]:
    if remote.transport not in _TRANSPORTS:
        reason = f"speaks {remote.transport!r}: streamable HTTP is what is spoken"
        return (PolicyCheck("transport", "refuse", reason),)
    return (
        _check_url(url, private_hosts),
        PolicyCheck("version", "ask", "a remote server has no version: it may change at any time"),
    )


def _check_url(url: str, private_hosts: tuple[str, ...]) -> PolicyCheck:
    try:
        shown = HttpServer(url).origin
        # The addresses of a name are checked when it is connected to.
        check_url(url, private_hosts)
    except ConfigError as error:
        return PolicyCheck("address", "refuse", str(error))
    if "@" in urlsplit(url).netloc or "{" in url:
        return PolicyCheck("address", "refuse", "the address of the server cannot be used")
    return PolicyCheck("address", "pass", shown)


def _check_inputs(plan: Plan) -> PolicyCheck:
    needs = plan.needs
    if needs.unsafe:
        return PolicyCheck("inputs", "refuse", "; ".join(needs.unsafe))
    if needs.missing:
        reason = f"needs {', '.join(needs.missing)}: give it by name"
        return PolicyCheck("inputs", "refuse", reason)
    if needs.handed:
        reason = f"would be given {', '.join(needs.handed)} of this environment"
        return PolicyCheck("inputs", "ask", reason)
    names = ", ".join(sorted({*plan.env, *plan.headers}))
    return PolicyCheck("inputs", "pass", f"gives it {names}" if names else "needs none")
