"""What must be true of a server before it may come in. Each gate says pass, ask or refuse. Pure.

``refuse`` is for good; ``ask`` is a doubt that a person may settle and ``--yes`` may not. All
gates are told, also those that passed: a plan is judged by reading it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from gateway.errors import ConfigError
from gateway.mcp.ssrf_guard import check_address, check_scheme
from gateway.provision.entries import KNOWN, Entry, Package, Remote
from gateway.provision.options import ProvisionOptions
from gateway.provision.plan import Plan
from gateway.provision.programs import Programs

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One condition and how it came out."""

    name: str
    verdict: Verdict
    reason: str


def gates(
    plan: Plan,
    *,
    confidence: float,
    options: ProvisionOptions,
    programs: Programs,
    private_hosts: tuple[str, ...],
) -> tuple[Gate, ...]:
    """Judge *plan*.

    Args:
        plan: What would be done.
        confidence: How likely the server is what was asked for, 0 to 1.
        options: The policy.
        programs: What installs here.
        private_hosts: Hosts of the host's own network that may be asked.
    """
    route = plan.route
    own = (
        _package(route, programs, options)
        if isinstance(route, Package)
        else _remote(route, plan, private_hosts)
    )
    return (
        _status(plan.entry),
        _namespace(plan.entry, options),
        *own,
        _confidence(confidence, options),
        _text(plan.entry),
        _inputs(plan),
    )


def worst(judged: Iterable[Gate]) -> Verdict:
    """Give the verdict of all gates together."""
    verdicts = {gate.verdict for gate in judged}
    return next(each for each in _BY_WEIGHT if each in verdicts or each == "pass")


_BY_WEIGHT: tuple[Verdict, ...] = ("refuse", "ask", "pass")


def trusted(entry: Entry, namespaces: Iterable[str]) -> bool:
    """Say whether *entry* is of a namespace, or has a name, that the host trusts."""
    return any(pattern in {f"{entry.namespace}/*", entry.name} for pattern in namespaces)


def _status(entry: Entry) -> Gate:
    if entry.status == "active":
        return _gate("status", "pass", "active")
    if entry.status == "deprecated":
        return _gate("status", "ask", "deprecated: its publisher says to use something else")
    return _gate("status", "refuse", f"{entry.status!r}: it was taken out of the registry")


def _namespace(entry: Entry, options: ProvisionOptions) -> Gate:
    if entry.source == KNOWN:
        return _gate("source", "pass", "on the bundled list of well-known servers")
    if trusted(entry, options.namespaces):
        return _gate("source", "pass", f"{entry.namespace} is trusted; told by {entry.source}")
    return _gate(
        "source", "ask", f"{entry.namespace} is not among the trusted namespaces ({entry.source})"
    )


def _package(package: Package, programs: Programs, options: ProvisionOptions) -> tuple[Gate, ...]:
    if package.kind not in _FORMS:
        told = f"packages of kind {package.kind!r} are not installed here: pypi and npm are"
        return (_gate("package", "refuse", told),)
    return (_form(package, programs), _pinned(package), _index(package, options))


def _form(package: Package, programs: Programs) -> Gate:
    faults: tuple[tuple[object, str], ...] = (
        (not _FORMS[package.kind][0].fullmatch(package.identifier), "no name of a package"),
        (package.transport != "stdio", f"speaks {package.transport!r}: stdio is what is run"),
        (package.runtime_arguments, "wants arguments for the program that runs it"),
        (package.sha256, "gives a file's hash, which is not checked for this kind"),
        (package.kind == "npm" and not (programs.npm and programs.node), "npm is not installed"),
    )
    for wrong, reason in faults:
        if wrong:
            return _gate("package", "refuse", f"{package.identifier!r}: {reason}")
    return _gate("package", "pass", f"{package.identifier} of {package.kind}")


def _pinned(package: Package) -> Gate:
    if _FORMS[package.kind][1].fullmatch(package.version):
        return _gate("version", "pass", f"pinned to {package.version}")
    told = f"{package.version!r} is not one exact version" if package.version else "not pinned"
    return _gate("version", "refuse", told)


def _index(package: Package, options: ProvisionOptions) -> Gate:
    """Judge where the entry says that its package lies; it is fetched from our own index alone."""
    named = package.base_url.rstrip("/")
    if not named or named in {each.rstrip("/") for each in options.indexes}:
        return _gate("index", "pass", "the index that this machine is set to")
    told = f"the entry means {named}; what is fetched is what this machine's index has of that name"
    return _gate("index", "ask", told)


def _remote(remote: Remote, plan: Plan, private_hosts: tuple[str, ...]) -> tuple[Gate, ...]:
    if remote.transport not in _TRANSPORTS:
        told = f"speaks {remote.transport!r}: streamable HTTP is what is spoken"
        return (_gate("transport", "refuse", told),)
    return (
        _address(plan.url, frozenset(each.casefold() for each in private_hosts)),
        _gate("version", "ask", "a remote server has no version: it may change at any time"),
    )


def _address(url: str, private: frozenset[str]) -> Gate:
    try:
        parts = urlsplit(url)
        host, _ = (parts.hostname or "").casefold(), parts.port
        plain = host and "@" not in parts.netloc and "{" not in url and parts.scheme
        if plain and parts.scheme in {"http", "https"}:
            check_scheme(parts.scheme, host, private)
            with suppress(ValueError):
                # A name is judged when it is connected to, by the addresses that it has then.
                check_address(host, host, private)
            return _gate("address", "pass", f"{parts.scheme}://{host}")
    except ConfigError as error:
        return _gate("address", "refuse", str(error))
    except ValueError:
        pass
    return _gate("address", "refuse", "the address of the server cannot be used")


def _confidence(confidence: float, options: ProvisionOptions) -> Gate:
    sure = confidence >= options.min_confidence
    told = f"{confidence:.2f}, wanted {options.min_confidence:.2f}"
    return _gate("confidence", "pass" if sure else "ask", told)


def _text(entry: Entry) -> Gate:
    if entry.suspicions:
        return _gate("text", "refuse", f"its description {', '.join(entry.suspicions)}")
    return _gate("text", "pass", "nothing suspicious in its description")


def _inputs(plan: Plan) -> Gate:
    if plan.needs.unsafe:
        return _gate("inputs", "refuse", "; ".join(plan.needs.unsafe))
    if plan.needs.missing:
        return _gate("inputs", "refuse", f"needs {', '.join(plan.needs.missing)}: give it by name")
    if plan.needs.handed:
        told = f"would be given {', '.join(plan.needs.handed)} of this environment"
        return _gate("inputs", "ask", told)
    given = sorted({*plan.env, *plan.headers})
    return _gate("inputs", "pass", f"gives it {', '.join(given)}" if given else "needs none")


def _gate(name: str, verdict: Verdict, reason: str) -> Gate:
    return Gate(name=name, verdict=verdict, reason=reason)
