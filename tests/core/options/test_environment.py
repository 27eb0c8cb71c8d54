"""Environment variables of the gateway."""

from __future__ import annotations

from pathlib import Path

import platformdirs

from gateway.options.environment import environment, variables


def test_empty_environment_returns_private_defaults() -> None:
    values = environment({})

    assert Path(platformdirs.user_cache_dir("tool-gateway")) == values.cache_dir
    assert (False, False, "gpt-5.4-mini") == (
        values.capture_content,
        values.openai_configured,
        values.openai_model,
    )


def test_environment_reads_the_documented_variables() -> None:
    values = environment(
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

    assert (Path("/somewhere"), Path("/encoders")) == (values.cache_dir, values.encoder_dir)
    assert Path("/c/encoders") == environment({"GATEWAY_CACHE_DIR": "/c"}).encoder_dir
    assert (True, True, "m") == (
        values.capture_content,
        values.openai_configured,
        values.openai_model,
    )
    assert ("legacy", "rrf") == (values.fusion, environment({}).fusion)
    assert ("http://127.0.0.1:2/v1", "own") == (values.normalizer_url, values.normalizer_key)
    assert "own" not in repr(values)


def test_variables_returns_the_requested_variables_that_are_set() -> None:
    values = variables(frozenset({"GATEWAY_CACHE_DIR", "GATEWAY_SURELY_NOT_SET"}))

    assert ["GATEWAY_CACHE_DIR"] == list(values)
