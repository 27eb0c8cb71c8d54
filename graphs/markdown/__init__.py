"""Markdown-LD texts: documents, front matter and files."""

from graphs.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "dialect": "add_edge collect parse render write",
        "document": "Document Edge Link Section Text",
        "fields": "KEYS LINK_LISTS TEXT_LISTS",
        "frontmatter": "Scalar",
    },
)
