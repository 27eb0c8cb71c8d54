"""The gateway: tool discovery for LLM agents.

The names that most programs need. The others are in `gateway.types`, `gateway.options`,
`gateway.errors`, `gateway.adapters` and `gateway.testing`.
"""

import sys

from gateway.moved import MovedModules
from gateway.runtime.delegation import lazy_names

_MODULES = {
    "Alias": "gateway.sources.virtual",
    "Approval": "gateway.discovery.approval",
    "AsyncAutoDiscoveryClient": "gateway.chat.client",
    "AsyncPrepared": "gateway.chat.client",
    "AutoDiscoveryClient": "gateway.chat.client",
    "Catalog": "gateway.catalog.catalog",
    "Embedder": "gateway.embed.protocol",
    "Entity": "gateway.types",
    "Entry": "gateway.catalog.entries",
    "Filters": "gateway.types",
    "Function": "gateway.sources.protocol",
    "Gateway": "gateway.gateway",
    "GatewayError": "gateway.errors",
    "GraphSource": "gateway.index.graph_documents",
    "Hints": "gateway.types",
    "HttpServer": "gateway.mcp.servers",
    "InvokeResult": "gateway.types",
    "LocalEmbedder": "gateway.plugins.local.embedder",
    "Manifest": "gateway.config.manifest",
    "Match": "gateway.types",
    "Middleware": "gateway.chat.client",
    "Normalizer": "gateway.search.normalize",
    "OAuth": "gateway.mcp.servers",
    "OpenAIEmbedder": "gateway.embed.openai",
    "OpenAINormalizer": "gateway.search.openai",
    "OpenAIProposer": "gateway.plugins.graph_tools.openai",
    "Options": "gateway.options",
    "Plan": "gateway.plugins.provision.plan",
    "Prepared": "gateway.chat.client",
    "Provisioner": "gateway.plugins.provision.provisioner",
    "SearchResult": "gateway.types",
    "Source": "gateway.sources.protocol",
    "SqliteStore": "gateway.storage.protocol",
    "StdioServer": "gateway.mcp.servers",
    "Store": "gateway.storage.protocol",
    "SyncGateway": "gateway.sync",
    "VirtualServer": "gateway.sources.virtual",
    "accounting_of": "gateway.chat.accounting",
    "by_policy": "gateway.plugins.provision.policy",
    "discover": "gateway.plugins.provision.discover",
}
"""Modules of the public names, keyed by name; each is imported when a name of it is first used.
Type checkers read the same names from `__init__.pyi`."""
__all__ = list(_MODULES)
sys.meta_path.insert(0, MovedModules())
__getattr__, __dir__ = lazy_names(__name__, _MODULES)
