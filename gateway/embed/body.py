"""The layers of multilingual-e5 in 8 bits, and the engine that runs them (CTranslate2).

* Each row of activations is scaled by itself, and windows go together only with those that are
  filled up to the same length. So a vector is the same to the last bit, whatever else was in the
  pass: 8 bits make a large difference of the smallest one.
* What goes into a layer is told from its usual value (`middles.npz`): a few of its numbers are ten
  times the others, always on the same side, and 8 bits between them would leave few to the rest.
  A norm gives that much less, and the part behind it that much more: in full precision nothing
  would change.
* The engine releases the interpreter's lock.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gateway.embed.weights import Weights, widened
from gateway.vectors import Matrix, Vector

Body = Callable[[Sequence[Sequence[int]]], Matrix]
"""Windows of pieces -> the mean of what the last layer makes of each, shape (n, 384)."""
WIDTH = 384
"""Numbers of one piece, and of a vector."""
_INNER = 4 * WIDTH
_PRECISION = "int8"
_MIDDLES = Path(__file__).with_name("middles.npz")
"""Where what goes into each part of a layer lies; ``benchmarks.middles`` makes it."""
PASSES = 2
"""So many threads may ask at once; they share the weights."""
_FILLED = 8
"""Windows are filled up to a multiple of so many pieces."""
_NAMES = ("<unk>", "<s>", "</s>")
"""Pieces go in as numbers: the engine is told of no more than these."""


def made_by() -> str:
    """Name what `write_body` writes: the engine's version and the middles go into it."""
    from ctranslate2 import __version__  # noqa: PLC0415  (an optional extra)

    told = hashlib.sha256(_MIDDLES.read_bytes())
    told.update(__version__.encode())
    return told.hexdigest()[:8]


def run_body(folder: Path) -> Body:
    """Load what `write_body` wrote; each pass runs on one core, and `PASSES` of them at once."""
    from ctranslate2 import Encoder, StorageView  # noqa: PLC0415  (an optional extra)

    encoder = Encoder(
        str(folder),
        device="cpu",
        compute_type=_PRECISION,
        inter_threads=PASSES,
        intra_threads=1,
    )

    def last_layer(windows: Sequence[Sequence[int]], length: int) -> Matrix:
        filled = np.zeros((len(windows), length), dtype=np.int32)
        for row, window in zip(filled, windows, strict=True):
            row[: len(window)] = window
        ends = np.array([len(window) for window in windows], dtype=np.int32)
        given = map(StorageView.from_array, (filled, ends))
        rows: Matrix = np.asarray(encoder.forward_batch(*given).last_hidden_state)
        return rows

    def run(windows: Sequence[Sequence[int]]) -> Matrix:
        found = np.empty((len(windows), WIDTH), dtype=np.float32)
        for length, places in _alike(windows).items():
            rows = last_layer([windows[place] for place in places], length)
            for place, row in zip(places, rows, strict=True):
                found[place] = row[: len(windows[place])].mean(axis=0)
        return found

    return run


def _alike(windows: Sequence[Sequence[int]]) -> Mapping[int, Sequence[int]]:
    """Give the places of windows that are filled up to one length, by that length."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for place, window in enumerate(windows):
        found[-(-len(window) // _FILLED) * _FILLED].append(place)
    return found


def write_body(weights: Weights, folder: Path) -> None:
    """Write the layers of *weights* into *folder*, as the engine reads them."""
    from ctranslate2.specs import TransformerEncoderModelSpec  # noqa: PLC0415

    unknown, start, end = _NAMES
    spec = TransformerEncoderModelSpec(_encoder(weights))
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = unknown, start, end
    spec.config.layer_norm_epsilon = weights.epsilon
    spec.register_vocabulary([str(number) for number in range(len(weights.scores))])
    spec.validate()
    spec.optimize(quantization=_PRECISION)
    spec.save(str(folder))
    # A quarter of a million names would cost more to read than the weights.
    (folder / "vocabulary.json").write_text(json.dumps(_NAMES), encoding="utf-8")


def _encoder(weights: Weights) -> Any:
    from ctranslate2.specs import TransformerEncoderSpec, common_spec  # noqa: PLC0415

    encoder = TransformerEncoderSpec(
        weights.layers,
        weights.heads,
        pre_norm=False,
        activation=common_spec.Activation.GELU,
        layernorm_embedding=True,
    )
    encoder.scale_embeddings = False
    # There is one type of token; what is added to each is added to its place.
    kind = weights.vector("emb.type")[:WIDTH]
    places = weights.vector("emb.pos").reshape(-1, WIDTH) + kind
    words = weights.blocks("emb.word", WIDTH)[: len(weights.scores)]
    encoder.embeddings[0].weight = widened(words)
    encoder.position_encodings.encodings = places
    _scale(encoder.layernorm_embedding, weights, "emb.ln")
    with np.load(_MIDDLES, allow_pickle=False) as told:
        middles = {name: told[name].astype(np.float32) for name in told}
    before = encoder.layernorm_embedding
    for number, layer in enumerate(encoder.layer):
        at = f"l{number}."
        seen, inner = layer.self_attention, layer.ffn
        _linear(seen.linear[0], weights, *(f"{at}{part}" for part in "qkv"))
        _linear(seen.linear[1], weights, f"{at}ao")
        _scale(seen.layer_norm, weights, f"{at}aln")
        _linear(inner.linear_0, weights, f"{at}fi")
        _linear(inner.linear_1, weights, f"{at}fo", width=_INNER)
        _scale(inner.layer_norm, weights, f"{at}oln")
        _shift(middles[f"{at}qkv"], before, *seen.linear)
        _shift(middles[f"{at}fi"], seen.layer_norm, inner.linear_0, inner.linear_1)
        before = inner.layer_norm
    return encoder


def _shift(middle: Vector, norm: Any, into: Any, out: Any) -> None:
    """Take *middle* from what *norm* gives; *into* makes up for it, and *out* for what is added."""
    norm.beta = norm.beta - middle
    into.bias = into.bias + into.weight @ middle
    out.bias = out.bias + middle


def _linear(spec: Any, weights: Weights, *names: str, width: int = WIDTH) -> None:
    rows = [widened(weights.blocks(f"{name}.w", width)) for name in names]
    spec.weight = np.concatenate(rows)
    spec.bias = np.concatenate([weights.vector(f"{name}.b") for name in names])


def _scale(spec: Any, weights: Weights, name: str) -> None:
    spec.gamma, spec.beta = (np.array(weights.vector(f"{name}.{part}")) for part in "wb")
