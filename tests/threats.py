"""The threats and faults that the gateway is tested against: what it promises, and which tests hold
it to that.

`docs/security.md` ends with the table that `render` writes, and `test_threats.py` compares the two.

    python -m tests.threats
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Threat:
    """One thing that others may do, or that may fail."""

    event: str
    """What may happen."""
    promise: str
    """What the gateway does then."""
    held: str
    """The number that the tests hold, as they count it."""
    tests: tuple[str, ...]
    """Ids of tests: the file below ``tests/``, and the function."""


def _threat(
    name: str, event: str, promise: str, held: str, tests: Mapping[str, str]
) -> tuple[str, Threat]:
    """Return a threat under its id; *tests* are the names of functions by file, without `test_`."""
    ids = tuple(
        f"{file}::test_{function}" for file, names in tests.items() for function in names.split()
    )
    return name, Threat(event=event, promise=promise, held=held, tests=ids)


THREATS: Mapping[str, Threat] = dict(
    (
        _threat(
            "01-poisoned-definition",
            "A definition contains instructions to a model, possibly in hidden characters.",
            "Invisible characters are removed, texts are cut, and models never see flagged "
            "texts. Unfamiliar attacks are missed (`poison_flagged` of `benchmarks.hardening`).",
            "at least 171 of 214 poisoned definitions (30 languages) and 55 of 68 seeded "
            "attacks flagged, 0 of 21 honest ones; 0 invisible characters in 10,000 generated "
            "texts and 11 channels; 0 flagged tools in 6 modes",
            {
                "plugins/quality/test_injection_scanner.py": "seeded_poisonings_are_flagged "
                "four_of_five_poisoned_definitions_are_flagged "
                "sentences_that_honest_tools_say_are_not_flagged",
                "core/runtime/test_text.py": "cleaned_text_fits_and_holds_nothing_unseen "
                "ten_thousand_cleaned_texts_hold_nothing_unseen",
                "apps/serve/test_unseen_text.py": "answers_contain_no_invisible_characters",
                "core/discovery/test_tool_list.py": "a_suspicious_tool_goes_out_in_no_mode",
            },
        ),
        _threat(
            "02-changed-definition",
            "A server changes an approved definition.",
            "Changes are reported, or the definition is left out until approved.",
            "every field of 4 kinds and 150 generated changes detected; 0 false reports for "
            "reordered keys",
            {
                "core/mcp/test_definitions.py": "every_field_that_is_flipped_is_another_definition "
                "whatever_is_flipped_in_a_definition_is_seen "
                "what_a_resource_holds_today_is_no_part_of_its_definition",
                "core/sources/test_cached.py": "a_definition_that_changed_is_reported_until_it_"
                "is_approved",
            },
        ),
        _threat(
            "03-changed-configuration",
            "A changed configuration runs another program under an approved name.",
            "Approvals cover program, arguments, folder, variables and address.",
            "7 of 7 changed parts and 6 of 6 variables detected; 0 unapproved starts under `block`",
            {
                "core/mcp/test_servers.py": "what_is_approved_has_every_variable_in_it "
                "a_fingerprint_tells_configurations_apart_and_a_launch_what_would_run",
                "core/servers/test_config_reload.py": "another_command_line_obeys_the_policy_until_"
                "it_is_approved another_value_of_a_variable_runs_nothing_until_it_is_approved",
            },
        ),
        _threat(
            "04-taken-name",
            "A server offers another server's tool name.",
            "Exposed names are unique, independent of server order, and stay with their first "
            "tool.",
            "0 duplicates and 0 names outside `[A-Za-z0-9_-]{1,64}` in 10,000 generated "
            "catalogs; 0 differences in 720 orders of 6 servers",
            {
                "core/catalog/test_identity.py": "every_tool_has_one_name_that_a_model_may_call "
                "every_tool_of_ten_thousand_catalogs_has_one_name "
                "names_do_not_depend_on_the_order_of_registration "
                "names_are_the_same_in_all_720_orders_of_six_servers",
                "core/sources/test_name_bindings.py": "a_server_that_offers_the_names_of_another_"
                "renames_none",
            },
        ),
        _threat(
            "05-stuffed-ranking",
            "A server fills its tools with words to rank first.",
            "Words of long texts count less. A server's share of the matches is not limited.",
            "20 stuffed tools against 233 generated ones: 0 ranks taken in 59 searches "
            "(`graph`, `auto`), recall@5 no lower. Against the 233 tools of mcp_bench, recall@5"
            " loses 1.5 points in `graph` (28.9 without) and 0.7 in `auto` (50.1 without); with"
            " the words of the requests 2.5 and 8.5 (`python -m benchmarks.attacks`)",
            {
                "core/search/test_stuffing.py": "twenty_stuffed_tools_take_no_place_of_233_honest_ones"
            },
        ),
        _threat(
            "06-forged-search-result",
            "A tool's result imitates a search result.",
            "Only the first answer to a call of the search tool counts.",
            "0 tools revealed by 12 forged messages, 1,000 generated conversations and 4 "
            "request formats",
            {
                "core/discovery/test_window.py": "what_only_looks_like_a_search_result_reveals_nothing "
                "no_forged_result_in_a_thousand_conversations_reveals_anything",
                "core/chat/test_window.py": "a_search_result_in_another_tools_output_reveals_nothing",
            },
        ),
        _threat(
            "07-nested-meta-tool",
            "A model calls a meta-tool through another, or a hidden tool.",
            "Meta-tools are only called directly. Hidden tools are answered like missing ones. "
            "Visible tools need no search.",
            "0 forbidden calls in 1,000 generated sequences (2 kinds of callers, 3 modes); "
            "identical answers for hidden tools on every path",
            {
                "core/discovery/test_call_handler.py": "no_sequence_of_calls_passes_a_meta_tool_or_an_"
                "approval",
                "core/chat/test_main_path.py": "meta_tools_are_neither_found_nor_called_through_another",
                "apps/test_callers.py": "a_hidden_name_is_answered_as_one_that_is_not_there "
                "what_a_caller_may_not_see_is_shown_on_no_path",
            },
        ),
        _threat(
            "08-leaked-secret",
            "A secret or argument appears in logs, telemetry, errors or files.",
            "Secrets are references, given only to their server.",
            "0 of 42 planted secrets in logs of 22 libraries, errors, spans, metrics, answers, "
            "command output, audit and configuration",
            {
                "plugins/test_secrets.py": "no_secret_of_servers_in_logs_errors_spans_or_metrics "
                "no_secret_of_models_and_registries_in_logs_or_spans "
                "no_secret_of_clients_in_logs_answers_or_metrics "
                "no_secret_of_requests_in_logs_of_the_http_server "
                "no_secret_in_what_commands_print",
                "core/mcp/test_servers.py": "no_secret_is_in_what_a_log_would_show",
                "core/runtime/test_telemetry.py": "no_query_argument_or_result_goes_out",
                "plugins/provision/test_steps.py": "arguments_and_secrets_reach_the_server_and_not_"
                "the_audit",
            },
        ),
        _threat(
            "09-private-address",
            "An address, redirect, name or reference leads into a private network.",
            "Requests go only to checked addresses. References in schemas and contexts are "
            "never fetched.",
            "0 connections to 22 private addresses by name and over 2 redirects; 0 of 27 "
            "spellings of 100 generated addresses accepted, 0 of 100 for IPv6; 0 references "
            "fetched",
            {
                "core/mcp/test_ssrf_guard.py": "a_name_that_leads_into_a_private_network_is_refused "
                "no_spelling_of_a_special_address_passes no_special_address_of_ipv6_passes "
                "a_redirect_is_judged_like_any_request "
                "a_request_goes_to_the_address_that_was_judged_under_its_own_name",
                "core/discovery/test_proxies.py": "a_reference_that_leads_nowhere_is_left_out_and_never_"
                "followed",
                "graphs/rdf/test_serialization.py": "nothing_is_fetched_whatever_a_text_says",
            },
        ),
        _threat(
            "10-injected-command",
            "A registry entry injects a command, option or variable.",
            "Commands are argument lists without a shell, shown completely, and run only with "
            "consent.",
            "0 shells in the code; 14 of 14 hostile names and 10 of 10 unsafe inputs refused",
            {
                "test_structure.py": "what_is_dangerous_has_one_home_or_none",
                "plugins/provision/test_policy.py": "what_is_no_name_of_a_package_is_refused "
                "inputs_that_are_missing_or_unsafe_are_refused",
                "plugins/provision/test_steps.py": "the_question_shows_what_runs_whole "
                "nothing_happens_without_consent",
            },
        ),
        _threat(
            "11-rebound-name",
            "A web page reaches the server through DNS.",
            "Host, Origin and token are checked on every path.",
            "16 of 16 foreign hosts get 421 and 12 of 12 foreign origins 403, on 5 paths; "
            "without a token 401 except for liveness",
            {
                "apps/serve/test_http_guard.py": "host_with_the_right_beginning_is_refused "
                "origins_of_other_ports_and_names_are_refused "
                "every_route_except_liveness_requires_a_credential",
                "apps/serve/test_http.py": "foreign_hosts_and_origins_are_refused",
            },
        ),
        _threat(
            "12-endless-server",
            "A server sends endless data, or nothing.",
            "Servers beyond a limit are cut off or disconnected.",
            "under 50 MiB more peak memory for 50 MB of description, 12 hostile servers and 12 "
            "floods, each alone; every search answers; 0 processes after SIGTERM with 4 hostile"
            " servers. Time is not asserted",
            {
                "core/mcp/test_error_mapping.py": "fifty_megabytes_of_description_are_never_held "
                "one_hostile_server_costs_the_others_nothing",
                "core/mcp/test_mcp_hostile.py": "a_listing_ends_even_if_the_server_does_not "
                "a_silent_server_costs_its_limit_and_says_which",
                "core/mcp/test_floods.py": "a_server_that_floods_is_disconnected_and_left_alone",
                "apps/cli/test_serve.py": "at_sigterm_it_ends_whatever_its_servers_do",
            },
        ),
        _threat(
            "13-malformed-tool",
            "A server lists an unusable tool.",
            "Only that tool is left out, with the reason.",
            "11 bad tools in one list give 11 reasons; the 2 good ones stay",
            {
                "core/mcp/test_mcp_hostile.py": "one_malformed_tool_costs_one_tool",
                "core/index/test_indexer.py": "one_bad_tool_is_quarantined_and_its_neighbours_live",
            },
        ),
        _threat(
            "14-costly-text",
            "A query, schema, pattern or template is designed to take very long.",
            "Texts are cut, patterns of servers never run, and checks have a step budget.",
            "17 hostile texts of 1 MB: at most 16 times the CPU of an eighth in 7 functions, "
            "and 4 times that of 4,096 characters plus 20 ms in a search; templates of 5,000 "
            "variables end; 0 patterns run. Milliseconds are not asserted",
            {
                "core/runtime/test_text.py": "a_long_word_costs_no_more_than_its_letters "
                "a_megabyte_costs_what_its_letters_cost "
                "cleaning_reads_only_the_head_of_a_giant",
                "core/search/test_request.py": "whatever_is_said_fits_the_caps "
                "a_search_costs_no_more_than_what_it_reads_of_a_megabyte",
                "core/catalog/test_identity.py": "a_malicious_template_is_cheap",
                "core/catalog/test_arguments.py": "a_pattern_of_a_stranger_is_never_run "
                "a_check_that_would_not_end_is_given_up",
            },
        ),
        _threat(
            "15-failing-embedder",
            "An embedder raises, hangs or returns unusable vectors.",
            "The graph ranks, with a diagnostic and a metric. The next search tries again.",
            "15 faults with 3 strategies, 4 of a real service, 1 timeout: 0 errors, graph "
            "ranking, 1 fallback counted if vectors were requested; 3 kinds of damaged rows "
            "embedded again",
            {
                "core/search/test_fallback.py": "the_graph_answers_and_the_next_request_tries_vectors_"
                "again whatever_a_service_answers_the_search_goes_on",
                "core/search/test_stalled.py": "a_query_that_nobody_embeds_is_answered_by_the_graph",
                "core/embed/test_documents.py": "a_damaged_stored_row_is_embedded_again",
            },
        ),
        _threat(
            "16-failing-normalizer",
            "A normalizer raises, hangs or answers nonsense.",
            "The original query is searched.",
            "5 errors, 1 timeout and 16 hostile answers: every search completes",
            {
                "core/search/test_rules.py": "a_normalizer_that_fails_costs_the_rewrite_alone",
                "core/search/test_normalize.py": "an_answer_that_is_no_rewrite_leaves_the_query",
                "core/search/test_stalled.py": "a_rewriting_that_does_not_come_leaves_the_query",
            },
        ),
        _threat(
            "17-crashing-server",
            "A server crashes repeatedly.",
            "Its tools stay searchable, the next call restarts it, and no process is left.",
            "30 kills: 30 of 30 searches answered, 30 of 30 calls reach a new process, 0 of 31 "
            "processes left. Reconnect time is not asserted",
            {
                "core/servers/test_warm_start.py": "every_search_answers_while_a_server_is_killed_"
                "again_and_again",
                "core/mcp/test_stdio.py": "nothing_of_a_group_outlives_its_end",
                "core/mcp/test_supervisor.py": "failures_in_a_row_open_the_breaker_and_one_probe_"
                "closes_it",
            },
        ),
        _threat(
            "18-killed-writer",
            "The process is killed, or the disk is full, during a write.",
            "Acknowledged data survives. Corrupt files are replaced.",
            "0 acknowledged writes lost under 7 faults with 7 kinds of writes (except month-old"
            " lists) and in 200 random kills; 0 wrong vectors; 0 unreadable files",
            {
                "plugins/test_faults.py": "no_fault_loses_what_was_acknowledged_or_reaches_"
                "a_search two_hundred_kills_at_random_lose_nothing_that_was_acknowledged "
                "what_was_kept_before_the_disk_was_full_can_be_read",
                "core/storage/test_vector_store.py": "a_file_that_cannot_be_read_is_set_aside_and_begun_"
                "anew",
            },
        ),
        _threat(
            "19-cache-stampede",
            "Many identical searches run at once, or the catalog changes under a cache.",
            "Identical work runs once. A changed catalog drops cached results.",
            "200 identical searches on a loop and on threads: 1 embedding request; 0 old "
            "results after a change",
            {
                "core/search/test_caching.py": "two_hundred_equal_searches_make_one_embedding_call "
                "two_hundred_equal_searches_from_threads_make_one_embedding_call "
                "a_change_of_the_catalog_forgets_results_but_not_embeddings"
            },
        ),
        _threat(
            "20-concurrent-use",
            "Threads and event loops share one gateway.",
            "Shared state is locked or belongs to one loop.",
            "776 searches with calls (16 threads, 200 tasks, 2 loops) equal a serial run to the"
            " last digit; 16 threads of conversations: 0 wrong answers; 8,793 conversations in "
            "150 s (16 threads, 200 tasks, `benchmarks/soak.py`): 0 errors, 0 wrong answers",
            {
                "core/chat/test_together.py": "sixteen_threads_share_one_client",
                "core/test_sync.py": "two_loops_and_several_threads_share_one_gateway "
                "threads_and_tasks_get_what_a_serial_run_gets",
            },
        ),
        _threat(
            "21-growing-memory",
            "A long run leaves objects, tasks or files.",
            "Caches are bounded; everything else is released.",
            "at most 4 objects, 0 tasks and 0 files more after 200 searches and 5 reconnects "
            "and sessions; under half an object per conversation; 0.0 MB and 0 tasks more over "
            "the last 6,400 of 16,000 searches (`python -m benchmarks.longrun --searches 16000 "
            "--reconnects 0 --sessions 0`)",
            {
                "benchmarks/test_longrun.py": "what_is_left_after_a_part_is_what_was_left_"
                "before_it",
                "core/chat/test_memory.py": "nothing_is_left_of_blocking_conversations "
                "nothing_is_left_of_asynchronous_conversations",
            },
        ),
        _threat(
            "22-cancelled-call",
            "A caller disappears during a call.",
            "The call is cancelled at the server.",
            "1,000 random cancellations: 0 calls, 0 tasks and 0 processes left",
            {
                "core/mcp/test_error_mapping.py": "a_thousand_cancellations_leave_nothing_behind",
                "core/mcp/test_mcp_hostile.py": "a_cancelled_call_is_cancelled_at_the_server_by_name",
                "core/chat/test_limits.py": "a_call_that_is_cancelled_leaves_nothing_behind",
            },
        ),
        _threat(
            "23-cut-stream",
            "A service splits a stream arbitrarily, or mixes two calls.",
            "Calls and text stay byte-identical.",
            "0 differences in 10,000 generated streams of chats and 120 of responses",
            {
                "core/chat/test_streams.py": "however_a_turn_is_cut_its_calls_and_its_text_are_the_same "
                "events_in_any_pieces_keep_the_hosts_calls_and_lose_ours",
                "core/chat/test_streaming.py": "calls_that_a_server_cuts_and_mixes_are_put_together",
            },
        ),
        _threat(
            "24-failing-telemetry",
            "A telemetry backend raises, hangs or is missing.",
            "Work continues, with one warning.",
            "14 ways to raise: 0 errors, 1 warning each; 200 searches and calls with full "
            "queues and failing exporters: 0 changed results; nothing configured without a "
            "provider",
            {
                "core/chat/test_observed.py": "telemetry_that_raises_ends_no_work",
                "core/runtime/test_telemetry.py": "without_providers_nothing_is_configured "
                "a_backend_that_hangs_or_raises_holds_no_search",
            },
        ),
        _threat(
            "25-forged-request-state",
            "A client returns the state of a waiting call changed, twice or as another caller.",
            "A state is valid once, for one call of one caller. Servers get their state unchanged.",
            "0 of 4 wrong uses accepted for 3 kinds of servers; 0 by another caller; the "
            "protocol's suite passes except scenarios named in its test",
            {
                "apps/serve/test_pending_calls.py": "call_token_is_valid_once_and_for_its_call",
                "apps/serve/test_callers.py": "waiting_call_is_resumed_only_by_its_caller",
                "core/mcp/test_server_requests.py": "rounds_are_played_until_the_server_is_content",
                "apps/serve/test_conformance.py": "conformance_suite_passes",
            },
        ),
        _threat(
            "26-destructive-call",
            "A model calls a destructive tool, or a server claims that its tools are harmless.",
            "The host is asked first. A server's claims only make the gateway stricter.",
            "0 unapproved runs in 1,000 generated sequences and 500 scripted conversations; 0 "
            "after 7 answers other than yes; 200 generated calls run as approved",
            {
                "core/discovery/test_call_handler.py": "no_sequence_of_calls_passes_a_meta_tool_or_an_"
                "approval",
                "core/chat/test_limits.py": "the_host_is_asked_before_what_may_destroy "
                "whatever_is_not_a_plain_yes_is_a_no "
                "five_hundred_conversations_destroy_only_what_was_approved",
                "core/discovery/test_approval.py": "a_stranger_does_not_say_that_its_tools_are_harmless "
                "what_is_approved_is_what_is_called",
            },
        ),
        _threat(
            "27-changed-dependency",
            "A dependency or its weights are replaced.",
            "Versions of the embedded model are exact; weights are compared before use. Each "
            "library is imported in one place. Package hashes and known vulnerabilities are not"
            " checked.",
            "3 of 3 packages at one exact version, 3 of 3 weights with the reviewed SHA-256, 0 "
            "other files read",
            {
                "test_structure.py": "packages_with_weights_are_pinned "
                "each_outside_library_has_one_home",
                "plugins/local/test_embedder.py": "the_installed_files_are_the_reviewed_ones "
                "a_missing_or_changed_file_is_an_error_at_the_first_use",
                "plugins/local/test_encoders.py": "another_file_is_refused",
            },
        ),
        _threat(
            "28-forged-access-token",
            "An access token is forged, stolen or of the wrong kind.",
            "Algorithm, issuer's key, audience and time are checked. Users of two issuers never"
            " collide. Unknown keys cannot flood a provider. A stolen user token is valid until"
            " it expires.",
            "0 of 48 attacker tokens accepted, each refused for its own reason; 1 fetch for 100"
            " concurrent unknown keys; 0 rights by a prefix; 0 of 3 other parties in a session",
            {
                "apps/serve/identity/test_access_tokens.py": "forged_tokens_are_refused "
                "short_key_is_refused",
                "apps/serve/identity/test_provider_keys.py": "flood_of_unknown_keys_causes_one_fetch "
                "invalid_provider_responses_are_reported",
                "apps/serve/identity/test_issuers.py": "prefix_never_grants_rights "
                "users_of_two_issuers_are_always_distinct",
                "apps/serve/identity/test_authenticator.py": "token_is_accepted_only_in_one_header",
                "apps/serve/identity/test_real_provider.py": (
                    "session_belongs_to_one_subject_of_one_issuer"
                ),
            },
        ),
        _threat(
            "29-token-of-another-user",
            "A user's credential is used for another user, or for none.",
            "Each user has a separate session and credential; the server's own only lists. Rows"
            " copied to another user are unreadable.",
            "0 tokens sent for another of 50 concurrent users over 30 sessions, with cancelled "
            "calls, revoked, refreshed and exchanged tokens, and sign-outs; 0 calls without a "
            "user; 0 of 1 moved rows read",
            {
                "core/mcp/test_user_sessions.py": "no_users_token_is_ever_sent_for_another "
                "the_servers_own_credential_lists_and_calls_nothing "
                "while_the_store_is_down_a_user_keeps_its_session "
                "the_token_of_a_caller_is_shown_nowhere",
                "plugins/postgres/test_bearer_auth.py": "a_row_that_is_moved_to_another_user_is_not_read "
                "of_two_processes_one_refreshes_even_if_its_caller_goes_away",
                "apps/serve/identity/test_token_exchange.py": (
                    "token_of_each_user_is_exchanged_for_its_own_calls"
                ),
            },
        ),
        _threat(
            "30-lured-sign-in",
            "A user is tricked into completing another person's sign-in.",
            "The user is the one signed in at the provider, or whose token is typed. An answer "
            "is valid once, in the browser that started. Users who give their token away are "
            "not protected.",
            "0 of 5 server and 0 of 7 provider answers accepted in another browser, twice, for "
            "another server or state; 0 of 8 ID tokens with wrong nonce, issuer, client or "
            "time; 0 of 5 redirects elsewhere; 0 of 7 foreign forms",
            {
                "apps/serve/test_account.py": "response_is_accepted_once_and_only_in_its_browser "
                "code_is_accepted_once_and_id_token_is_not_an_access_token "
                "sign_in_returns_only_to_own_pages "
                "server_sign_in_from_a_session_requires_its_csrf_token",
                "apps/serve/identity/test_code_flow.py": (
                    "id_token_of_another_sign_in_is_refused "
                    "response_of_another_provider_does_not_redeem_the_code"
                ),
                "apps/serve/test_sign_in.py": "sign_in_cannot_be_completed_in_another_browser "
                "sign_in_starts_only_for_users_and_on_own_pages server_name_in_the_address_is_escaped",
            },
        ),
        _threat(
            "31-hostile-program",
            "A model's program tries to escape, exhaust the host, or make forbidden calls.",
            "Programs run in a separate process with limits and only their calls, which count "
            "as the caller's direct calls. Destructive calls need permission and a separate "
            "approval.",
            "0 of 79 attempts escape; at most 100 MiB more host memory; 0 calls before type "
            "checks, 0 of hidden tools, 0 by a forged number; 1 search answered next to 10 "
            "spinning programs",
            {
                "plugins/programs/test_sandbox.py": "no_attempt_gets_out_and_the_next_program_runs "
                "nothing_gets_out_of_bubblewrap_either "
                "the_attempts_tell_a_box_that_does_not_hold "
                "wrong_types_are_found_before_the_first_call",
                "plugins/programs/test_runner.py": "what_destroys_is_refused_unless_the_host_allows_it "
                "calls_are_for_the_same_caller_and_what_it_may_not_see_is_not_there "
                "an_approval_is_for_one_call_whatever_number_another_claims "
                "searches_are_answered_while_ten_programs_spin",
                "plugins/programs/test_stubs.py": "what_an_upstream_writes_declares_nothing_but_a_tool",
            },
        ),
    )
)


def render(threats: Mapping[str, Threat] = THREATS) -> str:
    """Return *threats* as a table in Markdown, one a row, with a newline at its end."""
    rows = [
        "| threat | what may happen | promise | what the tests hold |",
        "| --- | --- | --- | --- |",
    ]
    rows += [
        f"| `{name}` | {each.event} | {each.promise} | {each.held}: {_listed(each.tests)} |"
        for name, each in threats.items()
    ]
    return "\n".join(rows) + "\n"


def _listed(tests: tuple[str, ...]) -> str:
    return ", ".join(f"`{test}`" for test in tests)


if __name__ == "__main__":
    sys.stdout.write(render())
