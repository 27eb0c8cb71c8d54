"""How an MCP server is reached, as values. Their `repr` shows no secret."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from gateway.errors import ConfigError
from gateway.mcp.oauth import OAuth


@dataclass(frozen=True, slots=True)
class StdioServer:
    """A server that runs as a child process and speaks over its standard input and output."""

    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Added to the few variables that a child inherits (PATH, HOME and their like)."""
    cwd: Path | None = None

    def __post_init__(self) -> None:
        """Check what no operating system would run."""
        if not self.command.strip():
            raise ConfigError("StdioServer: command is empty; name the program to run")

    @property
    def launch(self) -> str:
        """SHA-256 (hex) of what would run: program, arguments, folder, names of variables."""
        folder = "" if self.cwd is None else str(self.cwd)
        return _digest("stdio", self.command, self.args, folder, sorted(self.env))

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the whole configuration; secrets cannot be found from it."""
        return _digest(self.launch, _mask(self.env))


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server that speaks streamable HTTP."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with every request."""
    auth: OAuth | None = None
    """How to sign in; None does not."""

    def __post_init__(self) -> None:
        """Check that the address can be one."""
        if not _is_http_url(self.url):
            raise ConfigError("HttpServer: url must look like http://host:port/path")

    @property
    def launch(self) -> str:
        """SHA-256 (hex) of what would be asked: the address, the headers' names, and as whom."""
        identity = self.auth.identity if self.auth is not None else ()
        return _digest("http", self.url, sorted(self.headers), *identity)

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the whole configuration; secrets cannot be found from it."""
        return _digest(self.launch, _mask(self.headers))

    def with_auth(self, auth: OAuth) -> HttpServer:
        """Return the same server with *auth*."""
        return replace(self, auth=auth)

    @property
    def origin(self) -> str:
        """Scheme, host and port: what may be shown of the address."""
        parts = urlsplit(self.url)
        port = "" if parts.port is None else f":{parts.port}"
        host = parts.hostname or ""
        return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}"


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _mask(values: Mapping[str, str]) -> list[tuple[str, str]]:
    # Eight digits tell two values apart, and are too few to find one by trying.
    return sorted((name, _digest(value)[:8]) for name, value in values.items())


def _is_http_url(url: object) -> bool:
    """Whether *url* names a host, and a port that can be one, by which HTTP is spoken."""
    if not isinstance(url, str):
        return False
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)


def server_target(  # noqa: PLR0913  (keyword-only, the options of `Gateway.add_server`)
    name: str,
    *,
    command: str | None,
    args: Sequence[str],
    env: Mapping[str, str] | None,
    cwd: str | Path | None,
    url: str | None,
    headers: Mapping[str, str] | None,
    server: object | None,
) -> object:
    """Return what a host named as one target: a child process, an address or a server object.

    Raises:
        ConfigError: If it named not exactly one of the three, or something is of another type.
    """
    if sum(value is not None for value in (command, url, server)) != 1:
        raise ConfigError(f"server {name!r}: give exactly one of command=…, url=… and server=…")
    values = {"command": command, "args": args, "env": env, "cwd": cwd}
    _check_types(name, {**values, "url": url, "headers": headers})
    if command is not None:
        folder = Path(cwd) if cwd is not None else None
        return StdioServer(command=command, args=tuple(args), env=env or {}, cwd=folder)
    return server if url is None else HttpServer(url=url, headers=headers or {})


def _check_types(name: str, values: Mapping[str, object]) -> None:
    """Refuse what is of another type. The message shows no value: it may be a secret."""
    for key, value in values.items():
        expected, is_valid = _TYPES[key]
        if value is not None and not is_valid(value):
            kind = type(value).__name__
            raise ConfigError(f"server {name!r}: {key} must be {expected}, got {kind}")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not _is_text(value) and all(map(_is_text, value))


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping) and all(map(_is_text, (*value, *value.values())))


_TYPES: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    "command": ("one text, with what follows it in args", _is_text),
    "args": ("a list of texts", _is_list),
    "env": ("a mapping of texts", _is_table),
    "cwd": ("a path", lambda value: isinstance(value, str | Path)),
    "url": ("a text", _is_text),
    "headers": ("a mapping of texts", _is_table),
}
