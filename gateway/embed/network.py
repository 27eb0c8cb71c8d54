"""The layers of an encoder like BERT, as the files of several models hold them. Values only.

Devlin et al. 2018 (arXiv 1810.04805): words and places added, then layers of attention and of an
inner part, a norm after each. In full precision; ``gateway.embed.body`` runs them in 8 bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.runtime.vectors import Matrix, Vector


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Linear:
    """Weights of shape (out, in), and what is added, shape (out,)."""

    weight: Matrix
    bias: Vector


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Norm:
    """What a norm multiplies by and adds, shape (d,) each."""

    weight: Vector
    bias: Vector


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layer:
    """One layer, with d numbers for each piece."""

    attention: Linear
    """The projections of query, key and value, one below the other, shape (3 d, d)."""
    joined: Linear
    """The projection of what the heads give, shape (d, d)."""
    between: Norm
    inner: Linear
    """Into the inner part, shape (i, d)."""
    outer: Linear
    """Out of the inner part, shape (d, i)."""
    end: Norm


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Network:
    """An encoder."""

    heads: int
    epsilon: float
    """What a norm adds to the variance."""
    words: Matrix
    """One row for each piece, shape (pieces, d)."""
    places: Matrix
    """What is added at each place of a text, shape (places, d)."""
    begin: Norm
    layers: tuple[Layer, ...]

    @property
    def width(self) -> int:
        """How many numbers a piece has, d."""
        return len(self.begin.weight)
