"""Search texts and example requests that graph documents and plugins add to entities. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from gateway.index.edge_sources import EdgeSource, read_examples
from gateway.index.tool_graph import host_names, node_of
from gateway.types import Diagnostic, Entity
from gateway.types.entities import MAX_SEARCH_TEXT_CHARS
from graphs.facts.extraction import LabelResolver
from graphs.markdown.document import Document

EXAMPLE_PREDICATE = "example"


def add_texts(
    entities: Iterable[Entity], documents: Iterable[Document], sources: Iterable[EdgeSource]
) -> tuple[list[Entity], list[Diagnostic]]:
    """Return *entities* with the texts from the host's *documents* and from *sources*.

    A search text from hints or rules takes precedence. Examples are added after the examples from
    hints and rules. The diagnostics name sources that failed.
    """
    listed = _with_document_texts(list(entities), documents)
    faults: list[Diagnostic] = []
    for source in sources:
        examples = read_examples(source, listed)
        if isinstance(examples, Diagnostic):
            faults.append(examples)
        else:
            listed = _with_examples(listed, examples)
    return listed, faults


def _with_document_texts(listed: list[Entity], documents: Iterable[Document]) -> list[Entity]:
    stated = [document for document in documents if document.declared and _has_texts(document)]
    if not stated:
        return listed
    labels = LabelResolver(stated, host_names(listed))
    search_texts = {labels.subject(document): document.search_text for document in stated}
    examples = defaultdict[str, list[str]](list)
    for document in stated:
        for edge in document.edges:
            if edge.predicate == EXAMPLE_PREDICATE:
                examples[labels.find(edge.subject)].append(edge.object)
    for position, entity in enumerate(listed):
        text = search_texts.get(node_of(entity.id), "").strip()
        if text and not entity.hints.search_text:
            listed[position] = entity.with_hints(search_text=text[:MAX_SEARCH_TEXT_CHARS])
    return _with_examples(
        listed, {entity.id: examples.get(node_of(entity.id), ()) for entity in listed}
    )


def _has_texts(document: Document) -> bool:
    return bool(document.search_text.strip()) or any(
        edge.predicate == EXAMPLE_PREDICATE for edge in document.edges
    )


def _with_examples(listed: Sequence[Entity], examples: Mapping[str, Sequence[str]]) -> list[Entity]:
    return [
        entity.with_hints(examples=tuple(dict.fromkeys((*entity.hints.examples, *added))))
        if (added := examples.get(entity.id))
        else entity
        for entity in listed
    ]
