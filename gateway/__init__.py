"""The gateway: tool discovery for LLM agents. Public names; each loads when first used."""

from __future__ import annotations

from importlib import import_module

_HOMES = {
    "Accounting": "gateway.chat.accounting",
    "Alias": "gateway.catalog.virtual",
    "Approval": "gateway.discovery.approval",
    "AsyncAutoDiscoveryClient": "gateway.chat.client",
    "AutoDiscoveryClient": "gateway.chat.client",
    "CacheOptions": "gateway.config",
    "Caches": "gateway.search.remembered",
    "CallerError": "gateway.errors",
    "Catalog": "gateway.catalog.entries",
    "CatalogOptions": "gateway.limits",
    "ChatOptions": "gateway.limits",
    "ClosedError": "gateway.errors",
    "ConfigError": "gateway.errors",
    "Content": "gateway.types",
    "Counts": "gateway.types",
    "CustomKind": "gateway.limits",
    "Diagnostic": "gateway.types",
    "Discovered": "gateway.provision.discover",
    "DiscoveryOptions": "gateway.config",
    "Embedded": "gateway.embed.protocol",
    "Embedder": "gateway.embed.protocol",
    "EmbedderInfo": "gateway.embed.protocol",
    "EmbeddingError": "gateway.errors",
    "EmbeddingLimits": "gateway.embed.protocol",
    "Entity": "gateway.types",
    "Entry": "gateway.catalog.entries",
    "Evidence": "gateway.types",
    "Filters": "gateway.types",
    "Gateway": "gateway.gateway",
    "GatewayError": "gateway.errors",
    "GraphOptions": "gateway.config",
    "Hints": "gateway.types",
    "HttpServer": "gateway.upstream.servers",
    "IndexOptions": "gateway.config",
    "IndexReport": "gateway.types",
    "InvalidArgumentsError": "gateway.errors",
    "InvalidRequestError": "gateway.errors",
    "InvokeResult": "gateway.types",
    "LocalEmbedder": "gateway.embed.local",
    "LoopError": "gateway.errors",
    "Match": "gateway.types",
    "MemoryVectorStore": "gateway.embed.cached",
    "Middleware": "gateway.chat.middleware",
    "MissingExtraError": "gateway.errors",
    "ModelFileError": "gateway.errors",
    "Normalizer": "gateway.search.normalize",
    "OAuth": "gateway.upstream.oauth",
    "OpenAIEmbedder": "gateway.embed.openai",
    "OpenAINormalizer": "gateway.search.openai",
    "OpenAIProposer": "gateway.search.openai",
    "Options": "gateway.config",
    "Page": "gateway.catalog.entries",
    "PathStep": "gateway.types",
    "PromptMessage": "gateway.types",
    "PromptResult": "gateway.types",
    "Proposed": "gateway.search.propose",
    "Proposer": "gateway.search.propose",
    "ProposerReply": "gateway.search.propose",
    "ProvisionOptions": "gateway.provision.options",
    "Provisioned": "gateway.provision.provisioner",
    "Provisioner": "gateway.provision.provisioner",
    "Question": "gateway.provision.consent",
    "Reloaded": "gateway.catalog.configured",
    "Rewrite": "gateway.search.normalize",
    "SearchOptions": "gateway.config",
    "SearchResult": "gateway.types",
    "SqliteStore": "gateway.catalog.store",
    "SqliteVectorStore": "gateway.catalog.sqlite",
    "Store": "gateway.catalog.store",
    "StoreError": "gateway.errors",
    "SyncGateway": "gateway.sync",
    "ToolDefinition": "gateway.types",
    "UnknownToolError": "gateway.errors",
    "UpstreamError": "gateway.errors",
    "UpstreamOptions": "gateway.limits",
    "UsageOptions": "gateway.limits",
    "UpstreamTimeoutError": "gateway.errors",
    "UpstreamUnavailableError": "gateway.errors",
    "VectorStore": "gateway.vectors",
    "accounting_of": "gateway.chat.accounting",
    "by_policy": "gateway.provision.consent",
    "discover": "gateway.provision.discover",
}
"""Where each public name lives. `__init__.pyi` says the same to type checkers; a test holds them
equal."""

__all__ = sorted(_HOMES)  # noqa: PLE0605  (a list of names all the same)


def __getattr__(name: str) -> object:
    """Load a public name when it is first used, so that a warm start pays for nothing else."""
    if name not in _HOMES:
        raise AttributeError(f"module 'gateway' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """List the public names."""
    return list(__all__)
