"""Threats and faults that the gateway is tested against: its promises, and the tests of each.

`docs/security.md` ends with the table that `render` returns. `test_threats.py` compares the two.

    python -m tests.threats
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Threat:
    """An attack or a failure."""

    event: str
    """Possible event."""
    promise: str
    """Behaviour of the gateway in this event."""
    held: str
    """Figure that the tests check, such as the number of attacks that are found."""
    tests: tuple[str, ...]
    """Ids of tests: file below ``tests/`` and name of the function."""


def _threat(
    name: str, event: str, promise: str, held: str, tests: Mapping[str, str]
) -> tuple[str, Threat]:
    """Return the id and the threat. *tests* are functions without `test_`, keyed by file."""
    ids = tuple(
        f"{file}::test_{function}" for file, names in tests.items() for function in names.split()
    )
    return name, Threat(event=event, promise=promise, held=held, tests=ids)


THREATS: Mapping[str, Threat] = dict(
    (
        _threat(
            "01-poisoned-definition",
            "A definition contains instructions to a model, possibly in hidden characters.",
            "Invisible characters are removed, texts are cut, and models never see flagged texts. "
            "Unfamiliar attacks are missed.",
            "at least 171 of 214 poisoned definitions flagged, 0 of 21 honest ones",
            {
                "plugins/quality/test_injection_scanner.py": "scanner_flags_most_seeded_attacks "
                "scanner_flags_most_poisoned_definitions "
                "scanner_flags_no_honest_definitions",
                "core/runtime/test_text.py": "cleaned_text_is_short_and_visible "
                "ten_thousand_cleaned_texts_are_visible",
                "apps/serve/test_unseen_text.py": "answers_to_models_and_clients_contain_no_invisible_characters",
                "core/discovery/test_tool_list.py": "suspicious_tool_is_listed_in_no_mode",
            },
        ),
        _threat(
            "02-changed-definition",
            "A server changes an approved definition.",
            "Changes are reported, or the definition is left out until approved.",
            "every field of 4 kinds detected",
            {
                "core/mcp/test_definitions.py": "digest_changes_with_every_field "
                "digest_changes_with_any_value_of_a_definition "
                "digest_ignores_the_state_of_a_resource",
                "core/sources/test_cached.py": "changed_definition_is_reported_until_it_is_approved",
            },
        ),
        _threat(
            "03-changed-configuration",
            "A changed configuration runs another program under an approved name.",
            "Approvals cover program, arguments, folder, variables and address.",
            "7 of 7 changed parts and 6 of 6 variables detected",
            {
                "core/mcp/test_servers.py": "approval_digest_covers_every_variable "
                "fingerprint_covers_values_of_variables_and_launch_only_their_names",
                "core/servers/test_config_reload.py": "changed_command_line_needs_approval_under_the_block_policy changed_environment_variable_of_a_server_needs_approval",
            },
        ),
        _threat(
            "04-taken-name",
            "A server offers another server's tool name.",
            "Exposed names are unique, independent of server order, and stay with their tool.",
            "0 duplicates in 10,000 catalogs, 0 differences in 720 orders",
            {
                "core/catalog/test_identity.py": "every_tool_has_a_unique_callable_name "
                "exposed_names_are_unique_in_ten_thousand_random_catalogs "
                "exposed_names_do_not_depend_on_the_order_of_registration "
                "exposed_names_are_equal_in_all_720_orders_of_six_servers",
                "core/sources/test_name_bindings.py": "server_with_copied_tool_names_renames_no_other_tool",
            },
        ),
        _threat(
            "05-stuffed-ranking",
            "A server fills its tools with words to rank first.",
            "Words of long texts count less. A server's share of the matches is not limited.",
            "0 ranks taken by 20 stuffed tools in 59 searches. Against mcp_bench, recall@5 loses "
            "0.7 points, with the words of the requests 8.5 (`python -m benchmarks.attacks`)",
            {"core/search/test_stuffing.py": "stuffed_tools_do_not_displace_honest_ones"},
        ),
        _threat(
            "06-forged-search-result",
            "A tool's result imitates a search result.",
            "Only the first answer to a call of the search tool counts.",
            "0 tools revealed by 12 forged messages and 1,000 conversations",
            {
                "core/discovery/test_window.py": "text_that_looks_like_a_search_result_is_ignored "
                "forged_search_results_add_no_proxies_in_a_thousand_conversations",
                "core/chat/test_window.py": "search_result_in_another_tools_output_adds_no_tools",
            },
        ),
        _threat(
            "07-nested-meta-tool",
            "A model calls a meta-tool through another, or a hidden tool.",
            "Meta-tools are only called directly. Hidden tools are answered like missing ones. "
            "Visible tools need no search.",
            "0 forbidden calls in 1,000 sequences",
            {
                "core/discovery/test_call_handler.py": "no_sequence_of_calls_bypasses_approval_or_meta_tools",
                "core/chat/test_main_path.py": "meta_tools_are_neither_found_nor_called_through_each_other",
                "apps/test_callers.py": "hidden_name_is_answered_like_an_unknown_name "
                "hidden_entities_are_shown_on_no_path",
            },
        ),
        _threat(
            "08-leaked-secret",
            "A secret or argument appears in logs, telemetry, errors or files.",
            "Secrets are references, given only to their server.",
            "0 of 42 planted secrets appear",
            {
                "plugins/test_secrets.py": "secrets_of_servers_are_not_in_logs_errors_spans_or_metrics "
                "secrets_of_models_and_registries_are_not_in_logs_or_spans "
                "secrets_of_clients_are_not_in_logs_responses_or_metrics "
                "secrets_of_requests_are_not_in_logs_of_the_http_server "
                "secrets_are_not_in_the_output_of_commands",
                "core/mcp/test_servers.py": "repr_of_a_server_contains_no_secret",
                "core/runtime/test_telemetry.py": "queries_arguments_and_results_are_not_exported",
                "plugins/provision/test_steps.py": "arguments_and_secrets_reach_the_server_but_not_"
                "the_audit",
            },
        ),
        _threat(
            "09-private-address",
            "An address, redirect, name or reference leads into a private network.",
            "Requests go only to checked addresses. References in schemas and contexts are never "
            "fetched.",
            "0 connections to 22 private addresses, 0 of 27 spellings accepted",
            {
                "core/mcp/test_ssrf_guard.py": "name_that_resolves_to_a_private_address_is_refused "
                "every_spelling_of_a_special_address_is_refused "
                "special_ipv6_addresses_are_refused "
                "redirect_is_checked_like_any_request "
                "request_goes_to_the_checked_address_with_its_own_host_name",
                "core/discovery/test_parameters.py": "dangling_reference_is_removed_and_never_followed",
                "graphs/rdf/test_serialization.py": "import_opens_no_socket_or_file_for_any_text",
            },
        ),
        _threat(
            "10-injected-command",
            "A registry entry injects a command, option or variable.",
            "Commands are argument lists without a shell, shown completely, and run only with "
            "consent.",
            "14 of 14 hostile names and 10 of 10 unsafe inputs refused",
            {
                "test_structure.py": "dangerous_calls_are_limited_to_their_modules",
                "plugins/provision/test_policy.py": "invalid_package_names_are_refused "
                "missing_or_unsafe_inputs_are_refused",
                "plugins/provision/test_steps.py": "consent_question_shows_complete_commands "
                "declined_question_runs_nothing_or_undoes_the_installation",
            },
        ),
        _threat(
            "11-rebound-name",
            "A web page reaches the server through DNS.",
            "Host, Origin and token are checked on every path.",
            "16 of 16 foreign hosts and 12 of 12 foreign origins refused on 5 paths",
            {
                "apps/serve/test_http_guard.py": "host_name_that_only_starts_like_an_own_name_is_refused "
                "origins_with_other_ports_or_host_names_are_refused "
                "every_route_except_liveness_requires_a_credential",
                "apps/serve/test_http.py": "foreign_hosts_and_origins_are_refused",
            },
        ),
        _threat(
            "12-endless-server",
            "A server sends endless data, or nothing.",
            "Servers beyond a limit are cut off or disconnected.",
            "under 50 MiB more memory for 12 hostile servers and 12 floods; every search answers",
            {
                "core/mcp/test_error_mapping.py": "huge_message_of_a_server_is_not_held_in_memory "
                "hostile_server_does_not_affect_other_servers",
                "core/mcp/test_mcp_hostile.py": "endless_or_too_long_listing_is_cut "
                "timeout_of_a_silent_server_names_the_option",
                "core/mcp/test_floods.py": "flooding_server_is_disconnected_and_skipped",
                "apps/cli/test_serve.py": "sigterm_ends_flooding_and_hanging_servers",
            },
        ),
        _threat(
            "13-malformed-tool",
            "A server lists an unusable tool.",
            "Only that tool is left out, with the reason.",
            "7 bad tools give 7 reasons",
            {
                "core/mcp/test_mcp_hostile.py": "malformed_tool_is_left_out",
                "core/index/test_indexer.py": "bad_tool_is_quarantined_and_others_are_listed",
            },
        ),
        _threat(
            "14-costly-text",
            "A query, schema, pattern or template is designed to take very long.",
            "Texts are cut, patterns of servers never run, and checks have a step budget.",
            "at most 16 times the CPU of an eighth for 17 texts of 1 MB",
            {
                "core/runtime/test_text.py": "finding_literals_in_a_long_word_does_not_backtrack "
                "finding_literals_takes_linear_time "
                "clean_reads_only_the_beginning_of_a_long_text",
                "core/search/test_request.py": "cleaned_request_respects_the_maximum_lengths "
                "search_of_a_long_text_costs_no_more_than_of_its_first_part",
                "core/catalog/test_identity.py": "uri_is_matched_quickly_with_a_malicious_template",
                "core/catalog/test_arguments.py": "check_never_runs_a_pattern_of_an_untrusted_schema "
                "argument_check_beyond_its_budget_is_abandoned",
            },
        ),
        _threat(
            "15-failing-embedder",
            "An embedder raises, hangs or returns unusable vectors.",
            "The graph ranks, with a diagnostic and a metric. The next search tries again.",
            "0 errors in 15 faults with 3 strategies",
            {
                "core/search/test_fallback.py": "graph_ranks_if_embedding_fails_and_the_next_search_"
                "uses_vectors search_continues_with_any_faulty_reply_of_the_embedding_service",
                "core/search/test_stalled.py": "hanging_embedder_falls_back_to_the_graph",
                "core/embed/test_documents.py": "damaged_stored_vector_is_embedded_again",
            },
        ),
        _threat(
            "16-failing-normalizer",
            "A normalizer raises, hangs or answers nonsense.",
            "The original query is searched.",
            "every search completes for 16 hostile answers",
            {
                "core/search/test_rules.py": "failing_normalizer_leaves_the_query_unchanged",
                "core/search/test_normalize.py": "settle_returns_the_query_if_the_answer_is_not_a_"
                "rewrite",
                "core/search/test_stalled.py": "hanging_normalizer_leaves_the_queries_unchanged",
            },
        ),
        _threat(
            "17-crashing-server",
            "A server crashes repeatedly.",
            "Its tools stay searchable, the next call restarts it, and no process is left.",
            "30 of 30 searches and calls answered in 30 kills",
            {
                "core/servers/test_warm_start.py": "searches_answer_while_a_server_is_killed_repeatedly",
                "core/mcp/test_stdio.py": "stopped_process_ends_with_its_whole_group",
                "core/mcp/test_supervisor.py": "repeated_failures_open_the_breaker_and_a_success_closes_it",
            },
        ),
        _threat(
            "18-killed-writer",
            "The process is killed, or the disk is full, during a write.",
            "Acknowledged data survives. Corrupt files are replaced.",
            "0 acknowledged writes lost under 7 faults and in 200 kills, except month-old lists",
            {
                "plugins/test_faults.py": "fault_loses_no_acknowledged_data_and_fails_no_search "
                "random_kills_lose_no_acknowledged_data "
                "data_stored_before_the_disk_was_full_can_be_read",
                "core/storage/test_vector_store.py": "corrupt_vector_file_is_renamed_and_replaced",
            },
        ),
        _threat(
            "19-cache-stampede",
            "Many identical searches run at once, or the catalog changes under a cache.",
            "Identical work runs once. A changed catalog drops cached results.",
            "1 embedding request for 200 identical searches",
            {
                "core/search/test_caching.py": "two_hundred_equal_searches_make_one_embedding_call "
                "two_hundred_equal_searches_from_threads_make_one_embedding_call "
                "catalog_change_invalidates_cached_results_but_not_query_embeddings"
            },
        ),
        _threat(
            "20-concurrent-use",
            "Threads and event loops share one gateway.",
            "Shared state is locked or belongs to one loop.",
            "776 searches equal a serial run; 0 errors in 8,793 conversations",
            {
                "core/chat/test_together.py": "sixteen_threads_share_one_client_without_mixing_conversations",
                "core/test_sync.py": "two_loops_and_several_threads_share_one_gateway "
                "concurrent_searches_return_the_results_of_a_serial_run",
            },
        ),
        _threat(
            "21-growing-memory",
            "A long run leaves objects, tasks or files.",
            "Caches are bounded; everything else is released.",
            "at most 4 objects, 0 tasks and 0 files more after 200 searches",
            {
                "benchmarks/test_longrun.py": "second_part_leaves_no_more_objects_than_the_first",
                "core/chat/test_memory.py": "blocking_conversations_leave_no_objects "
                "async_conversations_leave_no_objects",
            },
        ),
        _threat(
            "22-cancelled-call",
            "A caller disappears during a call.",
            "The call is cancelled at the server.",
            "0 calls, tasks and processes left after 1,000 cancellations",
            {
                "core/mcp/test_error_mapping.py": "thousand_cancelled_calls_leave_no_tasks_or_processes",
                "core/mcp/test_mcp_hostile.py": "cancelled_call_is_cancelled_at_the_server",
                "core/chat/test_limits.py": "cancelled_client_call_leaves_no_task_or_tool_running",
            },
        ),
        _threat(
            "23-cut-stream",
            "A service splits a stream arbitrarily, or mixes two calls.",
            "Calls and text stay byte-identical.",
            "0 differences in 10,120 streams",
            {
                "core/chat/test_streams.py": "merged_stream_does_not_depend_on_the_split_into_chunks "
                "responses_stream_keeps_host_calls_and_drops_gateway_calls",
                "core/chat/test_streaming.py": "streamed_fragments_of_several_tool_calls_are_joined",
            },
        ),
        _threat(
            "24-failing-telemetry",
            "A telemetry backend raises, hangs or is missing.",
            "Work continues, with one warning.",
            "0 errors in 14 ways to raise",
            {
                "core/chat/test_observed.py": "telemetry_that_raises_does_not_end_searches_or_calls",
                "core/runtime/test_telemetry.py": "gateway_without_providers_configures_no_telemetry "
                "failing_telemetry_backend_does_not_affect_searches",
            },
        ),
        _threat(
            "25-forged-request-state",
            "A client returns the state of a waiting call changed, twice or as another caller.",
            "A state is valid once, for one call of one caller. Servers get their state unchanged.",
            "0 of 4 wrong uses accepted",
            {
                "apps/serve/test_pending_calls.py": "call_token_is_valid_once_and_for_its_call",
                "apps/serve/test_callers.py": "waiting_call_is_continued_only_by_its_caller",
                "core/mcp/test_server_requests.py": "call_is_repeated_until_the_result_requires_no_input",
                "apps/serve/test_conformance.py": "conformance_suite_passes",
            },
        ),
        _threat(
            "26-destructive-call",
            "A model calls a destructive tool, or a server claims that its tools are harmless.",
            "The host is asked first. A server's claims only make the gateway stricter.",
            "0 unapproved runs in 1,000 sequences and 500 conversations",
            {
                "core/discovery/test_call_handler.py": "no_sequence_of_calls_bypasses_approval_or_meta_tools",
                "core/chat/test_limits.py": "host_is_asked_before_destructive_calls "
                "only_true_approves_a_call "
                "only_approved_calls_run_in_five_hundred_conversations",
                "core/discovery/test_approval.py": "tool_hints_of_an_untrusted_server_do_not_avoid_an_approval "
                "approved_arguments_are_the_sent_arguments",
            },
        ),
        _threat(
            "27-changed-dependency",
            "A dependency or its weights are replaced.",
            "Versions of the embedded model are exact; weights are compared before use. Each "
            "library is imported in one place. Package hashes and known vulnerabilities are not "
            "checked.",
            "3 of 3 exact versions, 3 of 3 reviewed SHA-256",
            {
                "test_structure.py": "packages_with_model_weights_are_pinned "
                "each_library_is_imported_by_one_package",
                "plugins/local/test_embedder.py": "installed_model_files_are_the_reviewed_ones "
                "missing_or_changed_model_file_is_an_error_at_the_first_use",
                "plugins/local/test_encoders.py": "weight_file_of_another_format_is_refused",
            },
        ),
        _threat(
            "28-forged-access-token",
            "An access token is forged, stolen or of the wrong kind.",
            "Algorithm, issuer's key, audience and time are checked. Users of two issuers never "
            "collide. Unknown keys cannot flood a provider. A stolen user token is valid until it "
            "expires.",
            "0 of 48 attacker tokens accepted; 1 fetch for 100 unknown keys",
            {
                "apps/serve/identity/test_access_tokens.py": "forged_tokens_are_refused "
                "token_signed_with_a_short_key_is_refused",
                "apps/serve/identity/test_provider_keys.py": "flood_of_unknown_key_ids_causes_one_fetch_of_keys "
                "invalid_provider_responses_are_reported",
                "apps/serve/identity/test_issuers.py": "scope_prefix_never_grants_rights_of_the_gateway "
                "users_of_two_issuers_are_always_distinct",
                "apps/serve/identity/test_authenticator.py": "token_is_accepted_only_in_one_header",
                "apps/serve/identity/test_real_provider.py": (
                    "mcp_session_belongs_to_one_user_of_one_issuer"
                ),
            },
        ),
        _threat(
            "29-token-of-another-user",
            "A user's credential is used for another user, or for none.",
            "Each user has a separate session and credential; the server's own only lists. Rows "
            "copied to another user are unreadable.",
            "0 tokens sent for another of 50 users",
            {
                "core/mcp/test_user_sessions.py": "token_of_a_user_is_never_sent_for_another_user "
                "own_credential_of_the_gateway_is_used_only_to_list_tools "
                "user_keeps_the_session_while_the_token_store_is_down "
                "token_of_a_caller_is_not_printed_or_serialized",
                "plugins/postgres/test_bearer_auth.py": "sign_in_copied_to_the_row_of_another_user_cannot_be_decrypted "
                "only_one_of_two_processes_refreshes_expired_tokens",
                "apps/serve/identity/test_token_exchange.py": (
                    "token_of_each_user_is_exchanged_for_its_own_calls"
                ),
            },
        ),
        _threat(
            "30-lured-sign-in",
            "A user is tricked into completing another person's sign-in.",
            "The user is the one signed in at the provider, or whose token is typed. An answer is "
            "valid once, in the browser that started. Users who give their token away are not "
            "protected.",
            "0 of 12 misplaced answers, 8 ID tokens, 5 redirects and 7 foreign forms accepted",
            {
                "apps/serve/test_account.py": "response_is_accepted_once_and_only_in_its_browser "
                "code_is_accepted_once_and_id_token_is_not_an_access_token "
                "sign_in_returns_only_to_pages_of_this_server "
                "server_sign_in_from_a_session_requires_its_csrf_token",
                "apps/serve/identity/test_code_flow.py": (
                    "id_token_of_another_sign_in_is_refused "
                    "response_of_another_provider_does_not_redeem_the_code"
                ),
                "apps/serve/test_sign_in.py": "sign_in_cannot_be_completed_in_another_browser "
                "sign_in_starts_only_for_users_and_on_own_pages sign_in_page_escapes_the_server_name_in_its_address",
            },
        ),
        _threat(
            "31-hostile-program",
            "A model's program tries to escape, exhaust the host, or make forbidden calls.",
            "Programs run in a separate process with limits and only their calls, which count as "
            "the caller's direct calls. Destructive calls need permission and a separate "
            "approval.",
            "0 of 79 attempts escape; at most 100 MiB more memory",
            {
                "plugins/programs/test_sandbox.py": "sandbox_stops_every_escape_and_runs_the_next_program "
                "bubblewrap_stops_every_escape "
                "escape_attempts_succeed_without_a_sandbox "
                "type_errors_of_a_program_are_found_before_its_first_call",
                "plugins/programs/test_runner.py": "destructive_call_is_refused_unless_the_host_allows_it "
                "program_calls_run_as_the_caller_without_hidden_tools "
                "approval_applies_to_one_call_even_if_its_number_is_reused "
                "searches_are_answered_while_ten_programs_loop",
                "plugins/programs/test_stubs.py": "texts_of_an_upstream_cannot_add_declarations",
            },
        ),
    )
)


def render(threats: Mapping[str, Threat] = THREATS) -> str:
    """Return *threats* as a Markdown table."""
    rows = ["| threat | promise | figures and tests |", "|---|---|---|"]
    rows += [
        f"| `{name}` {each.event} | {each.promise} | {each.held}: `{', '.join(each.tests)}` |"
        for name, each in threats.items()
    ]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.stdout.write(render())
