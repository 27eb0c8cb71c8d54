"""Protocol of embedders, their limits and answers, and creation of an embedder by name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from gateway.errors import ConfigError, MissingExtraError
from gateway.options.search import check_strategy
from gateway.options.validation import check_members
from gateway.runtime.model_endpoint import ModelEndpoint
from gateway.runtime.vectors import Matrix
from gateway.types import Strategy

log = logging.getLogger("gateway")
Role = Literal["document", "query"]
"""Role of a text. Some models treat documents and queries differently."""
_REFUSAL_STATUSES = frozenset({400, 413, 422})
"""HTTP statuses by which a service refuses texts. Others refuse the caller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingLimits:
    """Limits of one request to an embedder."""

    max_texts: int = 2048
    max_chars: int = 24_000
    """Maximum length of a text in characters (about 8,000 English tokens); the rest is cut."""
    max_request_chars: int = 600_000
    """Maximum length of all texts of a request together, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """An embedder's answer to one request."""

    vectors: Matrix
    """Vectors in the order of the texts. Shape: (texts, dimensions), float32."""
    tokens: int | None = None
    """Number of input tokens of the request, as the model counted them; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderInfo:
    """Identity of an embedder, and limits of its requests."""

    model_id: str
    """Id of the model. It contains the version and all settings that change a vector."""
    provider: str
    """Name of the provider in telemetry, such as ``openai`` or ``local``."""
    dimensions: int | None = None
    """Length of the vectors; None if unknown before the first answer."""
    limits: EmbeddingLimits = field(default_factory=EmbeddingLimits)
    endpoint: ModelEndpoint | None = field(default=None, compare=False, repr=False)
    """Model and service for telemetry; None uses ``model_id`` and ``provider``."""


@runtime_checkable
class Embedder(Protocol):
    """Converts texts to vectors. May be called from any task of the gateway's event loop.

    Example:
        >>> import numpy as np
        >>> class LengthEmbedder:
        ...     info = EmbedderInfo(model_id="length", provider="local", dimensions=2)
        ...
        ...     async def embed(self, texts, *, role):
        ...         rows = [[len(text), 1] for text in texts]
        ...         return Embedded(vectors=np.array(rows, np.float32))
        >>> isinstance(LengthEmbedder(), Embedder)
        True
    """

    @property
    def info(self) -> EmbedderInfo:
        """Identity of the embedder, and limits of a request. ``model_id`` never changes."""
        ...

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        """Return the vectors of *texts*, which are within the limits and not blank.

        Raises:
            Exception: Any error; the texts then get no vectors. If its ``status_code`` is 400, 413
                or 422, the caller finds the refused text and embeds the others.
        """
        ...


def is_refusal(error: BaseException) -> bool:
    """Return whether *error* means that a service refused the texts of the request."""
    return getattr(error, "status_code", None) in _REFUSAL_STATUSES


@runtime_checkable
class Preparable(Protocol):
    """An embedder whose model must be prepared before use."""

    @property
    def preparing(self) -> bool:
        """True while the model is not ready. False after a failure, which each use then raises."""
        ...

    async def prepare(self) -> None:
        """Prepare the model, and wait until it is ready. Raises like `Embedder.embed`."""
        ...


def is_preparing(embedder: Embedder | None) -> bool:
    """Return whether a use of *embedder* would wait for its model."""
    return isinstance(embedder, Preparable) and embedder.preparing


def choose_strategy(
    strategy: Strategy | None,
    embedder: Embedder | str | None,
    named: Mapping[str, Callable[[], Embedder]],
) -> tuple[Strategy, Embedder | None, str]:
    """Return the strategy, the embedder and the reason for the strategy, and log the reason.

    If *strategy* is None, it is ``auto`` with *embedder*, or else with the embedder ``local`` if
    that can be created from *named*, or else ``graph``.

    Raises:
        ConfigError, MissingExtraError: As `resolve_embedder`, or if the strategy is unknown.
    """
    resolved, reason = resolve_embedder(embedder, named), "given"
    if strategy is None:
        reason = "embedder given"
        if resolved is None and "local" in named:
            with suppress(MissingExtraError):
                resolved, reason = named["local"](), "extra local installed"
        if resolved is None:
            reason = "no embedder given or installed"
        strategy = "graph" if resolved is None else "auto"
    log.info("strategy %s (%s)", check_strategy(strategy), reason)
    return strategy, resolved, reason


def resolve_embedder(
    embedder: Embedder | str | None, named: Mapping[str, Callable[[], Embedder]]
) -> Embedder | None:
    """Return *embedder*; for a name, the embedder that *named* creates.

    Raises:
        ConfigError: If the name is unknown, or *embedder* has the wrong type.
        MissingExtraError: If the package of the named embedder is not installed.
    """
    if isinstance(embedder, str):
        if embedder not in named:
            names = ", ".join(map(repr, sorted(named))) or "none"
            raise ConfigError(
                f"unknown embedder {embedder!r}: give an Embedder, or a name that a loaded plugin "
                f"registers ({names})"
            )
        return named[embedder]()
    if embedder is not None:
        check_members("embedder", embedder, "a name or an Embedder", "embed", "info")
    return embedder
