"""Learns the weights by which definitions that give orders to a model are found.

    python -m benchmarks.poisoning_training --honest FILE… --out gateway/mcp/injection_weights.npz

Needs scikit-learn. `poisoning_texts.jsonl` holds the attacks, and honest texts that look like some;
honest definitions come in sets as `benchmarks.poisoning` reads them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from scipy.sparse import csr_matrix, hstack
from sklearn.linear_model import LogisticRegression

from benchmarks.data import rows
from benchmarks.poisoning import read_tools
from gateway.mcp.injection_model import (
    BITS,
    MIN_FEATURES,
    MIN_WORDS,
    count_words,
    hash_features,
    split_sentences,
)
from gateway.mcp.injection_scanner import texts_of

app = typer.Typer(add_completion=False)

TEXTS = Path(__file__).with_name("poisoning_texts.jsonl")
_MAX_RUNS = 20
"""Of one honest definition."""
Run = tuple[str, ...]
"""A sentence, or two neighbours, as the model reads them."""


@app.command()
def main(
    *,
    honest: Annotated[list[Path], typer.Option(help="Honest definitions and texts.")],
    out: Annotated[Path, typer.Option(help="The file of weights.")],
    threshold: Annotated[float, typer.Option(help="The score above which it is an attack.")] = 1.0,
    regularization: Annotated[float, typer.Option(help="Its inverse strength.")] = 30.0,
) -> None:
    """Learn the weights, and print what was learned from."""
    draw = random.Random(7)
    attacks, others = read_texts(TEXTS)
    for runs in read_runs(honest):
        others += draw.sample(runs, min(len(runs), _MAX_RUNS))
    others = list(dict.fromkeys(others))
    labels = np.repeat([1, 0], [len(attacks), len(others)])
    model = LogisticRegression(C=regularization, solver="liblinear", tol=1e-3, random_state=7)
    model.fit(matrix([*attacks, *others]), labels)
    save(out, model.coef_[0], float(model.intercept_[0]) - threshold)
    print(json.dumps({"attacks": len(attacks), "honest": len(others)}))


def read_runs(paths: Sequence[Path]) -> Iterator[list[Run]]:
    """Yield the runs of each definition in *paths*."""
    for path in paths:
        for tool in read_tools(path):
            yield list(dict.fromkeys(runs_of("\n".join(texts_of(tool)))))


def runs_of(text: str) -> Iterator[Run]:
    """Yield each sentence of *text*, and each two neighbours, that are evidence."""
    sentences = split_sentences(text)
    for run in (*((sentence,) for sentence in sentences), *pairwise(sentences)):
        if sum(map(count_words, run)) >= MIN_WORDS:
            yield run


def read_texts(path: Path) -> tuple[list[Run], list[Run]]:
    """Return the runs of attacks, and those of honest texts and of what stands around an order."""
    attacks: list[Run] = []
    honest: list[Run] = []
    for row in rows(path):
        text = str(row["text"])
        runs = list(runs_of(text))
        if row["label"] == "honest":
            honest += runs
            continue
        order = split_sentences(str(row.get("order", text)))
        found = [run for run in runs if any(_overlaps(each, order) for each in run)]
        attacks += found or [(sentence,) for sentence in order]
        honest += [run for run in runs if run not in found]
    return attacks, honest


def _overlaps(sentence: str, order: Sequence[str]) -> bool:
    return any(sentence in each or each in sentence for each in order)


def matrix(samples: Sequence[Run]) -> csr_matrix:
    """Return the features of *samples*, scaled as `score_order` scales them."""
    owner = np.repeat(np.arange(len(samples)), [len(sample) for sample in samples])
    found = hash_features([sentence for sample in samples for sentence in sample])
    blocks = []
    for (buckets, sentences), least in zip(found, MIN_FEATURES, strict=True):
        of = owner[sentences]
        counts = np.maximum(np.bincount(of, minlength=len(samples)), least)
        values = (1 / np.sqrt(counts))[of].astype(np.float32)
        blocks.append(csr_matrix((values, (of, buckets)), shape=(len(samples), 2**BITS)))
    return hstack(blocks).tocsr()


def save(path: Path, weights: np.ndarray, bias: float) -> None:
    """Write the weights as whole numbers of a byte, with their scale."""
    scale = float(np.quantile(np.abs(weights), 0.9999)) / 127
    rounded = np.clip(np.round(weights / scale), -127, 127).astype(np.int8).reshape(2, -1)
    np.savez_compressed(path, weights=rounded, scale=np.float32(scale), bias=np.float32(bias))


if __name__ == "__main__":
    app()
