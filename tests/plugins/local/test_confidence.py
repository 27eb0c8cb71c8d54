"""Confidence of the packaged model."""

from __future__ import annotations

from gateway.plugins.local import LocalEmbedder
from gateway.search import COEFFICIENTS, LOCAL_MODEL


def test_local_model_has_fitted_confidence_coefficients() -> None:
    """A new version of the model needs a new fit."""
    assert LOCAL_MODEL == LocalEmbedder().info.model_id
    assert LOCAL_MODEL in COEFFICIENTS
