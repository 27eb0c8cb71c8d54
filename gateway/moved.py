"""Imports by the module names of version 0.2, which work until version 0.4 with a warning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED: Mapping[str, str] = {
    "gateway.access": "gateway.plugins.access",
    "gateway.call.gate": "gateway.plugins.access.gate",
    "gateway.discovery.advice": "gateway.discovery.render_results",
    "gateway.discovery.meta_arguments": "gateway.discovery.meta_tools",
    "gateway.discovery.proxies": "gateway.discovery.window",
    "gateway.embed.local": "gateway.plugins.local",
    "gateway.index.graph_edits": "gateway.plugins.graph_tools.edge_proposals",
    "gateway.manifests": "gateway.plugins.manifests",
    "gateway.manifests.config_file": "gateway.config.config_file",
    "gateway.manifests.json_edit": "gateway.config.json_edit",
    "gateway.manifests.manifest": "gateway.config.manifest",
    "gateway.manifests.mcp_json": "gateway.config.mcp_json",
    "gateway.manifests.secrets": "gateway.runtime.secrets",
    "gateway.manifests.server_entries": "gateway.config.server_entries",
    "gateway.mcp.naming": "gateway.runtime.naming",
    "gateway.mcp.openapi": "gateway.plugins.openapi.server",
    "gateway.mcp.retry": "gateway.runtime.retry",
    "gateway.mcp.sparql_endpoint": "gateway.mcp.json_fetch",
    "gateway.programs": "gateway.plugins.programs",
    "gateway.provision": "gateway.plugins.provision",
    "gateway.provision.options": "gateway.options.provision",
    "gateway.quality": "gateway.plugins.quality",
    "gateway.quality.lint": "gateway.plugins.quality.linting",
    "gateway.quality.preflight": "gateway.plugins.quality.tool_checks",
    "gateway.registration": "gateway.servers",
    "gateway.registration.attention": "gateway.attention.attention",
    "gateway.registration.changes": "gateway.attention.changes",
    "gateway.registration.issues": "gateway.attention.issues",
    "gateway.registration.servers": "gateway.servers.pool",
    "gateway.registration.sources": "gateway.servers.servers",
    "gateway.registration.views": "gateway.search.edges",
    "gateway.search.expand.edge_proposals": "gateway.plugins.graph_tools.edge_proposals",
    "gateway.search.graph_view": "gateway.plugins.graph_tools.graph_view",
    "gateway.search.rank.choice": "gateway.search.rank.display",
    "gateway.serve.api.pager": "gateway.serve.api.routing",
    "gateway.serve.api.responses": "gateway.serve.api.problems",
    "gateway.serve.console.formats": "gateway.serve.console.page",
    "gateway.serve.curve": "gateway.plugins.quality.distractors",
    "gateway.serve.identity.provider_metadata": "gateway.serve.identity.provider_keys",
    "gateway.serve.plain_pages": "gateway.serve.account",
    "gateway.serve.probes": "gateway.serve.drain",
    "gateway.serve.sealed_cookies": "gateway.serve.account",
    "gateway.serve.sessions": "gateway.serve.connections",
    "gateway.serve.token_file": "gateway.serve.authenticator",
    "gateway.spelling": "gateway.plugins.spelling",
    "gateway.storage.approval_key": "gateway.storage.host_key",
    "gateway.storage.audit": "gateway.plugins.access.tables",
    "gateway.storage.call_log": "gateway.plugins.usage.tables",
    "gateway.storage.encryption": "gateway.storage.host_key",
    "gateway.storage.pgvector": "gateway.plugins.postgres.pgvector",
    "gateway.storage.postgres": "gateway.plugins.postgres.store",
    "gateway.storage.postgres_database": "gateway.plugins.postgres.database",
    "gateway.storage.programs": "gateway.plugins.programs.tables",
    "gateway.storage.sign_ins": "gateway.plugins.postgres.store",
    "gateway.testing.embeddings_format": "gateway.testing.embedder",
    "gateway.usage": "gateway.plugins.usage",
    "gateway.usage.evaluation": "gateway.runtime.gains",
    "gateway.usage.rerank": "gateway.plugins.usage.step_evaluation",
}
"""New module names, keyed by the old ones. A package also redirects its submodules."""


class MovedModules:
    """Finder and loader in `sys.meta_path` that maps old module names to new modules.

    It has to be the first finder. Later ones would load a second copy of a moved package's modules.
    """

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """Return a spec for an old module name, else None."""
        return None if new_name(name) is None else ModuleSpec(name, self)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python create an empty module, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        """Replace *module* in `sys.modules` by the new module, and warn."""
        new = new_name(module.__name__) or ""
        warnings.warn(
            f"{module.__name__} is now {new}; the old name works until version 0.4",
            DeprecationWarning,
            stacklevel=2,
        )
        sys.modules[module.__name__] = import_module(new)


def new_name(name: str) -> str | None:
    """Return the new name of a moved module, and None for other modules."""
    package, tail = name, ""
    while package.count("."):
        if package in MOVED:
            return MOVED[package] + tail
        package, _, last = package.rpartition(".")
        tail = f".{last}{tail}"
    return None
