"""Is what people ask for found in a catalog? Test requests, evaluations and comparisons."""

from gateway.runtime.delegation import lazy_names

_MODULES = {
    "Comparison": "gateway.plugins.quality.comparison",
    "EvalReport": "gateway.plugins.quality.report",
    "EvalRequest": "gateway.plugins.quality.requests",
    "LintReport": "gateway.plugins.quality.linting",
    "Outcome": "gateway.plugins.quality.report",
    "Reason": "gateway.plugins.quality.tool_checks",
    "RequestSet": "gateway.plugins.quality.requests",
    "ServerState": "gateway.plugins.quality.tool_checks",
    "Summary": "gateway.plugins.quality.report",
    "TokenCounter": "gateway.discovery.token_counter",
    "ToolCheck": "gateway.plugins.quality.tool_checks",
    "Tuning": "gateway.plugins.quality.tuning",
    "Verdict": "gateway.plugins.quality.tool_checks",
    "check_tools": "gateway.plugins.quality.tool_checks",
    "compare": "gateway.plugins.quality.comparison",
    "evaluate": "gateway.plugins.quality.evaluation",
    "freeze": "gateway.plugins.quality.requests",
    "hold_out": "gateway.plugins.quality.twins",
    "lint": "gateway.plugins.quality.linting",
    "list_reports": "gateway.plugins.quality.report",
    "newest_report": "gateway.plugins.quality.report",
    "offline_requests": "gateway.plugins.quality.offline",
    "parse": "gateway.plugins.quality.requests",
    "preflight": "gateway.plugins.quality.tool_checks",
    "read_report": "gateway.plugins.quality.report",
    "save_report": "gateway.plugins.quality.report",
    "save_request": "gateway.plugins.quality.requests",
    "schema_digest": "gateway.plugins.quality.tool_checks",
    "to_json_lines": "gateway.plugins.quality.requests",
    "to_page": "gateway.plugins.quality.report",
    "tune": "gateway.plugins.quality.tuning",
    "undo": "gateway.plugins.quality.tuning",
    "write_report": "gateway.plugins.quality.report",
}
"""Modules of the public names, keyed by name; each is imported when a name of it is first used.
Type checkers read the same names from `__init__.pyi`."""
__all__ = list(_MODULES)
__getattr__, __dir__ = lazy_names(__name__, _MODULES)
