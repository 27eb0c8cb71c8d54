"""Public value types: entities, callers, searches, calls and diagnostics.

All are frozen and keyword-only. To change a value, use `dataclasses.replace`. Entities of all kinds
have one class.
"""

from gateway.types.access import Access as Access
from gateway.types.caller import ALL_SCOPES as ALL_SCOPES
from gateway.types.caller import ANYONE as ANYONE
from gateway.types.caller import TOKEN as TOKEN
from gateway.types.caller import Caller as Caller
from gateway.types.caller import Secret as Secret
from gateway.types.caller import acting_for as acting_for
from gateway.types.diagnostics import CODES as CODES
from gateway.types.diagnostics import DEGRADING as DEGRADING
from gateway.types.diagnostics import Code as Code
from gateway.types.diagnostics import Diagnostic as Diagnostic
from gateway.types.diagnostics import IndexReport as IndexReport
from gateway.types.diagnostics import Stage as Stage
from gateway.types.entities import BuiltinKind as BuiltinKind
from gateway.types.entities import Entity as Entity
from gateway.types.entities import Filters as Filters
from gateway.types.entities import Hints as Hints
from gateway.types.entities import JsonObject as JsonObject
from gateway.types.entities import Kind as Kind
from gateway.types.entities import Status as Status
from gateway.types.entities import ToolDefinition as ToolDefinition
from gateway.types.entities import merge_hints as merge_hints
from gateway.types.invocation import Content as Content
from gateway.types.invocation import InvokeResult as InvokeResult
from gateway.types.invocation import PromptMessage as PromptMessage
from gateway.types.invocation import PromptResult as PromptResult
from gateway.types.listing import Listing as Listing
from gateway.types.listing import WatchCallbacks as WatchCallbacks
from gateway.types.listing import pin_key as pin_key
from gateway.types.search import Counts as Counts
from gateway.types.search import Evidence as Evidence
from gateway.types.search import EvidenceRanks as EvidenceRanks
from gateway.types.search import FilteredEntity as FilteredEntity
from gateway.types.search import FilterName as FilterName
from gateway.types.search import Match as Match
from gateway.types.search import PathStep as PathStep
from gateway.types.search import RankingMode as RankingMode
from gateway.types.search import RankingPolicy as RankingPolicy
from gateway.types.search import Scoring as Scoring
from gateway.types.search import SearchRequest as SearchRequest
from gateway.types.search import SearchResult as SearchResult
from gateway.types.search import Strategy as Strategy
