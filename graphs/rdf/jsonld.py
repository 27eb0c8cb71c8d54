"""An rdflib graph as JSON-LD, whole: each value of each node stands in the text.

rdflib writes over an empty text when a second value of the same node and predicate comes, and
rewrites numbers as JSON's own, which have no 01 and no NaN. Imported by `rdf` alone: rdflib is
heavy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rdflib import Graph
from rdflib.plugins.serializers.jsonld import Converter
from rdflib.plugins.shared.jsonld.context import Context


def compacted(graph: Graph, context: Mapping[str, object]) -> str:
    """Write *graph* as JSON-LD under *context*, which stands in the text."""
    terms = dict(context)
    converter = _Whole(Context(terms), use_native_types=False, use_rdf_type=False)
    converter.use_native_types = False  # A context alone switches it on.
    found = converter.convert(graph)
    told = {"@graph": found} if isinstance(found, list) else found
    return json.dumps({**told, "@context": terms}, ensure_ascii=False)


class _Whole(Converter):
    """The converter that loses nothing."""

    def add_to_node(
        self, graph: Any, s: Any, p: Any, o: Any, s_node: dict[str, Any], nodemap: Any
    ) -> None:
        """Add the value *o* of the predicate *p* to what is written of the node *s*."""
        nothings = [(key, value) for key, value in s_node.items() if not value]
        super().add_to_node(graph, s, p, o, s_node, nodemap)
        for key, value in nothings:
            if s_node[key] is not value:
                s_node[key] = [value, s_node[key]]
