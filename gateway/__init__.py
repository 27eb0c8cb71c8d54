"""The gateway: tool discovery for LLM agents.

This module contains the names that most programs need. Further names are in `gateway.types`,
`gateway.options`, `gateway.errors`, `gateway.adapters` and `gateway.testing`.
"""

import sys

from gateway.moved import MovedModules
from gateway.runtime.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "gateway.catalog.catalog": "Catalog",
        "gateway.catalog.entries": "Entry",
        "gateway.chat.accounting": "accounting_of",
        "gateway.chat.client": "AsyncAutoDiscoveryClient AsyncPrepared AutoDiscoveryClient "
        "Middleware Prepared",
        "gateway.config.manifest": "Manifest",
        "gateway.discovery.approval": "Approval",
        "gateway.embed.openai": "OpenAIEmbedder",
        "gateway.embed.protocol": "Embedder",
        "gateway.errors": "GatewayError",
        "gateway.gateway": "Gateway",
        "gateway.index.graph_documents": "GraphSource",
        "gateway.mcp.servers": "HttpServer OAuth StdioServer",
        "gateway.options": "Options",
        "gateway.plugins.graph_tools.openai": "OpenAIProposer",
        "gateway.plugins.local.embedder": "LocalEmbedder",
        "gateway.plugins.provision.discover": "discover",
        "gateway.plugins.provision.plan": "Plan",
        "gateway.plugins.provision.policy": "by_policy",
        "gateway.plugins.provision.provisioner": "Provisioner",
        "gateway.search.normalize": "Normalizer",
        "gateway.search.openai": "OpenAINormalizer",
        "gateway.sources.protocol": "Function Source",
        "gateway.sources.virtual": "Alias VirtualServer",
        "gateway.storage.protocol": "SqliteStore Store",
        "gateway.sync": "SyncGateway",
        "gateway.types": "Entity Filters Hints InvokeResult Match SearchResult",
    },
)
sys.meta_path.insert(0, MovedModules())
