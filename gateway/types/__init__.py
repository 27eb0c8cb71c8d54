"""The values that cross module borders.

* Frozen, slotted, keyword-only; collections are tuples and mappings. A change is `replace()`.
* What differs between kinds of entities is a table in `catalog/kinds.py`, never a class.
"""

from gateway.types.access import Access
from gateway.types.caller import ALL_SCOPES, ANYONE, Caller
from gateway.types.diagnostics import CODES, DEGRADING, Code, Diagnostic, IndexReport, Stage
from gateway.types.entities import (
    BuiltinKind,
    Entity,
    Filters,
    Hints,
    JsonObject,
    Kind,
    Status,
    ToolDefinition,
)
from gateway.types.invocation import Content, InvokeResult, PromptMessage, PromptResult
from gateway.types.search import (
    Counts,
    Evidence,
    Match,
    PathStep,
    RankingMode,
    RankingPolicy,
    Scoring,
    SearchRequest,
    SearchResult,
    Strategy,
)

__all__ = [
    "ALL_SCOPES",
    "ANYONE",
    "CODES",
    "DEGRADING",
    "Access",
    "BuiltinKind",
    "Caller",
    "Code",
    "Content",
    "Counts",
    "Diagnostic",
    "Entity",
    "Evidence",
    "Filters",
    "Hints",
    "IndexReport",
    "InvokeResult",
    "JsonObject",
    "Kind",
    "Match",
    "PathStep",
    "PromptMessage",
    "PromptResult",
    "RankingMode",
    "RankingPolicy",
    "Scoring",
    "SearchRequest",
    "SearchResult",
    "Stage",
    "Status",
    "Strategy",
    "ToolDefinition",
]
