"""The hashing embedder, which needs no model."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from gateway.runtime.vectors import Matrix, usable
from gateway.testing import HashingEmbedder


def near(embedder: HashingEmbedder, left: str, right: str) -> float:
    vectors = embedder.vectors([left, right])
    return float(vectors[0] @ vectors[1])


def test_embedder_returns_equal_vectors_on_every_machine() -> None:
    """A changed hash would change every ranking test, so the numbers are fixed here."""
    row = HashingEmbedder(4).vectors(["send a letter"])[0]

    assert [-0.877833, -0.386558, -0.255981, 0.120233] == pytest.approx(row.tolist(), abs=1e-6)


@pytest.mark.parametrize("text", ["a", "?!", " ", "天气", "\ud800", "x" * 10_000])
def test_embedder_returns_a_unit_vector_for_every_text(text: str) -> None:
    """A zero vector for a text without words would count as a failure of the embedder."""
    rows = HashingEmbedder().vectors([text])

    assert usable(rows, count=1, dimensions=256) == ""
    assert np.linalg.norm(rows[0]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "nearer", "farther"),
    [
        ("send a letter to Bob", "letter sending service", "current weather of a city"),
        ("get_weather", "getWeather", "sendLetter"),
        ("Straße", "STRASSE", "strange"),
        ("отправить письмо", "отправка писем", "погода сегодня"),
    ],
)
def test_texts_that_share_words_or_stems_have_similar_vectors(
    text: str, nearer: str, farther: str
) -> None:
    embedder = HashingEmbedder()

    assert near(embedder, text, nearer) > near(embedder, text, farther) + 0.1


@pytest.mark.parametrize("text", ["Погода", "今日天気", "what is it like outside"])
def test_words_with_one_meaning_have_similar_vectors_in_different_languages(text: str) -> None:
    """Tests can then use the embedder in place of a multilingual model."""
    meanings = {"погода": "weather", "天気": "weather", "like outside": "weather"}

    with_meanings = near(HashingEmbedder(meanings=meanings), text, "weather")

    assert with_meanings > near(HashingEmbedder(), text, "weather") + 0.4


def test_meaning_applies_only_to_whole_words() -> None:
    """The meaning of `cat` must not apply to `catalog`."""
    embedder = HashingEmbedder(meanings={"cat": "animal"})

    assert HashingEmbedder().vectors(["catalog"]).tolist() == embedder.vectors(["catalog"]).tolist()


def test_model_id_depends_on_every_setting_that_changes_vectors() -> None:
    """Stored vectors are found by the model id."""
    ids = [
        HashingEmbedder().info.model_id,
        HashingEmbedder(8).info.model_id,
        HashingEmbedder(meanings={"a": "b"}).info.model_id,
        HashingEmbedder(meanings={"a": "c"}).info.model_id,
        HashingEmbedder(model_id="mine").info.model_id,
    ]

    assert ["hashing-256", "hashing-8"] == ids[:2]
    assert 5 == len(set(ids))


async def test_embedder_counts_its_calls_and_texts() -> None:
    """Concurrent calls are all counted."""
    embedder = HashingEmbedder()

    await asyncio.gather(*(embedder.embed(["a", "b"], role="query") for _ in range(10)))

    assert (10, 20) == (embedder.calls, embedder.texts)
    assert [("a", "b")] * 10 == embedder.batches


async def test_embedder_fails_while_fail_with_is_set() -> None:
    """Failed calls are counted too."""
    embedder = HashingEmbedder(fail_with=OSError("down"))

    with pytest.raises(OSError, match="down"):
        await embedder.embed(["a"], role="query")
    embedder.fail_with = None
    await embedder.embed(["a"], role="query")

    assert 2 == embedder.calls


async def test_embedder_applies_its_transform_to_vectors() -> None:

    def zeros(rows: Matrix) -> Matrix:
        return rows * np.float32(0)

    answer = await HashingEmbedder(transform=zeros).embed(["a"], role="query")

    assert "a vector is all zeros" == usable(answer.vectors, count=1, dimensions=256)
