"""The layers of an encoder in 8 bits, and the engine that runs them (CTranslate2).

* Each row of activations is scaled by itself, and windows share a pass only with windows that are
  padded to the same length. So a vector is the same to the last bit, whatever else was in the pass;
  otherwise 8 bits would make large differences of the smallest ones.
* The input of a layer is expressed as its difference from its usual value (`middles.npz`). A few
  of its numbers are ten times the others, always on the same side; 8 bits that reach so far would
  leave few steps to the rest. A norm gives that much less and the part after it adds it again: in
  full precision nothing would change.
* Weights take at most 80 of 127 steps, so that the sum of two products hardly ever leaves 16 bits.
  Older processors clip it there, and a text would have another vector on each kind.
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

from gateway.embed.network import Linear, Network, Norm
from gateway.runtime.vectors import Matrix, Vector

Body = Callable[[Sequence[Sequence[int]]], Matrix]
"""Windows of pieces -> the mean of what the last layer makes of each, shape (n, d)."""
_PRECISION = "int8"
_STEPS, _WORD_STEPS = 80.0, 127.0
"""Steps from 0 to a row's largest weight. Those of words may take all: they are looked up, never
multiplied."""
_MIDDLES = Path(__file__).with_name("middles.npz")
"""The usual input of each part of a layer, by model; ``benchmarks.middles`` makes it."""
PASSES = 2
"""How many threads may ask at once; they share the weights."""
_FILLED = 8
"""Windows are padded to a multiple of so many pieces."""
_ROWS = 4096
"""How many rows of words are made at a time: all at once would take a gigabyte."""
_ZERO = np.zeros(1, dtype=np.float32)
_NAMES = ("<unk>", "<s>", "</s>")
"""The engine's vocabulary: pieces go in as numbers, so that it needs only these names."""


def folder_in(cache: Path, folders: str, version: int) -> Path:
    """Give the folder in *cache* where `write_body` writes, whether it is there or not.

    Args:
        cache: Where such folders are kept.
        folders: The pattern of the folders of all versions, with a star at its end.
        version: Of what is made. The engine's version and the middles are part of the name too.
    """
    return cache / f"{folders[:-1]}{version}-{_made_by()}"


def _made_by() -> str:
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
        found: dict[int, Vector] = {}
        for length, places in _alike(windows).items():
            rows = last_layer([windows[place] for place in places], length)
            for place, row in zip(places, rows, strict=True):
                found[place] = row[: len(windows[place])].mean(axis=0)
        return np.stack([found[place] for place in range(len(windows))])

    return run


def filled(pieces: int) -> int:
    """Give the length that a window of so many *pieces* is padded to."""
    return -(-pieces // _FILLED) * _FILLED


def _alike(windows: Sequence[Sequence[int]]) -> Mapping[int, Sequence[int]]:
    """Give the places of the windows that are padded to one length, by that length."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for place, window in enumerate(windows):
        found[filled(len(window))].append(place)
    return found


def write_body(network: Network, model: str, folder: Path) -> None:
    """Write the layers of *network* into *folder*, as the engine reads them.

    Args:
        network: The layers.
        model: The name under which its middles are packaged.
        folder: An empty one.
    """
    from ctranslate2.specs import TransformerEncoderModelSpec  # noqa: PLC0415

    unknown, start, end = _NAMES
    spec = TransformerEncoderModelSpec(_encoder(network, _middles(model)))
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = unknown, start, end
    spec.config.layer_norm_epsilon = network.epsilon
    spec.register_vocabulary([str(number) for number in range(len(network.words))])
    spec.validate()
    spec.save(str(folder))
    # A quarter of a million names would cost more to read than the weights.
    (folder / "vocabulary.json").write_text(json.dumps(_NAMES), encoding="utf-8")


def _middles(model: str) -> Mapping[str, Vector]:
    with np.load(_MIDDLES, allow_pickle=False) as told:
        names = [name for name in told if name.startswith(f"{model}.")]
        return {name.removeprefix(f"{model}."): told[name].astype(np.float32) for name in names}


def _encoder(network: Network, middles: Mapping[str, Vector]) -> Any:
    from ctranslate2.specs import TransformerEncoderSpec, common_spec  # noqa: PLC0415

    encoder = TransformerEncoderSpec(
        len(network.layers),
        network.heads,
        pre_norm=False,
        activation=common_spec.Activation.GELU,
        layernorm_embedding=True,
    )
    encoder.scale_embeddings = False
    _quantize(encoder.embeddings[0], network.words, _WORD_STEPS)
    encoder.position_encodings.encodings = network.places
    # Each norm gives less by a middle; the part that reads it adds what is missing.
    less = [middles.get(f"{number}.attention", _ZERO) for number in range(len(network.layers))]
    _norm(encoder.layernorm_embedding, network.begin, less[0])
    for number, (spec, layer) in enumerate(zip(encoder.layer, network.layers, strict=True)):
        seen, inner = less[number], middles.get(f"{number}.inner", _ZERO)
        _linear(spec.self_attention.linear[0], layer.attention, taken=seen)
        _linear(spec.self_attention.linear[1], layer.joined, added=seen)
        _norm(spec.self_attention.layer_norm, layer.between, inner)
        _linear(spec.ffn.linear_0, layer.inner, taken=inner)
        _linear(spec.ffn.linear_1, layer.outer, added=inner)
        _norm(spec.ffn.layer_norm, layer.end, less[number + 1] if number + 1 < len(less) else _ZERO)
    return encoder


def _norm(spec: Any, norm: Norm, less: Vector) -> None:
    spec.gamma, spec.beta = np.array(norm.weight), np.asarray(norm.bias - less)


def _linear(spec: Any, linear: Linear, *, taken: Vector = _ZERO, added: Vector = _ZERO) -> None:
    """Write *linear* for an input that lacks *taken*, with *added* on top of its output."""
    missing = linear.weight @ taken if taken is not _ZERO else _ZERO
    spec.bias = np.asarray(linear.bias + missing + added, dtype=np.float32)
    _quantize(spec, linear.weight, _STEPS)


def _quantize(spec: Any, weight: Matrix, steps: float) -> None:
    """Write *weight* in 8 bits, each row by its largest number."""
    most = np.maximum(weight.max(axis=1), -weight.min(axis=1))
    most[most == 0] = steps
    scale = np.asarray(steps / most, dtype=np.float32)
    spec.weight, spec.weight_scale = np.empty(weight.shape, dtype=np.int8), scale
    for at in range(0, len(weight), _ROWS):
        rows = slice(at, at + _ROWS)
        spec.weight[rows] = np.rint(weight[rows] * scale[rows, None])
