"""All signals of `auto`: those of the gateway, and those of plugins."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.errors import ConfigError
from gateway.options import SearchOptions
from gateway.search.signals import clause_coverage, clause_words, servers, vectors, words
from gateway.search.signals.signal import Signal


def all_signals(options: SearchOptions, others: Iterable[Signal] = ()) -> tuple[Signal, ...]:
    """Return the signals of `auto`, in the order of the sum.

    Args:
        options: Weigh the words.
        others: Those of plugins.

    Raises:
        ConfigError: Two signals have one name.
    """
    signals: list[Signal] = [
        vectors.Vectors(),
        words.Words(options.lexical_weight),
        clause_words.ClauseWords(options.lexical_weight),
        servers.Servers(),
        clause_coverage.ClauseCoverage(),
        *others,
    ]
    names = [each.name for each in signals]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ConfigError(
            f"two signals of ranking have the name {min(twice)!r}: leave the plugin of one of them "
            "out by the option plugins"
        )
    return tuple(sorted(signals, key=lambda each: (each.order, each.name)))
