"""The values and protocols of embedders: texts in, unit vectors out.

The embedder that a host names or gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from gateway.errors import ConfigError
from gateway.options.validation import check_members
from gateway.runtime.model_endpoint import ModelEndpoint
from gateway.runtime.vectors import Matrix

Role = Literal["document", "query"]
"""Some models prefix or project the two differently."""
_REFUSALS = frozenset({400, 413, 422})
"""HTTP statuses by which a service refuses the texts of a request, rather than the caller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingLimits:
    """What one request to an embedder may hold."""

    max_texts: int = 2048
    max_chars: int = 24_000
    """A longer text is cut here: about 8,000 tokens of English."""
    max_request_chars: int = 600_000
    """For all texts of a request together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """The answer to one request."""

    vectors: Matrix
    """Shape (n, d) float32, one row for each text, in the order of the texts."""
    tokens: int | None = None
    """Input tokens as the model counted them; None if it does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderInfo:
    """What identifies an embedder and bounds its requests."""

    model_id: str
    """Names model, version and every setting that changes a vector: the key of stored vectors."""
    provider: str
    """For telemetry: ``openai``, ``local``, …"""
    dimensions: int | None = None
    """None until the first answer tells."""
    limits: EmbeddingLimits = field(default_factory=EmbeddingLimits)
    endpoint: ModelEndpoint | None = field(default=None, compare=False, repr=False)
    """For telemetry: the exact model and its service; None is ``model_id`` and ``provider``."""


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors. May be called from any task of the gateway's own loop."""

    @property
    def info(self) -> EmbedderInfo:
        """What this is; ``model_id`` never changes while it lives."""
        ...

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        """Embed *texts*, which keep to the limits and are never blank.

        Raises:
            Exception: Anything; the caller falls back and leaves a diagnostic. If its
                ``status_code`` is 400, 413 or 422, the caller looks for the text that the service
                refuses, and embeds the others.
        """
        ...


def is_refusal(error: BaseException) -> bool:
    """Return whether an embedder raised *error* because of the texts of a request."""
    return getattr(error, "status_code", None) in _REFUSALS


@runtime_checkable
class Preparable(Protocol):
    """An embedder whose model has to be made ready first, which takes longer than a search."""

    @property
    def preparing(self) -> bool:
        """Whether the model is not ready yet; False after a failure, which each use then raises."""
        ...

    async def prepare(self) -> None:
        """Make the model ready.

        Raises:
            Exception: As `Embedder.embed`.
        """
        ...


def is_preparing(embedder: Embedder | None) -> bool:
    """Return whether a use of *embedder* would wait until its model is ready."""
    return isinstance(embedder, Preparable) and embedder.preparing


def resolve_embedder(
    embedder: Embedder | str | None, named: Mapping[str, Callable[[], Embedder]]
) -> Embedder | None:
    """Return the embedder that a host names or brings.

    Args:
        embedder: An embedder, the name of one, or None.
        named: Functions that make embedders, keyed by name.

    Raises:
        ConfigError: If the name is unknown, or *embedder* is none.
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
