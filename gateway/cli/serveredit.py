"""`gateway servers add` and `remove`: one entry of our file; the rest of it stays byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.text import Text

from gateway.cli.clients.converting import Conversion
from gateway.cli.exits import OK
from gateway.cli.files import replace_text, text_of
from gateway.cli.importing import servers_of, with_server
from gateway.cli.jsonable import jsonable
from gateway.cli.screen import emit, note, out, printable
from gateway.cli.settings import DEFAULT_CONFIG, manifest_at
from gateway.errors import ConfigError, InvalidRequestError
from gateway.manifests.json_edit import without_member
from gateway.manifests.mcp_json import parse_manifest

_REFERENCE = re.compile(r"\$\{[^}]*\}|\b(?:env|keyring):[\w./-]+")


def entry_of(
    command: Sequence[str],
    *,
    url: str,
    env: Sequence[str],
    headers: Sequence[str],
    cwd: str,
) -> dict[str, object]:
    """Give the entry that somebody typed.

    Raises:
        InvalidRequestError: There is not exactly one of program and address, or an option is
            not written as it must be.
    """
    if bool(command) == bool(url):
        raise InvalidRequestError("give a program after '--', or an address with --url")
    if url:
        entry: dict[str, object] = {"url": url}
        if headers:
            entry["headers"] = _pairs(headers, ":", "--header takes 'Name: value'")
        return entry
    entry = {"command": command[0]}
    if command[1:]:
        entry["args"] = list(command[1:])
    if env:
        entry["env"] = _pairs(env, "=", "--env takes NAME=VALUE")
    if cwd:
        entry["cwd"] = cwd
    return entry


def _pairs(given: Sequence[str], mark: str, told: str) -> dict[str, str]:
    parted = [each.partition(mark) for each in given]
    if not all(name.strip() and between for name, between, _ in parted):
        raise InvalidRequestError(told)
    return {name.strip(): value.strip() for name, _, value in parted}


def add(
    name: str,
    entry: Mapping[str, object],
    *,
    config: Path | None,
    replace_it: bool,
    as_json: bool,
    auth: Mapping[str, object] | None = None,
) -> int:
    """Write *entry*, and how it signs in, into our file, secrets as references.

    Raises:
        ConfigError: It cannot be a server, or one of that name is there.
    """
    path = config or DEFAULT_CONFIG
    conversion = Conversion()
    made = conversion.entry(name, dict(entry)) | ({} if auth is None else {"auth": dict(auth)})
    _check(name, made)
    was = text_of(path)
    _, table = servers_of(was, str(path))
    if name in table and not replace_it and table[name] != made:
        raise ConfigError(f"{str(path)!r} has a server {name!r}: take another name, or --replace")
    text = with_server(was, name, made, where=str(path)) if table.get(name) != made else was
    if text != was:
        replace_text(path, text, was=was)
    if as_json:
        emit(
            {
                "config": str(path),
                "name": name,
                "entry": made,
                "variables": jsonable(conversion.wanted),
            }
        )
    else:
        for each in conversion.wanted:
            note(f"{each.where} is a secret: it is written as a reference; set {each.variable}")
        for told in conversion.notes:
            note(told)
        if auth is not None and auth["type"] == "oauth":
            note(f"sign in once: gateway login {name}")
        out().print(Text(printable(f"{name!r} is in {path}; try it: gateway servers test {name}")))
    return OK


def _check(name: str, entry: Mapping[str, object]) -> None:
    # What references stand for is not known here, and need not be.
    plain = _REFERENCE.sub("x", json.dumps(entry))
    manifest = parse_manifest({"mcpServers": {name: json.loads(plain)}}, where="the server")
    if manifest.unusable:
        raise ConfigError(manifest.warnings[-1].detail)


def remove(names: Sequence[str], *, config: Path | None, as_json: bool) -> int:
    """Take servers, virtual ones too, out of our file.

    Raises:
        InvalidRequestError: One is not there; nothing is taken out then.
    """
    path = config or DEFAULT_CONFIG
    manifest_at(config)
    was = text = text_of(path)
    for name in names:
        key, table = servers_of(text, str(path))
        left = without_member(text, (key, name), where=str(path))
        if left == text:
            left = without_member(text, ("virtualServers", name), where=str(path))
        if left == text:
            told = ", ".join(table) or "none"
            raise InvalidRequestError(f"{name!r} is no configured server: {told}")
        text = left
    replace_text(path, text, was=was)
    if as_json:
        emit({"config": str(path), "removed": list(names)})
    else:
        out().print(Text(printable(f"taken out of {path}: {', '.join(names)}")))
    return OK
