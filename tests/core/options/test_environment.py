"""What the environment says."""

from __future__ import annotations

from pathlib import Path

import platformdirs

from gateway.options.environment import environment, variables


def test_an_empty_environment_gives_the_users_cache_folder_and_no_content() -> None:
    """The defaults are private."""
    found = environment({})

    assert Path(platformdirs.user_cache_dir("tool-gateway")) == found.cache_dir
    assert (False, False, "gpt-5.4-mini") == (
        found.capture_content,
        found.openai_configured,
        found.openai_model,
    )


def test_the_environment_is_read_by_documented_names() -> None:
    """The one place that reads it."""
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


def test_only_variables_that_are_asked_for_and_set_are_given() -> None:
    """A configuration file reads no more than it names."""
    found = variables(frozenset({"GATEWAY_CACHE_DIR", "GATEWAY_SURELY_NOT_SET"}))

    assert ["GATEWAY_CACHE_DIR"] == list(found)
