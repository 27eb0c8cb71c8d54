"""Arrays and JSON in one file, which is mapped into memory instead of read.

* The file is written beside its place, then moved there: it is always the old one or the new one.
* Every part has a checksum, and so has the list of parts: a torn or changed file is not used.
* Nothing in it is ever run: it holds numbers, and texts as JSON.
"""

from __future__ import annotations

import hashlib
import json
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from os import urandom
from pathlib import Path
from typing import Any

import numpy as np

from gateway.errors import StoreError
from graphs.joined import CUT, Joined, joined

_MAGIC = b"tgpack03"
_DIGEST = 16
_START = len(_MAGIC) + 8 + _DIGEST
_ALIGNED = 64
_WORDS = "words"
_TEXTS = "cut out of"
_CUTS = ".cuts"
_MANY = 32
"""So many texts are sooner cut out of one than parsed."""
_SUMMED = 512
"""How many numbers of eight bytes are summed to one: a page of memory."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pack:
    """What a file holds."""

    words: Any
    """Whatever is kept as JSON."""
    arrays: Mapping[str, np.ndarray]
    """Read-only; mapped where they come from a file."""


def write(path: Path, pack: Pack) -> None:
    """Write *pack* to *path*, whose folder is made if need be.

    Raises:
        OSError: It cannot be written; what was there stays.
    """
    texts: dict[str, np.ndarray] = {}
    words = _bytes(json.dumps(_lifted(pack.words, texts)))
    arrays = {_WORDS: words, **texts, **pack.arrays}
    parts: dict[str, object] = {}
    at = 0
    for name, array in arrays.items():
        parts[name] = [np.lib.format.dtype_to_descr(array.dtype), array.shape, at, _sum(array)]
        at += -(-array.nbytes // _ALIGNED) * _ALIGNED
    header = json.dumps({"parts": parts, "size": at}).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}-{urandom(6).hex()}")
    try:
        with draft.open("wb") as file:
            file.write(_MAGIC + len(header).to_bytes(8, "little") + _digest(header) + header)
            file.write(bytes(-file.tell() % _ALIGNED))
            for array in arrays.values():
                file.write(np.ascontiguousarray(array).tobytes())
                file.write(bytes(-file.tell() % _ALIGNED))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def read(path: Path) -> Pack | None:
    """Open the pack at *path*; None if there is none.

    Raises:
        StoreError: It cannot be read, or is not as it was written.
    """
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return _read(mapped)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise StoreError(f"saved index {path.name!r} is not as it was written: {error}") from error


def _read(mapped: mmap.mmap) -> Pack:
    size = int.from_bytes(mapped[len(_MAGIC) : len(_MAGIC) + 8], "little")
    digest, header = mapped[_START - _DIGEST : _START], mapped[_START : _START + size]
    if mapped[: len(_MAGIC)] != _MAGIC or _digest(header) != digest:
        raise ValueError("another format, or a torn one")
    told = json.loads(header)
    body = np.frombuffer(mapped, dtype=np.uint8)[-(-(_START + size) // _ALIGNED) * _ALIGNED :]
    if len(body) != told["size"]:
        raise ValueError(f"it has {len(body)} bytes, not {told['size']}")
    arrays = {name: _array(body, name, *part) for name, part in told["parts"].items()}
    words = json.loads(arrays.pop(_WORDS).tobytes())
    return Pack(words=_lowered(words, arrays), arrays=arrays)


def _lifted(words: Any, texts: dict[str, np.ndarray]) -> Any:
    """Give *words* with each long list of texts in a mapping replaced by the name of a part."""
    if isinstance(words, Mapping):
        if words.keys() == {_TEXTS}:
            # Not the name of a part, which is a text.
            return {_TEXTS: [_lifted(words[_TEXTS], texts)]}
        return {name: _lifted(each, texts) for name, each in words.items()}
    if not isinstance(words, list | tuple | Joined):
        return words
    many = len(words) >= _MANY
    if not many or not all(isinstance(each, str) and CUT not in each for each in words):
        return list(words)
    name = f"{_WORDS}.{len(texts) // 2}"
    texts[name], texts[name + _CUTS] = joined(words)
    return {_TEXTS: name}


def _lowered(words: Any, arrays: dict[str, np.ndarray]) -> Any:
    if not isinstance(words, dict):
        return words
    if words.keys() == {_TEXTS}:
        told = words[_TEXTS]
        if isinstance(told, list):
            return {_TEXTS: _lowered(told[0], arrays)}
        return Joined(arrays.pop(told), arrays.pop(told + _CUTS))
    return {name: _lowered(each, arrays) for name, each in words.items()}


def _bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)


def _array(body: np.ndarray, name: str, descr: Any, shape: list[int], at: int, told: str) -> Any:
    kind = np.dtype(descr if isinstance(descr, str) else [tuple(each) for each in descr])
    end = at + kind.itemsize * prod(shape)
    array = body[at:end].view(kind).reshape(shape)
    if _sum(array) != told:
        raise ValueError(f"the checksum of {name!r} is wrong")
    return array


def _digest(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=_DIGEST).digest()


def _sum(array: np.ndarray) -> str:
    """Give a digest of the sums of all pages, in their order; it is as fast as memory."""
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    whole = len(flat) // (8 * _SUMMED) * 8 * _SUMMED
    pages = flat[:whole].view(np.uint64).reshape(-1, _SUMMED)
    sums = np.add.reduce(pages, axis=1)
    return _digest(sums.tobytes() + flat[whole:].tobytes()).hex()
