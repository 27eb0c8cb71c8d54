"""The embeddings endpoint with the real SDK."""

from __future__ import annotations

import numpy as np
import openai
import pytest

from gateway.testing import HashingEmbedder, script
from tests.apps.testing.driving import serve_blocking

TEXTS = ["what time is it", "send a letter"]


def test_embeddings_as_floats_and_as_base64_are_equal() -> None:
    """The SDK asks for base64 by default, other clients for floats."""
    with serve_blocking(script()) as (_, client):
        by_default = client.embeddings.create(model="e", input=TEXTS)
        as_floats = client.embeddings.create(model="e", input=TEXTS, encoding_format="float")

    expected = HashingEmbedder().vectors(TEXTS).astype(np.float64).tolist()
    assert expected == [entry.embedding for entry in by_default.data]
    assert expected == [entry.embedding for entry in as_floats.data]


def test_embeddings_answer_has_usage_and_keeps_the_order_of_texts() -> None:
    with serve_blocking(script()) as (model, client):
        answer = client.embeddings.create(model="e", input=TEXTS)

    assert {"prompt_tokens": 8, "total_tokens": 8} == answer.usage.to_dict()
    assert ([0, 1], "e") == ([entry.index for entry in answer.data], answer.model)
    assert [tuple(TEXTS)] == model.embedding_requests
    assert (1, 2) == (model.embedder.calls, model.embedder.texts)


def test_embeddings_with_fewer_dimensions_are_folded_and_normalized() -> None:
    with serve_blocking(script()) as (_, client):
        answer = client.embeddings.create(model="e", input="letter", dimensions=16)

    row = np.array(answer.data[0].embedding)
    assert 16 == len(row)
    assert np.linalg.norm(row) == pytest.approx(1)


@pytest.mark.parametrize("dimensions", [0, 257])
def test_number_of_dimensions_out_of_range_is_refused(dimensions: int) -> None:
    with (
        serve_blocking(script()) as (_, client),
        pytest.raises(openai.BadRequestError, match="between 1 and 256"),
    ):
        client.embeddings.create(model="e", input="a", dimensions=dimensions)
