"""The confidence of the packaged model."""

from __future__ import annotations

from gateway.plugins.local import LocalEmbedder
from gateway.search import COEFFICIENTS, LOCAL_MODEL


def test_the_local_model_has_a_row_of_its_own() -> None:
    """A new version of it must be fitted anew."""
    assert LOCAL_MODEL == LocalEmbedder().info.model_id
    assert LOCAL_MODEL in COEFFICIENTS
