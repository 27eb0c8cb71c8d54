"""The vectors of the cohort, made from texts of our own.

    python -m benchmarks.cohort --out gateway/embed/cohort.npz

What tools of everyday subjects say of themselves, none from a benchmark. A test holds the packaged
file near to what this makes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from gateway.embed.cohort import Cohort
from gateway.embed.local.embedder import LocalEmbedder
from gateway.embed.protocol import Embedder
from gateway.runtime.vectors import Matrix

TEXTS = Path(__file__).with_name("cohort.txt")


def texts() -> list[str]:
    """Give what each tool of the cohort says of itself."""
    return TEXTS.read_text(encoding="utf-8").splitlines()


def vectors(embedder: Embedder, lines: Sequence[str]) -> Matrix:
    """Embed *lines* as documents, shape (c, d)."""
    size = embedder.info.limits.max_texts

    async def embed() -> Matrix:
        parts = [lines[at : at + size] for at in range(0, len(lines), size)]
        return np.concatenate(
            [(await embedder.embed(part, role="document")).vectors for part in parts]
        )

    return asyncio.run(embed())


def main(out: Annotated[Path, typer.Option(help="Where the vectors go, as .npz.")]) -> None:
    """Embed the cohort by the local model and write it, in half precision."""
    embedder = LocalEmbedder()
    told, model = Cohort.of(vectors(embedder, texts())), embedder.info.model_id
    halves = {"axes": told.axes, "places": told.places}
    known = {f"{model}.{name}": rows.astype(np.float16) for name, rows in halves.items()}
    np.savez_compressed(out, allow_pickle=False, **known)


if __name__ == "__main__":
    typer.run(main)
