"""A compiled index on disk."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.apart import index_of, taken_apart
from graphs.diagrams import mermaid
from graphs.errors import StateError
from graphs.expansion import expand
from graphs.facts.build import extract_facts
from graphs.facts.fact import Fact
from graphs.graph import GraphIndex
from graphs.joined import Joined, joined
from graphs.markdown.document import Document, parse
from graphs.rdf.exporter import n_triples
from graphs.state import load, save
from graphs.text_search import focused

TEXTS = [
    "---\nid: urn:t:a\ntitle: create_invoice\ngraph_groups: billing\nrequires: login\n---\nText.\n",
    "---\nid: urn:t:b\ntitle: login\nlanguage: de\ntags: [Anmeldung]\n---\n",
    "---\nid: urn:t:c\ntitle: 天气\ngraph_groups: billing\ndate_published: 2026-11-21\n---\n",
]
INDEX = GraphIndex.compile(extract_facts([parse(text, path="x.md") for text in TEXTS]))


def test_a_saved_index_answers_as_it_did(tmp_path: Path) -> None:
    """Facts, neighbours, text search and pictures."""
    save(INDEX, tmp_path / "new")

    found = load(tmp_path / "new")

    assert tuple(INDEX.facts) == tuple(found.facts)
    assert (INDEX.nodes, INDEX.labels, INDEX.documents) == (
        found.nodes,
        found.labels,
        found.documents,
    )
    assert INDEX.ranks.tolist() == found.ranks.tolist()
    assert dict(INDEX.forward) == dict(found.forward)
    assert dict(INDEX.backward) == dict(found.backward)
    for query in ("invoices", "lgoin", "billing", "Anmeldungen", "天气", "createinvoice"):
        assert focused(INDEX, query, limit=5) == focused(found, query, limit=5)
    assert expand(INDEX, ["urn:t:a"], role="related", limit=5) == expand(
        found, ["urn:t:a"], role="related", limit=5
    )
    assert (mermaid(INDEX), n_triples(INDEX.facts)) == (mermaid(found), n_triples(found.facts))


def test_a_loaded_index_is_lazy_and_can_be_saved_again(tmp_path: Path) -> None:
    """Its facts are made when they are asked for."""
    save(INDEX, tmp_path)
    save(load(tmp_path), tmp_path)

    found = load(tmp_path, verify=False)

    assert isinstance(found.postings.positions.base, np.memmap)
    assert (INDEX.facts[1], INDEX.facts[:2]) == (found.facts[1], found.facts[:2])
    assert (len(INDEX.facts), len(INDEX.forward)) == (len(found.facts), len(found.forward))
    assert () == found.outgoing("urn:t:b", "prerequisite") == found.outgoing("no", "related")
    assert 2 == len(list(tmp_path.iterdir()))


def test_an_index_whose_texts_lie_in_one_can_be_saved(tmp_path: Path) -> None:
    """As a gateway holds it that has read its own: equal to the one that was made."""
    names, arrays = taken_apart(INDEX)
    lying = {name: Joined(*joined(getattr(INDEX, name))) for name in ("nodes", "labels")}
    held = index_of({**names, **lying}, arrays)

    save(held, tmp_path)
    found = load(tmp_path)

    assert isinstance(held.nodes, Joined)
    assert (INDEX.nodes, INDEX.labels) == (found.nodes, found.labels)


def test_an_empty_index_is_an_index(tmp_path: Path) -> None:
    """An empty catalog is a catalog."""
    save(GraphIndex.compile([]), tmp_path)

    assert () == focused(load(tmp_path), "word", limit=5)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(st.characters(blacklist_categories=()), max_size=8), max_size=6))
def test_every_fact_survives(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    """Half characters and all: texts come from strangers."""
    stated = [
        Fact(
            subject=text,
            predicate="name",
            object=text,
            literal=True,
            weight=0.1,
            line=at,
            origin="o",
            declared=bool(at % 2),
        )
        for at, text in enumerate(texts)
    ]
    folder = tmp_path_factory.mktemp("index")
    save(GraphIndex.compile(stated), folder)

    assert stated == list(load(folder).facts)


def manifest(folder: Path, **changes: object) -> None:
    file = folder / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_another_version_is_refused_and_named(tmp_path: Path) -> None:
    """Guessing at a foreign format would answer wrongly."""
    save(INDEX, tmp_path)
    manifest(tmp_path, version=99)

    with pytest.raises(StateError, match="has version 99, not 3: build and save it again"):
        load(tmp_path)


def test_a_changed_file_is_refused_and_named(tmp_path: Path) -> None:
    """A flipped bit must not become a wrong tool."""
    save(INDEX, tmp_path)
    (file,) = tmp_path.glob("data-*/positions.npy")
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)

    with pytest.raises(StateError, match=r"damaged file 'positions\.npy': its checksum is wrong"):
        load(tmp_path)


def test_a_lost_file_a_broken_manifest_and_no_index_are_told(tmp_path: Path) -> None:
    """Each says what is wrong, and that building again helps."""
    with pytest.raises(StateError, match="is not there") as caught:
        load(tmp_path)
    assert str(tmp_path) == caught.value.path

    save(INDEX, tmp_path)
    (file,) = tmp_path.glob("data-*/positions.npy")
    file.unlink()
    with pytest.raises(StateError, match=r"lacks the file 'positions\.npy'"):
        load(tmp_path)
    manifest(tmp_path, files={})
    with pytest.raises(StateError, match="cannot be read"):
        load(tmp_path)
    for text, detail in (
        ("{", "cannot be read"),
        ("[]", "version None"),
        ('{"version": 3}', "out f"),
    ):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(StateError, match=detail):
            load(tmp_path)


def test_a_document_that_speaks_of_nothing_known_is_kept(tmp_path: Path) -> None:
    """A node without edges has no edges after loading either."""
    save(GraphIndex.compile(extract_facts([Document(id="urn:t:x", title="x")])), tmp_path)

    found = load(tmp_path)

    assert {} == dict(found.forward)
