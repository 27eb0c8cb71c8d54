"""What must be true of a server before it may come in. Each check says pass, ask or refuse. Pure.

``refuse`` is final; ``ask`` is a doubt that a person may settle and ``--yes`` may not. All checks
are reported, also those that passed: a plan is judged by reading it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from gateway.errors import ConfigError
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
    route = plan.route
    if isinstance(route, Package):
        route_checks = _check_package(route, programs, options)
    else:
        route_checks = _check_remote(route, plan, private_hosts)
    is_confident = confidence >= options.min_confidence
    return (
        _check_status(plan.entry),
        _check_source(plan.entry, options),
        *route_checks,
        PolicyCheck(
            "confidence",
            "pass" if is_confident else "ask",
            f"{confidence:.2f}, wanted {options.min_confidence:.2f}",
        ),
        _check_text(plan.entry),
        _check_inputs(plan),
    )


def overall_verdict(checks: Iterable[PolicyCheck]) -> Verdict:
    """Return the verdict of all checks together: the worst one."""
    verdicts = {check.verdict for check in checks}
    if "refuse" in verdicts:
        return "refuse"
    return "ask" if "ask" in verdicts else "pass"


def is_trusted(entry: RegistryEntry, namespaces: Iterable[str]) -> bool:
    """Return whether the host trusts the namespace or the name of *entry*."""
    return any(pattern in {f"{entry.namespace}/*", entry.name} for pattern in namespaces)


def _check_status(entry: RegistryEntry) -> PolicyCheck:
    if entry.status == "active":
        return PolicyCheck("status", "pass", "active")
    if entry.status == "deprecated":
        return PolicyCheck("status", "ask", "deprecated: its publisher says to use something else")
    return PolicyCheck("status", "refuse", f"{entry.status!r}: it was taken out of the registry")


def _check_source(entry: RegistryEntry, options: ProvisionOptions) -> PolicyCheck:
    if entry.source == BUNDLED:
        return PolicyCheck("source", "pass", "on the bundled list of well-known servers")
    if is_trusted(entry, options.namespaces):
        return PolicyCheck("source", "pass", f"{entry.namespace} is trusted ({entry.source})")
    reason = f"{entry.namespace} is not among the trusted namespaces ({entry.source})"
    return PolicyCheck("source", "ask", reason)


def _check_package(
    package: Package, programs: Programs, options: ProvisionOptions
) -> tuple[PolicyCheck, ...]:
    if package.kind not in _FORMS:
        reason = f"packages of kind {package.kind!r} are not installed here: pypi and npm are"
        return (PolicyCheck("package", "refuse", reason),)
    return (_check_form(package, programs), _check_version(package), _check_index(package, options))


def _check_form(package: Package, programs: Programs) -> PolicyCheck:
    faults: tuple[tuple[object, str], ...] = (
        (not _FORMS[package.kind][0].fullmatch(package.identifier), "no name of a package"),
        (package.transport != "stdio", f"speaks {package.transport!r}: stdio is what is run"),
        (package.runtime_arguments, "wants arguments for the program that runs it"),
        (package.sha256, "gives a file's hash, which is not checked for this kind"),
        (package.kind == "npm" and not (programs.npm and programs.node), "npm is not installed"),
    )
    for is_wrong, reason in faults:
        if is_wrong:
            return PolicyCheck("package", "refuse", f"{package.identifier!r}: {reason}")
    return PolicyCheck("package", "pass", f"{package.identifier} of {package.kind}")


def _check_version(package: Package) -> PolicyCheck:
    version = package.version
    if _FORMS[package.kind][1].fullmatch(version):
        return PolicyCheck("version", "pass", f"pinned to {version}")
    reason = f"{version!r} is not one exact version" if version else "not pinned"
    return PolicyCheck("version", "refuse", reason)


def _check_index(package: Package, options: ProvisionOptions) -> PolicyCheck:
    """Check the index that the entry names; packages come from this machine's index alone."""
    index = package.base_url.rstrip("/")
    if not index or index in {url.rstrip("/") for url in options.indexes}:
        return PolicyCheck("index", "pass", "the index that this machine is set to")
    reason = f"the entry means {index}; what is fetched is what this machine's index has"
    return PolicyCheck("index", "ask", f"{reason} of that name")


def _check_remote(
    remote: Remote, plan: Plan, private_hosts: tuple[str, ...]
) -> tuple[PolicyCheck, ...]:
    if remote.transport not in _TRANSPORTS:
        reason = f"speaks {remote.transport!r}: streamable HTTP is what is spoken"
        return (PolicyCheck("transport", "refuse", reason),)
    return (
        _check_url(plan.url, private_hosts),
        PolicyCheck("version", "ask", "a remote server has no version: it may change at any time"),
    )


def _check_url(url: str, private_hosts: tuple[str, ...]) -> PolicyCheck:
    try:
        parts = urlsplit(url)
        host, _ = (parts.hostname or "").casefold(), parts.port
        is_plain = host and "@" not in parts.netloc and "{" not in url
        if is_plain and parts.scheme in {"http", "https"}:
            # The addresses of a name are checked when it is connected to.
            check_url(url, private_hosts)
            return PolicyCheck("address", "pass", f"{parts.scheme}://{host}")
    except ConfigError as error:
        return PolicyCheck("address", "refuse", str(error))
    except ValueError:
        pass
    return PolicyCheck("address", "refuse", "the address of the server cannot be used")


def _check_text(entry: RegistryEntry) -> PolicyCheck:
    if entry.suspicions:
        return PolicyCheck("text", "refuse", f"its description {', '.join(entry.suspicions)}")
    return PolicyCheck("text", "pass", "nothing suspicious in its description")


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
