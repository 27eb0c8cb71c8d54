"""Environment variables of the gateway."""

from __future__ import annotations

from pathlib import Path

import platformdirs

from gateway.options.environment import environment, variables


def test_empty_environment_returns_private_defaults() -> None:
    found = environment({})

    assert Path(platformdirs.user_cache_dir("tool-gateway")) == found.cache_dir
    assert (False, False, "gpt-5.4-mini") == (
        found.capture_content,
        found.openai_configured,
        found.openai_model,
    )


def test_environment_reads_the_documented_variables() -> None:
    found = environment(
        {
            "GATEWAY_CACHE_DIR": " /somewhere ",
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "span_only",
            "OPENAI_BASE_URL": "http://127.0.0.1:1/v1",
            "GATEWAY_ENCODER_DIR": "/encoders ",
            "GATEWAY_MODEL": "m",
            "SEARCH_FUSION_METHOD": " Legacy",
            "GATEWAY_NORMALIZE_BASE_URL": "http://127.0.0.1:2/v1 ",
            "GATEWAY_NORMALIZE_API_KEY": "own",
        }
    )

    assert (Path("/somewhere"), Path("/encoders")) == (found.cache_dir, found.encoder_dir)
    assert Path("/c/encoders") == environment({"GATEWAY_CACHE_DIR": "/c"}).encoder_dir
    assert (True, True, "m") == (found.capture_content, found.openai_configured, found.openai_model)
    assert ("legacy", "rrf") == (found.fusion, environment({}).fusion)
    assert ("http://127.0.0.1:2/v1", "own") == (found.normalizer_url, found.normalizer_key)
    assert "own" not in repr(found)


def test_variables_returns_only_requested_and_set_ones() -> None:
    found = variables(frozenset({"GATEWAY_CACHE_DIR", "GATEWAY_SURELY_NOT_SET"}))

    assert ["GATEWAY_CACHE_DIR"] == list(found)
