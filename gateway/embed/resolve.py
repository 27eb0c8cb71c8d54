"""The embedder that a host names or gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gateway.embed.protocol import Embedder
from gateway.errors import ConfigError
from gateway.options.validation import check_members


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
