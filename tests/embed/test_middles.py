"""Where the activations of the encoders with layers lie."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from benchmarks.background import TEXTS
from benchmarks.middles import ENCODERS, Layers, middles
from gateway.embed import body, e5, minilm
from gateway.embed.models import E5, E5_FILE, MINILM, MINILM_FILE, Model
from gateway.options.environment import environment
from gateway.runtime.vectors import unit_rows

_FILE = Path(body.__file__).with_name("middles.npz")


ENGINES: Mapping[str, tuple[Model, type[e5.Engine | minilm.Engine], str]] = {
    e5.MODEL: (E5, e5.Engine, E5_FILE),
    minilm.MODEL: (MINILM, minilm.Engine, MINILM_FILE),
}


def engine_of(model: str) -> e5.Engine | minilm.Engine:
    known, engine, file = ENGINES[model]
    folder = known.found()
    assert folder is not None
    return engine(folder / file, environment().encoder_dir)


@pytest.mark.parametrize("model", ENCODERS)
def test_the_packaged_middles_are_those_of_the_texts(model: str) -> None:
    """Every fourth of them, so near as a fourth can be."""
    with np.load(_FILE, allow_pickle=False) as packaged:
        known = {name: packaged[name].astype(np.float32) for name in packaged}

    found = middles(*ENCODERS[model](), TEXTS.read_text(encoding="utf-8").splitlines()[::4])

    assert {name for name in known if name.startswith(model)} == {f"{model}.{n}" for n in found}
    for name, middle in found.items():
        assert float(np.corrcoef(middle, known[f"{model}.{name}"])[0, 1]) > 0.95, name


def test_weights_leave_room_for_the_sum_of_two_products(tmp_path: Path) -> None:
    """Older processors cut it off at 16 bits: a text would have another vector there."""
    from ctranslate2.specs.common_spec import LinearSpec  # noqa: PLC0415

    spec = LinearSpec()
    weight = np.random.default_rng(3).standard_normal((5000, 8)).astype(np.float32)
    weight[7] = 0

    body._quantize(spec, weight, body._STEPS)  # noqa: SLF001  (what is written is read by the engine alone)

    assert 80 == np.abs(spec.weight).max()
    np.testing.assert_allclose(spec.weight / spec.weight_scale[:, None], weight, atol=0.05)


@pytest.mark.parametrize("model", ENCODERS)
def test_the_engine_gives_what_full_precision_gives_by_a_hair(model: str) -> None:
    """What is taken before a part is made up for behind it."""
    network, split = ENCODERS[model]()
    text = "What will the weather be like in Oslo?"

    *_, (_, last) = Layers(network).inputs(split(text))

    assert float(unit_rows(last.mean(axis=0))[0] @ engine_of(model)([text])[0]) > 0.997
