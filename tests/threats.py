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
            "A definition holds orders to a model, hidden characters too.",
            "Unseen characters are dropped and texts are cut. What looks like an attack is flagged "
            "and its text is shown to no model. Attacks in words that the scanner does not know "
            "pass: `poison_flagged` of `benchmarks.hardening` says how many it finds.",
            "171 of 214 poisoned definitions in 30 languages and 55 of 68 seeded attacks flagged "
            "at least, 0 of 21 honest definitions; 0 unseen characters in 10,000 generated texts "
            "and in the answers of 11 channels; 0 flagged tools in 6 modes",
            {
                "plugins/quality/test_injection_scanner.py": "seeded_poisonings_are_flagged "
                "four_of_five_poisoned_definitions_are_flagged "
                "sentences_that_honest_tools_say_are_not_flagged",
                "core/runtime/test_text.py": "cleaned_text_fits_and_holds_nothing_unseen "
                "ten_thousand_cleaned_texts_hold_nothing_unseen",
                "apps/serve/test_unseen_text.py": "no_answer_of_the_server_holds_it",
                "core/discovery/test_tool_list.py": "a_suspicious_tool_goes_out_in_no_mode",
            },
        ),
        _threat(
            "02-changed-definition",
            "A server changes a definition after it was approved.",
            "Definitions are pinned by digest. A changed one is reported, or left out until it is "
            "approved.",
            "every field of 4 kinds and 150 generated changes seen; 0 false reports when keys are "
            "in another order",
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
            "A configuration file is changed to run another program under a name that was "
            "approved.",
            "The approval is of the program, its arguments, folder, variables and address.",
            "7 of 7 changed parts seen, 6 of 6 variables; 0 starts of what is not approved under "
            "`block`",
            {
                "core/mcp/test_servers.py": "what_is_approved_has_every_variable_in_it "
                "a_fingerprint_tells_configurations_apart_and_a_launch_what_would_run",
                "core/servers/test_config_reload.py": "another_command_line_obeys_the_policy_until_"
                "it_is_approved another_value_of_a_variable_runs_nothing_until_it_is_approved",
            },
        ),
        _threat(
            "04-taken-name",
            "A server offers a tool under the name of another server's tool.",
            "Exposed names are unique, do not depend on the order of servers, and stay with the "
            "tool that had them first.",
            "0 names twice and 0 outside `[A-Za-z0-9_-]{1,64}` in 10,000 generated catalogs; 0 "
            "differences in all 720 orders of 6 servers",
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
            "A server writes every word into its tools, to be found first.",
            "Of a long text each word counts less. There is no limit to one server's share of the "
            "matches.",
            "20 tools stuffed with all words beside 233 made-up ones: 0 of their places taken in "
            "59 searches, `graph` and `auto`, recall@5 no lower. Beside the 233 real ones of "
            "mcp_bench the same cost 1.5 points of recall@5 in `graph` (28.9 without) and 0.7 in "
            "`auto` (50.1 without), and 20 with the words of the requests 2.5 in `graph` and 8.5 "
            "in `auto`, where a server's best tool lifts its others (`python -m "
            "benchmarks.attacks`)",
            {
                "core/search/test_stuffing.py": "twenty_stuffed_tools_take_no_place_of_233_honest_ones"
            },
        ),
        _threat(
            "06-forged-search-result",
            "A result of a tool looks like one of a search.",
            "Only the first answer to a call of the gateway's own search tool is read as one.",
            "0 tools shown by 12 forged messages, by 1,000 generated conversations full of them, "
            "and in 4 ways to ask",
            {
                "core/discovery/test_window.py": "what_only_looks_like_a_search_result_reveals_nothing "
                "no_forged_result_in_a_thousand_conversations_reveals_anything",
                "core/chat/test_window.py": "a_search_result_in_another_tools_output_reveals_nothing",
            },
        ),
        _threat(
            "07-nested-meta-tool",
            "A model calls a meta-tool through another, or a tool that its caller may not see.",
            "A meta-tool is called directly alone. A hidden tool is answered as one that is not "
            "there. One that the caller may see may be called without having been found.",
            "0 calls passed in 1,000 generated sequences, of two kinds of callers and in 3 modes; "
            "the same answer on every path for what is hidden",
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
            "A token, key or argument shows in logs, telemetry, errors or files.",
            "Secrets come by reference, are given to their server alone, and stand in no text.",
            "0 of 42 planted secrets in logs of 22 libraries, errors, spans, metrics, answers, "
            "what "
            "commands print, the audit and the configuration that is written",
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
            "An address, a redirect, a name or a reference leads into a private network.",
            "Each request is judged, and goes to the address that was judged. References of "
            "schemas and contexts are never fetched.",
            "0 connections to 22 private addresses behind a name and over 2 redirects; 0 of 27 "
            "spellings taken of 100 generated addresses, 0 of 100 of IPv6; 0 references fetched",
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
            "A registry's entry brings a command, an option or a variable into an installation.",
            "Commands are lists of arguments without a shell. They are shown whole, and nothing "
            "runs without consent.",
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
            "A web page reaches the server by a name that points at this machine.",
            "Host, Origin and token are checked before every path.",
            "16 of 16 foreign hosts get 421 and 12 of 12 foreign origins 403, on 5 paths; "
            "without a "
            "token 401 on every path but liveness",
            {
                "apps/serve/test_http_guard.py": "a_host_that_only_begins_like_ours_is_refused "
                "pages_of_other_ports_and_names_are_refused "
                "nothing_but_liveness_answers_without_a_credential",
                "apps/serve/test_http.py": "a_web_page_cannot_reach_it",
            },
        ),
        _threat(
            "12-endless-server",
            "A server sends pages, tools, bytes or messages without end, or nothing at all.",
            "Everything has a limit. A server that goes beyond it is cut or disconnected; the "
            "others go on.",
            "the peak of memory rises by less than 50 MiB with 50 MB of description, 12 kinds of "
            "hostile servers and 12 floods, each alone; each search answers; with 4 hostile "
            "servers under way 0 processes are left after SIGTERM. The time is not asserted",
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
            "A server lists a tool that no model or client could take.",
            "That tool alone is left out, with the reason.",
            "11 bad tools in one list: 11 reasons, the 2 good ones stay",
            {
                "core/mcp/test_mcp_hostile.py": "one_malformed_tool_costs_one_tool",
                "core/index/test_indexer.py": "one_bad_tool_is_quarantined_and_its_neighbours_live",
            },
        ),
        _threat(
            "14-costly-text",
            "A query, a schema, a pattern or a template is written to cost time without end.",
            "Texts are cut first. A pattern of a server is never run, and checks have a budget of "
            "steps.",
            "17 hostile texts of 1 MB cost each of 7 functions at most 16 times the CPU of an "
            "eighth of them, and a search at most 4 times that of 4,096 characters and 20 ms; a "
            "template of 5,000 variables ends; 0 patterns run. Milliseconds are not asserted",
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
            "An embedder raises, hangs or gives vectors that cannot be used.",
            "The graph ranks this search, with a diagnostic and a metric; the next one tries "
            "vectors again.",
            "15 faults with 3 strategies, 4 of a real service and 1 silence: 0 errors, the graph's "
            "ranking, 1 fallback counted where vectors were asked for; 3 kinds of stored rows made "
            "anew",
            {
                "core/search/test_fallback.py": "the_graph_answers_and_the_next_request_tries_vectors_"
                "again whatever_a_service_answers_the_search_goes_on",
                "core/search/test_stalled.py": "a_query_that_nobody_embeds_is_answered_by_the_graph",
                "core/embed/test_documents.py": "a_damaged_stored_row_is_embedded_again",
            },
        ),
        _threat(
            "16-failing-normalizer",
            "A normalizer raises, hangs or says something else.",
            "The query is searched as it is.",
            "5 errors, 1 silence and 16 hostile answers: every search completes",
            {
                "core/search/test_rules.py": "a_normalizer_that_fails_costs_the_rewrite_alone",
                "core/search/test_normalize.py": "an_answer_that_is_no_rewrite_leaves_the_query",
                "core/search/test_stalled.py": "a_rewriting_that_does_not_come_leaves_the_query",
            },
        ),
        _threat(
            "17-crashing-server",
            "A server dies again and again.",
            "Its tools stay searchable, and the next call starts it anew. None of its processes is "
            "left.",
            "30 kills: 30 of 30 searches answer, 30 of 30 calls reach a new process, 0 of 31 are "
            "left. The time of a reconnect is not asserted",
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
            "The process is killed, or the disk is full, while something is stored.",
            "What was acknowledged is there afterwards; a corrupt file is set aside and begun "
            "anew.",
            "0 acknowledged writes lost under 7 faults with 7 kinds of writes (but for lists a "
            "month old); 200 kills at random: 0 lost, 0 wrong vectors, 0 files that the next "
            "process cannot read",
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
            "Many ask the same at once, or the catalog changes behind what is cached.",
            "Equal work at the same time runs once. A change of the catalog forgets results.",
            "200 equal searches at once, on a loop and on threads: 1 request for the query's "
            "vector; 0 old results after a change",
            {
                "core/search/test_caching.py": "two_hundred_equal_searches_make_one_embedding_call "
                "two_hundred_equal_searches_from_threads_make_one_embedding_call "
                "a_change_of_the_catalog_forgets_results_but_not_embeddings"
            },
        ),
        _threat(
            "20-concurrent-use",
            "Threads and loops use one gateway at the same time.",
            "What they share is locked or lives on one loop; each gets its own answer.",
            "776 searches with calls from 16 threads and 200 tasks on 2 loops: each as in a serial "
            "run, to the last digit; 16 threads of conversations: 0 wrong answers. 8,793 "
            "conversations of 16 threads and 200 tasks in 150 s (`benchmarks/soak.py`): 0 errors, "
            "0 wrong answers",
            {
                "core/chat/test_together.py": "sixteen_threads_share_one_client",
                "core/test_sync.py": "two_loops_and_several_threads_share_one_gateway "
                "threads_and_tasks_get_what_a_serial_run_gets",
            },
        ),
        _threat(
            "21-growing-memory",
            "A long run leaves objects, tasks or files behind.",
            "Caches are bounded, and nothing else stays.",
            "objects, tasks and files after 200 more searches and 5 more reconnects and sessions: "
            "4, 0 and 0 more at most; less than half an object a conversation. 0.0 MB and 0 tasks "
            "more over the last 6,400 of 16,000 searches (`python -m benchmarks.longrun --searches "
            "16000 --reconnects 0 --sessions 0`)",
            {
                "benchmarks/test_longrun.py": "what_is_left_after_a_part_is_what_was_left_"
                "before_it",
                "core/chat/test_memory.py": "nothing_is_left_of_blocking_conversations "
                "nothing_is_left_of_asynchronous_conversations",
            },
        ),
        _threat(
            "22-cancelled-call",
            "A caller goes away in the middle of a call.",
            "The call is cancelled at the server, and nothing waits for it any more.",
            "1,000 cancellations at random points: 0 calls, 0 tasks and 0 processes left",
            {
                "core/mcp/test_error_mapping.py": "a_thousand_cancellations_leave_nothing_behind",
                "core/mcp/test_mcp_hostile.py": "a_cancelled_call_is_cancelled_at_the_server_by_name",
                "core/chat/test_limits.py": "a_call_that_is_cancelled_leaves_nothing_behind",
            },
        ),
        _threat(
            "23-cut-stream",
            "A service cuts a stream into any pieces, or mixes two calls.",
            "The calls and the text are the same to the byte.",
            "0 differences in 10,000 generated streams of chats and 120 of responses",
            {
                "core/chat/test_streams.py": "however_a_turn_is_cut_its_calls_and_its_text_are_the_same "
                "events_in_any_pieces_keep_the_hosts_calls_and_lose_ours",
                "core/chat/test_streaming.py": "calls_that_a_server_cuts_and_mixes_are_put_together",
            },
        ),
        _threat(
            "24-failing-telemetry",
            "A backend of telemetry raises or hangs, or there is none.",
            "Searches, calls and conversations go on, with one warning.",
            "14 ways to raise: 0 errors, 1 warning each; 200 searches and calls beside exporters "
            "that raise, and that hang, with full queues: 0 other results; nothing is configured "
            "without a provider",
            {
                "core/chat/test_observed.py": "telemetry_that_raises_ends_no_work",
                "core/runtime/test_telemetry.py": "without_providers_nothing_is_configured "
                "a_backend_that_hangs_or_raises_holds_no_search",
            },
        ),
        _threat(
            "25-forged-request-state",
            "A client sends back the state of a call that waits, changed, twice or from another.",
            "A state names one call of one caller, once. A server gets its own state as it gave "
            "it.",
            "0 of 4 wrong uses taken, for 3 kinds of servers; 0 by another caller; the protocol's "
            "suite passes but for the scenarios that its test names",
            {
                "apps/serve/test_pending_calls.py": "a_token_serves_once_and_for_its_own_call",
                "apps/serve/test_callers.py": "a_call_that_waits_is_resumed_by_its_caller_alone",
                "core/mcp/test_server_requests.py": "rounds_are_played_until_the_server_is_content",
                "apps/serve/test_conformance.py": "the_suite_passes",
            },
        ),
        _threat(
            "26-destructive-call",
            "A model calls what destroys something, or a server says that its tools are harmless.",
            "The host is asked first. What a server says of its tools only makes the gateway "
            "stricter.",
            "0 runs without an approval in 1,000 generated sequences and 500 scripted "
            "conversations; 0 by 7 answers that are no yes; 200 generated calls run as they were "
            "approved",
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
            "A package that the gateway uses, or its weights, are replaced.",
            "Packages of the embedded model are pinned, and their weights are compared before they "
            "are read. Each library is imported at one place. Hashes of packages are not pinned, "
            "and known faults of packages are not looked up.",
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
            "An access token is forged, stolen from another service, or not meant for access.",
            "Only an allow list of signatures counts, by a key of the issuer's own set, for this "
            "audience, in its time. Two issuers never name one user, and unknown keys flood no "
            "provider. A token that is stolen from its user is good until it ends.",
            "0 of 48 tokens of attackers taken, each refused for its own reason; 1 fetch for 100 "
            "unknown keys at once; 0 rights by a prefix; 0 of 3 other parties in a session",
            {
                "apps/serve/identity/test_access_tokens.py": "what_an_attacker_sends_is_refused "
                "a_short_key_is_not_trusted",
                "apps/serve/identity/test_provider_keys.py": "a_flood_of_unknown_keys_costs_one_fetch "
                "what_no_provider_should_send_is_named",
                "apps/serve/identity/test_issuers.py": "no_right_passes_by_a_prefix "
                "users_and_tenants_of_two_issuers_are_never_one",
                "apps/serve/identity/test_authenticator.py": "a_token_comes_in_one_header",
                "apps/serve/identity/test_real_provider.py": (
                    "a_session_belongs_to_one_subject_of_one_issuer"
                ),
            },
        ),
        _threat(
            "29-token-of-another-user",
            "One user's credential at a server goes with another user's call, or with nobody's.",
            "Each user has a session of its own with its own credential; the server's own one only "
            "lists. A row of a store that is copied to another user cannot be read.",
            "0 tokens sent for another by 50 users at once over 30 sessions, with calls cancelled, "
            "tokens revoked, refreshed and exchanged, users signed out and in; 0 calls without a "
            "user; 0 of 1 rows read that was moved",
            {
                "core/mcp/test_user_sessions.py": "no_users_token_is_ever_sent_for_another "
                "the_servers_own_credential_lists_and_calls_nothing "
                "while_the_store_is_down_a_user_keeps_its_session "
                "the_token_of_a_caller_is_shown_nowhere",
                "plugins/postgres/test_bearer_auth.py": "a_row_that_is_moved_to_another_user_is_not_read "
                "of_two_processes_one_refreshes_even_if_its_caller_goes_away",
                "apps/serve/identity/test_token_exchange.py": (
                    "each_users_token_is_exchanged_for_its_own_calls"
                ),
            },
        ),
        _threat(
            "30-lured-sign-in",
            "A user is lured to complete a sign-in that somebody else began, so that its account "
            "becomes the other's.",
            "The page's address belongs to nobody; the user is the one that signed in at the "
            "identity provider, or whose token is typed. An answer counts once, in the browser "
            "that began. A user who gives away its token, or types it at another site, is not "
            "protected.",
            "0 of 5 answers of servers and 0 of 7 of an identity provider taken in another "
            "browser, twice, for another server or with another state; 0 of 8 ID tokens of another "
            "nonce, issuer, client or time; 0 of 5 ways led elsewhere; 0 of 7 forms by others, of "
            "no user, without the scope, of another session or under another name",
            {
                "apps/serve/test_account.py": "an_answer_is_good_once_and_in_the_browser_that_began "
                "a_code_is_good_once_and_an_id_token_is_no_key_to_the_api "
                "a_sign_in_leads_to_a_page_of_ours_alone "
                "a_session_begins_no_sign_in_to_a_server_without_its_secret",
                "apps/serve/identity/test_code_flow.py": (
                    "an_id_token_that_is_not_of_this_sign_in_is_refused "
                    "the_answer_of_another_provider_costs_no_code"
                ),
                "apps/serve/test_sign_in.py": "nobody_completes_what_another_browser_began "
                "only_a_user_begins_and_only_at_our_page a_name_from_the_address_is_no_markup",
            },
        ),
        _threat(
            "31-hostile-program",
            "A program of a model tries to get out of its sandbox, to cost its host much, or to "
            "make calls that nobody allowed.",
            "It runs out of process with nothing but its calls, under limits of time, memory, "
            "calls and output. Each call goes the way of a direct one, for the same caller; what "
            "destroys is refused unless the host allows it, and an approval is for one call.",
            "0 of 79 attempts out, at most 100 MiB more of the host's memory; 0 calls before the "
            "types are right, 0 of a tool that the caller may not see, 0 by a forged number; "
            "1 search answered beside 10 programs that spin",
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
