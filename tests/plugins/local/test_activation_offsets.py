"""The packaged activation offsets."""

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

Weighed: TypeAlias = tuple[str, TransformerWeights, Tokenize]
MODELS: Mapping[str, EncoderModel] = {"e5": E5, "minilm": MINILM}


@pytest.fixture(scope="module", params=WEIGHTS)
def weighed(request: pytest.FixtureRequest) -> Weighed:
    """A model's name, its weights in full precision, and its tokenizer."""
    return request.param, *WEIGHTS[request.param]()


def test_the_packaged_offsets_are_those_of_the_texts(weighed: Weighed) -> None:
    """Every fourth of them, so near as a fourth can be."""
    model, weights, tokenize = weighed
    with np.load(OFFSETS_FILE, allow_pickle=False) as packaged:
        known = {name: packaged[name].astype(np.float32) for name in packaged}

    found = offsets(weights, tokenize, TEXTS.read_text(encoding="utf-8").splitlines()[::4])

    assert {name for name in known if name.startswith(model)} == {f"{model}.{n}" for n in found}
    for name, offset in found.items():
        assert float(np.corrcoef(offset, known[f"{model}.{name}"])[0, 1]) > 0.95, name


def test_weights_leave_room_for_the_sum_of_two_products() -> None:
    """Older processors cut it off at 16 bits: a text would have another vector there."""
    from ctranslate2.specs.common_spec import LinearSpec  # noqa: PLC0415

    spec = LinearSpec()
    weight = np.random.default_rng(3).standard_normal((5000, 8)).astype(np.float32)
    weight[7] = 0

    quantize(spec, weight)

    assert 80 == np.abs(spec.weight).max()
    np.testing.assert_allclose(spec.weight / spec.weight_scale[:, None], weight, atol=0.05)


def test_the_engine_gives_what_full_precision_gives_by_a_hair(weighed: Weighed) -> None:
    """What is taken before a part is made up for behind it."""
    model, weights, tokenize = weighed
    text = "What will the weather be like in Oslo?"

    encode = MODELS[model].load(partial(verify_files, MODELS[model]))

    *_, (_, last) = Layers(weights).inputs(tokenize(text))

    assert float(unit_rows(last.mean(axis=0))[0] @ encode([text])[0]) > 0.997
