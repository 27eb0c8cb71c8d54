"""The means that the embedded model is centred on, made from texts of our own.

    python -m benchmarks.background --out gateway/embed/local/means.npz

120 requests and descriptions of tools in 25 languages, none from a benchmark: what is common to
all of them tells no two tools apart. A test holds the packaged file equal to what this makes.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from gateway.embed.local.encoders import ALL_MODELS, EncoderModel, is_available, verify_files
from gateway.runtime.vectors import Vector

TEXTS = Path(__file__).with_name("background.txt")


def means(models: tuple[EncoderModel, ...] = ALL_MODELS) -> dict[str, Vector]:
    """Return each encoder's mean vector over the texts, shape (d,), by its id.

    Raises:
        RuntimeError: If an encoder does not run here.
    """
    texts = TEXTS.read_text(encoding="utf-8").splitlines()
    found: dict[str, Vector] = {}
    for model in models:
        folder = model.find_folder()
        if folder is None or not is_available(model):
            raise RuntimeError(f"{model.package} does not run here: install the extra 'local'")
        found[model.id] = model.load(partial(verify_files, model))(texts).mean(axis=0)
    return found


def main(out: Annotated[Path, typer.Option(help="Where the means go, as .npz.")]) -> None:
    """Compute the means and write them."""
    np.savez(out, allow_pickle=False, **means())


if __name__ == "__main__":
    typer.run(main)
