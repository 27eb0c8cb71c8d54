"""Where the activations of the second encoder lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.background import TEXTS
from benchmarks.middles import Layers, middles
from gateway.embed import body
from gateway.embed.e5 import Engine
from gateway.embed.models import E5, E5_FILE
from gateway.embed.weights import opened
from gateway.environment import environment
from gateway.vectors import unit_rows

_FILE = Path(body.__file__).with_name("middles.npz")


def test_the_packaged_middles_are_those_of_the_texts() -> None:
    """Every eighth of them, so near as an eighth can be."""
    with np.load(_FILE, allow_pickle=False) as packaged:
        known = {name: packaged[name].astype(np.float32) for name in packaged}

    found = middles(TEXTS.read_text(encoding="utf-8").splitlines()[::8])

    assert known.keys() == found.keys() - {"out"}
    for name, middle in known.items():
        assert float(np.corrcoef(middle, found[name])[0, 1]) > 0.97, name


def test_the_engine_gives_what_full_precision_gives_by_a_hair() -> None:
    """What is taken before a part is made up for behind it."""
    folder = E5.found()
    assert folder is not None
    weights = opened(folder / E5_FILE)
    engine, layers = Engine(folder / E5_FILE, environment().encoder_dir), Layers(weights)
    text = "Wie wird das Wetter in Oslo?"
    pieces = [weights.start, *engine.pieces(text), weights.end]

    last = dict(layers.inputs(pieces))["out"]

    assert float(unit_rows(last.mean(axis=0))[0] @ engine([text])[0]) > 0.998
