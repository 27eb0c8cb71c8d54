"""Packaged activation offsets."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TypeAlias

import numpy as np
import pytest

from benchmarks.activation_offsets import WEIGHTS, Layers, Tokenize, offsets
from benchmarks.background import TEXTS
from gateway.plugins.local import (
    E5,
    MINILM,
    OFFSETS_FILE,
    EncoderModel,
    TransformerWeights,
    quantize,
    verify_files,
)
from gateway.runtime.vectors import unit_rows

WeightedModel: TypeAlias = tuple[str, TransformerWeights, Tokenize]
MODELS: Mapping[str, EncoderModel] = {"e5": E5, "minilm": MINILM}


@pytest.fixture(scope="module", params=WEIGHTS)
def weighted_model(request: pytest.FixtureRequest) -> WeightedModel:
    """Return a model's name, its weights in full precision, and its tokenizer."""
    return request.param, *WEIGHTS[request.param]()


def test_packaged_offsets_match_the_benchmark_texts(weighted_model: WeightedModel) -> None:
    """Only every fourth benchmark text is used here, so the comparison is approximate."""
    model, weights, tokenize = weighted_model
    with np.load(OFFSETS_FILE, allow_pickle=False) as packaged:
        expected = {name: packaged[name].astype(np.float32) for name in packaged}

    computed = offsets(weights, tokenize, TEXTS.read_text(encoding="utf-8").splitlines()[::4])

    assert {name for name in expected if name.startswith(model)} == {
        f"{model}.{n}" for n in computed
    }
    for name, offset in computed.items():
        assert float(np.corrcoef(offset, expected[f"{model}.{name}"])[0, 1]) > 0.95, name


def test_quantized_weights_use_at_most_80_steps() -> None:
    """Older processors clip the sum of two products at 16 bits, which would change the vectors."""
    from ctranslate2.specs.common_spec import LinearSpec  # noqa: PLC0415

    spec = LinearSpec()
    weight = np.random.default_rng(3).standard_normal((5000, 8)).astype(np.float32)
    weight[7] = 0

    quantize(spec, weight)

    assert 80 == np.abs(spec.weight).max()
    np.testing.assert_allclose(spec.weight / spec.weight_scale[:, None], weight, atol=0.05)


def test_8_bit_encoder_agrees_with_full_precision(weighted_model: WeightedModel) -> None:
    model, weights, tokenize = weighted_model
    text = "What will the weather be like in Oslo?"

    encode = MODELS[model].load(partial(verify_files, MODELS[model]))

    *_, (_, last) = Layers(weights).inputs(tokenize(text))

    assert float(unit_rows(last.mean(axis=0))[0] @ encode([text])[0]) > 0.997
