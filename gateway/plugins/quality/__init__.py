"""Search quality: test requests, evaluations, comparisons, linting and tuning."""

from gateway.runtime.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "comparison": "Comparison compare",
        "distractors": "FixedSource as_sources",
        "eval_run": "EvalRun RunProgress UNANSWERABLE evaluate_catalog",
        "evaluation": "evaluate summarize",
        "linting": "FINDINGS LintReport find_faults lint",
        "metrics": "Gold RECALL_AT find_confusions report_tools score",
        "model_requests": "ModelRequests",
        "offline": "holds_name offline_requests phrases",
        "report": "Cost CurvePoint EvalReport Outcome Summary list_reports load_report "
        "newest_report read_report report_files save_report to_page write_report",
        "requests": "EvalRequest RequestSet catalog_digest catalog_digests freeze parse "
        "save_request to_json_lines",
        "suggestions": "Suggestion write_by_model write_by_rules",
        "tool_checks": "Reason ServerState ToolCheck Verdict check_tools preflight "
        "schema_digest worst",
        "tuning": "Tuning tune undo",
        "twins": "find_twins hold_out with_twins",
        "gateway.discovery.token_counter": "TokenCounter",
    },
)
