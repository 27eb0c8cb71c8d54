"""The embedder without a model."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from gateway.runtime.vectors import Matrix, usable
from gateway.testing import HashingEmbedder


def near(embedder: HashingEmbedder, left: str, right: str) -> float:
    vectors = embedder.vectors([left, right])
    return float(vectors[0] @ vectors[1])


def test_vectors_are_the_same_on_every_machine() -> None:
    """Numbers written down once: a changed hash would move every ranking test."""
    row = HashingEmbedder(4).vectors(["send a letter"])[0]

    assert [-0.877833, -0.386558, -0.255981, 0.120233] == pytest.approx(row.tolist(), abs=1e-6)


@pytest.mark.parametrize("text", ["a", "?!", " ", "天气", "\ud800", "x" * 10_000])
def test_every_text_has_a_unit_vector(text: str) -> None:
    """Also one without a word: zeros would read as a failure."""
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
def test_shared_words_and_stems_are_near(text: str, nearer: str, farther: str) -> None:
    """In any script, in any case, in any style of identifiers."""
    embedder = HashingEmbedder()

    assert near(embedder, text, nearer) > near(embedder, text, farther) + 0.1


@pytest.mark.parametrize("text", ["Погода", "今日天気", "what is it like outside"])
def test_meanings_join_words_of_different_languages(text: str) -> None:
    """How a test states what a multilingual model would know."""
    meanings = {"погода": "weather", "天気": "weather", "like outside": "weather"}

    with_meanings = near(HashingEmbedder(meanings=meanings), text, "weather")

    assert with_meanings > near(HashingEmbedder(), text, "weather") + 0.4


def test_a_meaning_is_of_the_whole_word() -> None:
    """In a script with case; `cat` must not be found in `catalog`."""
    embedder = HashingEmbedder(meanings={"cat": "animal"})

    assert HashingEmbedder().vectors(["catalog"]).tolist() == embedder.vectors(["catalog"]).tolist()


def test_the_model_id_names_what_changes_a_vector() -> None:
    """Stored vectors are found by it; two settings must not share them."""
    ids = [
        HashingEmbedder().info.model_id,
        HashingEmbedder(8).info.model_id,
        HashingEmbedder(meanings={"a": "b"}).info.model_id,
        HashingEmbedder(meanings={"a": "c"}).info.model_id,
        HashingEmbedder(model_id="mine").info.model_id,
    ]

    assert ["hashing-256", "hashing-8"] == ids[:2]
    assert 5 == len(set(ids))


async def test_calls_and_texts_are_counted() -> None:
    """Performance is counted, not timed; requests at once lose no count."""
    embedder = HashingEmbedder()

    await asyncio.gather(*(embedder.embed(["a", "b"], role="query") for _ in range(10)))

    assert (10, 20) == (embedder.calls, embedder.texts)
    assert [("a", "b")] * 10 == embedder.batches


async def test_it_fails_while_it_is_told_to() -> None:
    """A failed request was still a request."""
    embedder = HashingEmbedder(fail_with=OSError("down"))

    with pytest.raises(OSError, match="down"):
        await embedder.embed(["a"], role="query")
    embedder.fail_with = None
    await embedder.embed(["a"], role="query")

    assert 2 == embedder.calls


async def test_a_transform_spoils_the_vectors() -> None:
    """For what no server would send over the wire."""

    def zeros(rows: Matrix) -> Matrix:
        return rows * np.float32(0)

    answer = await HashingEmbedder(transform=zeros).embed(["a"], role="query")

    assert "a vector is all zeros" == usable(answer.vectors, count=1, dimensions=256)
