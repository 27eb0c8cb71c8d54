from gateway.catalog.ahead import ManyRecords as ManyRecords
from gateway.catalog.configured import Reloaded as Reloaded
from gateway.catalog.entries import Catalog as Catalog
from gateway.catalog.entries import Entries as Entries
from gateway.catalog.entries import Entry as Entry
from gateway.catalog.entries import Page as Page
from gateway.catalog.ledger import Ledger as Ledger
from gateway.catalog.manifest import Manifest as Manifest
from gateway.catalog.sqlite import SqliteVectorStore as SqliteVectorStore
from gateway.catalog.store import SqliteStore as SqliteStore
from gateway.catalog.store import Store as Store
from gateway.catalog.virtual import Alias as Alias
from gateway.catalog.virtual import VirtualServer as VirtualServer
from gateway.chat.accounting import Accounting as Accounting
from gateway.chat.accounting import accounting_of as accounting_of
from gateway.chat.client import AsyncAutoDiscoveryClient as AsyncAutoDiscoveryClient
from gateway.chat.client import AutoDiscoveryClient as AutoDiscoveryClient
from gateway.chat.events import Observer as Observer
from gateway.chat.middleware import Middleware as Middleware
from gateway.chat.prepared import AsyncPrepared as AsyncPrepared
from gateway.chat.prepared import Handled as Handled
from gateway.chat.prepared import Prepared as Prepared
from gateway.discovery.approval import Approval as Approval
from gateway.discovery.approval import Approve as Approve
from gateway.embed.cached import MemoryVectorStore as MemoryVectorStore
from gateway.embed.local import LocalEmbedder as LocalEmbedder
from gateway.embed.openai import OpenAIEmbedder as OpenAIEmbedder
from gateway.embed.parts import VectorParts as VectorParts
from gateway.embed.protocol import Embedded as Embedded
from gateway.embed.protocol import Embedder as Embedder
from gateway.embed.protocol import EmbedderInfo as EmbedderInfo
from gateway.embed.protocol import EmbeddingLimits as EmbeddingLimits
from gateway.embed.protocol import Role as Role
from gateway.errors import CallerError as CallerError
from gateway.errors import ClosedError as ClosedError
from gateway.errors import ConfigError as ConfigError
from gateway.errors import EmbeddingError as EmbeddingError
from gateway.errors import GatewayError as GatewayError
from gateway.errors import InvalidArgumentsError as InvalidArgumentsError
from gateway.errors import InvalidRequestError as InvalidRequestError
from gateway.errors import LoopError as LoopError
from gateway.errors import MissingExtraError as MissingExtraError
from gateway.errors import ModelFileError as ModelFileError
from gateway.errors import StoreError as StoreError
from gateway.errors import UnknownToolError as UnknownToolError
from gateway.errors import UpstreamError as UpstreamError
from gateway.errors import UpstreamFault as UpstreamFault
from gateway.errors import UpstreamTimeoutError as UpstreamTimeoutError
from gateway.errors import UpstreamUnavailableError as UpstreamUnavailableError
from gateway.gateway import Gateway as Gateway
from gateway.options import CacheOptions as CacheOptions
from gateway.options import CatalogOptions as CatalogOptions
from gateway.options import ChatOptions as ChatOptions
from gateway.options import CustomKind as CustomKind
from gateway.options import DiscoveryOptions as DiscoveryOptions
from gateway.options import GraphOptions as GraphOptions
from gateway.options import IndexOptions as IndexOptions
from gateway.options import Options as Options
from gateway.options import SearchOptions as SearchOptions
from gateway.options import UpstreamOptions as UpstreamOptions
from gateway.options import UsageOptions as UsageOptions
from gateway.provision.consent import Consent as Consent
from gateway.provision.consent import Question as Question
from gateway.provision.consent import by_policy as by_policy
from gateway.provision.discover import Discovered as Discovered
from gateway.provision.discover import FoundServer as FoundServer
from gateway.provision.discover import FoundTool as FoundTool
from gateway.provision.discover import discover as discover
from gateway.provision.gates import Gate as Gate
from gateway.provision.options import ProvisionOptions as ProvisionOptions
from gateway.provision.plan import Plan as Plan
from gateway.provision.provisioner import Provisioned as Provisioned
from gateway.provision.provisioner import Provisioner as Provisioner
from gateway.provision.rank import Ranked as Ranked
from gateway.runtime.cache import Clock as Clock
from gateway.runtime.vectors import Matrix as Matrix
from gateway.runtime.vectors import Vector as Vector
from gateway.runtime.vectors import VectorStore as VectorStore
from gateway.search.index.build import Progress as Progress
from gateway.search.index.documents import GraphFormat as GraphFormat
from gateway.search.index.documents import GraphSource as GraphSource
from gateway.search.index.snapshot import Snapshot as Snapshot
from gateway.search.library import Library as Library
from gateway.search.normalize import Normalizer as Normalizer
from gateway.search.normalize import Rewrite as Rewrite
from gateway.search.openai import OpenAINormalizer as OpenAINormalizer
from gateway.search.openai import OpenAIProposer as OpenAIProposer
from gateway.search.propose import Proposed as Proposed
from gateway.search.propose import Proposer as Proposer
from gateway.search.propose import ProposerReply as ProposerReply
from gateway.search.remembered import Caches as Caches
from gateway.sync import SyncCatalog as SyncCatalog
from gateway.sync import SyncGateway as SyncGateway
from gateway.sync import SyncLibrary as SyncLibrary
from gateway.types import Code as Code
from gateway.types import Content as Content
from gateway.types import Counts as Counts
from gateway.types import Diagnostic as Diagnostic
from gateway.types import Entity as Entity
from gateway.types import Evidence as Evidence
from gateway.types import Filters as Filters
from gateway.types import Hints as Hints
from gateway.types import IndexReport as IndexReport
from gateway.types import InvokeResult as InvokeResult
from gateway.types import JsonObject as JsonObject
from gateway.types import Kind as Kind
from gateway.types import Match as Match
from gateway.types import PathStep as PathStep
from gateway.types import PromptMessage as PromptMessage
from gateway.types import PromptResult as PromptResult
from gateway.types import RankingMode as RankingMode
from gateway.types import RankingPolicy as RankingPolicy
from gateway.types import SearchResult as SearchResult
from gateway.types import Stage as Stage
from gateway.types import Status as Status
from gateway.types import Strategy as Strategy
from gateway.types import ToolDefinition as ToolDefinition
from gateway.upstream.oauth import OAuth as OAuth
from gateway.upstream.oauth import Tokens as Tokens
from gateway.upstream.servers import HttpServer as HttpServer
from gateway.upstream.servers import StdioServer as StdioServer
from gateway.upstream.source import Function as Function
from gateway.upstream.source import Listing as Listing
from gateway.upstream.source import Shape as Shape
from gateway.upstream.source import Source as Source

__all__ = [
    "Accounting",
    "Alias",
    "Approval",
    "Approve",
    "AsyncAutoDiscoveryClient",
    "AsyncPrepared",
    "AutoDiscoveryClient",
    "CacheOptions",
    "Caches",
    "CallerError",
    "Catalog",
    "CatalogOptions",
    "ChatOptions",
    "Clock",
    "ClosedError",
    "Code",
    "ConfigError",
    "Consent",
    "Content",
    "Counts",
    "CustomKind",
    "Diagnostic",
    "Discovered",
    "DiscoveryOptions",
    "Embedded",
    "Embedder",
    "EmbedderInfo",
    "EmbeddingError",
    "EmbeddingLimits",
    "Entity",
    "Entries",
    "Entry",
    "Evidence",
    "Filters",
    "FoundServer",
    "FoundTool",
    "Function",
    "Gate",
    "Gateway",
    "GatewayError",
    "GraphFormat",
    "GraphOptions",
    "GraphSource",
    "Handled",
    "Hints",
    "HttpServer",
    "IndexOptions",
    "IndexReport",
    "InvalidArgumentsError",
    "InvalidRequestError",
    "InvokeResult",
    "JsonObject",
    "Kind",
    "Ledger",
    "Library",
    "Listing",
    "LocalEmbedder",
    "LoopError",
    "Manifest",
    "ManyRecords",
    "Match",
    "Matrix",
    "MemoryVectorStore",
    "Middleware",
    "MissingExtraError",
    "ModelFileError",
    "Normalizer",
    "OAuth",
    "Observer",
    "OpenAIEmbedder",
    "OpenAINormalizer",
    "OpenAIProposer",
    "Options",
    "Page",
    "PathStep",
    "Plan",
    "Prepared",
    "Progress",
    "PromptMessage",
    "PromptResult",
    "Proposed",
    "Proposer",
    "ProposerReply",
    "ProvisionOptions",
    "Provisioned",
    "Provisioner",
    "Question",
    "Ranked",
    "RankingMode",
    "RankingPolicy",
    "Reloaded",
    "Rewrite",
    "Role",
    "SearchOptions",
    "SearchResult",
    "Shape",
    "Snapshot",
    "Source",
    "SqliteStore",
    "SqliteVectorStore",
    "Stage",
    "Status",
    "StdioServer",
    "Store",
    "StoreError",
    "Strategy",
    "SyncCatalog",
    "SyncGateway",
    "SyncLibrary",
    "Tokens",
    "ToolDefinition",
    "UnknownToolError",
    "UpstreamError",
    "UpstreamFault",
    "UpstreamOptions",
    "UpstreamTimeoutError",
    "UpstreamUnavailableError",
    "UsageOptions",
    "Vector",
    "VectorParts",
    "VectorStore",
    "VirtualServer",
    "accounting_of",
    "by_policy",
    "discover",
]
