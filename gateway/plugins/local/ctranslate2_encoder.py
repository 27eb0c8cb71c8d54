"""Conversion of transformer encoders to 8 bits, and encoding with CTranslate2.

* Each row of activations is scaled separately, and only windows of the same padded length share a
  pass. So a vector does not depend on the other texts in the pass.
* A few activations are ten times as large as the others, which would use up the 8-bit range. So an
  offset, the usual input of a layer (``activation_offsets.npz``, from
  ``benchmarks.activation_offsets``), is subtracted by a norm and added by the next projection.
* Weights use at most 80 of 127 steps, so that the sum of two products rarely exceeds 16 bits, where
  older processors clip it.

Converted files are cached in a folder, and written again if a checksum is wrong or other users may
write them.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import shutil
import tempfile
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np

from gateway.options.environment import environment
from gateway.plugins.local.formats import Affine, TransformerWeights
from gateway.runtime.atomic_file import make_private_folder
from gateway.runtime.vectors import Matrix, Vector

EncodeWindows = Callable[[Sequence[Sequence[int]]], Matrix]
"""Function that returns the mean of the last layer over each window of tokens, shape (n, d)."""
OFFSETS_FILE = Path(__file__).with_name("activation_offsets.npz")
"""Activation offsets of each part of each layer, keyed by model."""
MAX_CONCURRENT = 2
"""Maximum number of threads that encode at the same time with shared weights."""
_WEIGHT_STEPS, _EMBEDDING_STEPS = 80.0, 127.0
"""8-bit steps from 0 to the largest weight of a row, for projections and embeddings. Embeddings are
not multiplied, so they may use the whole range."""
_PADDING = 8
"""Divisor of the padded length of windows, in tokens."""
_ROWS = 4096
"""Number of weight rows converted at a time. The whole vocabulary would take a gigabyte."""
_CHUNK = 2**20
"""Number of bytes read at a time for a checksum."""
_SUMS_FILE = "crc32"
_MODE, _FILE_MODE = 0o755, 0o644
"""Permissions of cached folders and files, which other users may read."""
_OTHERS_WRITE = 0o022
_ABANDONED_S = 24 * 60 * 60.0
"""Seconds after which a temporary folder counts as abandoned by a killed process."""
_ZERO = np.zeros(1, dtype=np.float32)
_VOCABULARY = ("<unk>", "<s>", "</s>")
"""Token names that the engine requires. Other tokens are passed as numbers."""


def conversion_folder(name: str) -> Path:
    """Return the cache folder for a converted encoder, which may not exist yet.

    Args:
        name: Name and version of the encoder. A digest of the engine's version and the offsets is
            appended.
    """
    from ctranslate2 import __version__  # noqa: PLC0415  (an optional extra)

    digest = hashlib.sha256(OFFSETS_FILE.read_bytes() + __version__.encode())
    return environment().encoder_dir / f"{name}-{digest.hexdigest()[:8]}"


def load_encoder(folder: Path) -> EncodeWindows:
    """Load the encoder that `write_encoder` wrote into *folder*.

    At most `MAX_CONCURRENT` passes may run at the same time, each on one core.
    """
    from ctranslate2 import Encoder, StorageView  # noqa: PLC0415  (an optional extra)

    encoder = Encoder(
        str(folder),
        device="cpu",
        compute_type="int8",
        inter_threads=MAX_CONCURRENT,
        intra_threads=1,
    )

    def encode(windows: Sequence[Sequence[int]]) -> Matrix:
        by_length: defaultdict[int, list[int]] = defaultdict(list)
        for index, window in enumerate(windows):
            by_length[-(-len(window) // _PADDING) * _PADDING].append(index)
        means: dict[int, Vector] = {}
        for length, indices in by_length.items():
            lengths = np.array([len(windows[index]) for index in indices], dtype=np.int32)
            tokens = np.zeros((len(indices), length), dtype=np.int32)
            for row, index in zip(tokens, indices, strict=True):
                row[: len(windows[index])] = windows[index]
            views = map(StorageView.from_array, (tokens, lengths))
            encoded = np.asarray(encoder.forward_batch(*views).last_hidden_state)
            for rows, index in zip(encoded, indices, strict=True):
                means[index] = rows[: len(windows[index])].mean(axis=0)
        return np.stack([means[index] for index in range(len(windows))])

    return encode


def write_encoder(weights: TransformerWeights, model: str, folder: Path) -> None:
    """Write *weights* into *folder* in the format of CTranslate2.

    Args:
        weights: Weights of all layers.
        model: Name of the model in `OFFSETS_FILE`.
        folder: Empty folder.
    """
    from ctranslate2.specs import TransformerEncoderModelSpec  # noqa: PLC0415

    unknown, start, end = _VOCABULARY
    spec = TransformerEncoderModelSpec(_encoder_spec(weights, model))
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = unknown, start, end
    spec.config.layer_norm_epsilon = weights.epsilon
    spec.register_vocabulary([str(number) for number in range(len(weights.token_embeddings))])
    spec.validate()
    spec.save(str(folder))
    # The engine needs a vocabulary. Reading all its names would take longer than the weights.
    (folder / "vocabulary.json").write_text(json.dumps(_VOCABULARY), encoding="utf-8")


def _encoder_spec(weights: TransformerWeights, model: str) -> Any:
    from ctranslate2.specs import TransformerEncoderSpec, common_spec  # noqa: PLC0415

    count = len(weights.layers)
    encoder = TransformerEncoderSpec(
        count,
        weights.heads,
        pre_norm=False,
        activation=common_spec.Activation.GELU,
        layernorm_embedding=True,
    )
    encoder.scale_embeddings = False
    quantize(encoder.embeddings[0], weights.token_embeddings, _EMBEDDING_STEPS)
    encoder.position_encodings.encodings = weights.position_embeddings
    with np.load(OFFSETS_FILE, allow_pickle=False) as archive:
        attention, inner = (
            [archive[f"{model}.{number}.{part}"].astype(np.float32) for number in range(count)]
            for part in ("attention", "inner")
        )
    attention.append(_ZERO)
    # Each norm subtracts an offset, which the next projection adds again.
    _set_norm(encoder.layernorm_embedding, weights.embedding_norm, attention[0])
    for number, (spec, layer) in enumerate(zip(encoder.layer, weights.layers, strict=True)):
        offset, inner_offset = attention[number], inner[number]
        _set_linear(spec.self_attention.linear[0], layer.attention, input_offset=offset)
        _set_linear(spec.self_attention.linear[1], layer.attention_output, output_offset=offset)
        _set_norm(spec.self_attention.layer_norm, layer.attention_norm, inner_offset)
        _set_linear(spec.ffn.linear_0, layer.feed_forward, input_offset=inner_offset)
        _set_linear(spec.ffn.linear_1, layer.output, output_offset=inner_offset)
        _set_norm(spec.ffn.layer_norm, layer.output_norm, attention[number + 1])
    return encoder


def _set_norm(spec: Any, norm: Affine, offset: Vector) -> None:
    spec.gamma, spec.beta = np.array(norm.weight), np.asarray(norm.bias - offset)


def _set_linear(
    spec: Any, linear: Affine, *, input_offset: Vector = _ZERO, output_offset: Vector = _ZERO
) -> None:
    """Write *linear* into *spec*, which adds the offsets to its input and output."""
    missing = linear.weight @ input_offset if input_offset is not _ZERO else _ZERO
    spec.bias = np.asarray(linear.bias + missing + output_offset, dtype=np.float32)
    quantize(spec, linear.weight, _WEIGHT_STEPS)


def quantize(spec: Any, weight: Matrix, steps: float = _WEIGHT_STEPS) -> None:
    """Write *weight* into *spec* as 8-bit integers, scaled by the largest value of each row."""
    largest = np.maximum(weight.max(axis=1), -weight.min(axis=1))
    largest[largest == 0] = steps
    scale = np.asarray(steps / largest, dtype=np.float32)
    spec.weight, spec.weight_scale = np.empty(weight.shape, dtype=np.int8), scale
    for start in range(0, len(weight), _ROWS):
        rows = slice(start, start + _ROWS)
        spec.weight[rows] = np.rint(weight[rows] * scale[rows, None])


def cached_conversion(convert: Callable[[Path], None], folder: Path) -> Path:
    """Return a folder with converted files.

    It is the cache folder or, if that is not writable, a temporary folder of this process.

    Args:
        convert: Function that writes the files into a folder.
        folder: Cache folder.
    """
    if _is_intact(folder):
        return folder
    fresh = _convert_to_temporary(convert, folder)
    if not _is_intact(folder):
        # Files that another process has opened remain readable for it.
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            fresh.replace(folder)
    if not _is_intact(folder):
        atexit.register(shutil.rmtree, fresh, ignore_errors=True)
        return fresh
    shutil.rmtree(fresh, ignore_errors=True)
    return folder


def _convert_to_temporary(convert: Callable[[Path], None], folder: Path) -> Path:
    try:
        make_private_folder(folder.parent)
        _remove_abandoned(folder)
        fresh = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    except OSError:
        fresh = Path(tempfile.mkdtemp(prefix=f"{folder.name}-"))
    with ExitStack() as on_failure:
        on_failure.callback(shutil.rmtree, fresh, ignore_errors=True)
        convert(fresh)
        sums = [f"{_checksum(path)}  {path.name}\n" for path in sorted(fresh.iterdir())]
        (fresh / _SUMS_FILE).write_text("".join(sums), encoding="ascii")
        for path in fresh.iterdir():
            path.chmod(_FILE_MODE)
        fresh.chmod(_MODE)
        on_failure.pop_all()
    return fresh


def _remove_abandoned(folder: Path) -> None:
    for other in folder.parent.glob(f"{folder.name}-*"):
        # Another process may delete the folder too.
        with suppress(OSError):
            if other.stat().st_mtime < time.time() - _ABANDONED_S:
                shutil.rmtree(other)


def _is_intact(folder: Path) -> bool:
    try:
        lines = (folder / _SUMS_FILE).read_text(encoding="ascii").splitlines()
        expected = {name: checksum for checksum, name in (line.split("  ") for line in lines)}
        paths = (folder, *folder.iterdir())
        if any(path.stat().st_mode & _OTHERS_WRITE for path in paths):
            return False
        names = {path.name for path in paths[1:]} - {_SUMS_FILE}
        return bool(names) and expected == {name: _checksum(folder / name) for name in names}
    except (OSError, ValueError):
        return False


def _checksum(path: Path) -> str:
    checksum = 0
    with path.open("rb") as file:
        while part := file.read(_CHUNK):
            checksum = zlib.crc32(part, checksum)
    return f"{checksum:08x}"
