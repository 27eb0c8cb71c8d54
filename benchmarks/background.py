"""The means that the embedded model is centred on, made from texts of our own.

    python -m benchmarks.background --out gateway/plugins/local/means.npz

120 requests and descriptions of tools in 25 languages, none from a benchmark: what is common to
all of them tells no two tools apart. The second encoder also has a mean for each of 31 languages,
over 24 short requests that say the same in each. A test holds the packaged file equal to what this
makes.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from gateway.plugins.local.encoders import ALL_MODELS, E5, EncoderModel, is_available, verify_files
from gateway.runtime.vectors import Vector

TEXTS = Path(__file__).with_name("background.txt")
LANGUAGES = Path(__file__).with_name("languages.txt")
"""Blocks of requests, each with a heading: ``[code]``."""


def means(models: tuple[EncoderModel, ...] = ALL_MODELS) -> dict[str, Vector]:
    """Return mean vectors of shape (d,): each encoder's by its id, each language's by its code.

    Raises:
        RuntimeError: If an encoder does not run here.
    """
    texts = TEXTS.read_text(encoding="utf-8").splitlines()
    found: dict[str, Vector] = {}
    for model in models:
        folder = model.find_folder()
        if folder is None or not is_available(model):
            raise RuntimeError(f"{model.package} does not run here: install the extra 'local'")
        encode = model.load(partial(verify_files, model))
        found[model.id] = encode(texts).mean(axis=0)
        if model is E5:
            found |= {code: encode(block).mean(axis=0) for code, block in requests().items()}
    return found


def requests() -> dict[str, list[str]]:
    """Return the short requests of each language, keyed by its ISO 639-1 code."""
    blocks = LANGUAGES.read_text(encoding="utf-8").removeprefix("[").split("\n[")
    parts = (block.partition("]\n") for block in blocks)
    return {code: lines.splitlines() for code, _, lines in parts}


def main(out: Annotated[Path, typer.Option(help="Where the means go, as .npz.")]) -> None:
    """Compute the means and write them."""
    np.savez(out, allow_pickle=False, **means())


if __name__ == "__main__":
    typer.run(main)
