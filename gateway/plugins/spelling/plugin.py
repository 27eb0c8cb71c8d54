"""Plugin ``spelling``: offline spelling correction of queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gateway.hookspecs import hookimpl
from gateway.search.query import Correct


@hookimpl
def register_query_forms() -> Mapping[str, Callable[[], Correct]]:
    """Register the query form ``corrected``."""
    return {"corrected": _corrector}


def _corrector() -> Correct:
    from gateway.plugins.spelling.corrector import SpellingCorrector  # noqa: PLC0415  (only a gateway needs it, no command)
    from gateway.plugins.spelling.word_lists import find_word_lists  # noqa: PLC0415  (likewise)

    return SpellingCorrector(find_word_lists())
