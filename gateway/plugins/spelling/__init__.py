"""Spelling correction of queries."""

from gateway.runtime.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "corrector": "CatalogCorrector SpellingCorrector likely_languages",
        "word_lists": "COMMON CatalogWords common_words find_word_lists word_list",
    },
)
