"""Log of calls and searches, and the statistics computed from it."""

from gateway.runtime.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "analytics": "TenantSearches usage_report",
        "call_log": "CallLog CallNote DAY_S KEEP_COUNTS_DAYS KEEP_QUERIES_S SearchNote "
        "SearchTally ServedQuery Tally Task label shape_of",
        "step_evaluation": "HALF_LIFE_S MAX_CALLS MAX_SHIFT Outcomes decay "
        "evaluate_usage multiplier",
        "tables": "SqlCallLog USAGE call_log_of",
        "transitions": "MAX_FOLLOWERS TransitionCounts count_transitions is_predictive",
    },
)
