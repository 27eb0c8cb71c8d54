"""Accepting and rejecting of edges in the host's graph documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.errors import ConfigError
from gateway.index import load, load_proposals
from gateway.plugins.graph_tools import plan_edit
from graphs.markdown import Edge, collect

EDGE = Edge(subject="shop/pay", predicate="requires", object="shop/login")


def test_decisions_on_edges_of_one_server_are_written_to_one_document(tmp_path: Path) -> None:
    """A server's name cannot put its document outside the folder."""
    other = Edge(subject="shop/pay", predicate="nextStep", object="shop/login")

    plan_edit(tmp_path, EDGE, "accept", server="../shop").write()
    plan_edit(tmp_path, other, "reject", server="../shop").write()

    (document,), notices = collect(tmp_path)
    assert (("reviewed/..%2Fshop.md", ()), (EDGE,)) == ((document.path, notices), document.edges)
    assert (other,) == document.forbidden


def test_edit_has_a_diff_before_it_is_written_and_none_afterwards(tmp_path: Path) -> None:
    edit = plan_edit(tmp_path, EDGE, "accept", server="")
    assert "reviewed/other.md" == edit.path
    assert "+graph_edges:\n+  - {subject: " in edit.diff
    assert [] == list(tmp_path.iterdir())

    edit.write()

    assert "" == plan_edit(tmp_path, EDGE, "accept", server="").diff


def test_edit_is_refused_if_the_document_changed_in_the_meantime(tmp_path: Path) -> None:
    """The document may change after the edit is planned, or after its diff is shown."""
    stale = plan_edit(tmp_path, EDGE, "accept", server="shop")
    plan_edit(tmp_path, EDGE, "reject", server="shop").write()
    current = plan_edit(tmp_path, EDGE, "accept", server="shop")
    before = stale.file.read_bytes()

    with pytest.raises(ConfigError, match="changed meanwhile"):
        stale.write()
    with pytest.raises(ConfigError, match="changed in the meantime"):
        current.write(revision=stale.revision)

    assert before == stale.file.read_bytes()


def test_edit_is_refused_without_a_folder_of_documents(tmp_path: Path) -> None:
    file = tmp_path / "graph.md"
    file.write_text("# Graph", "utf-8")

    with pytest.raises(ConfigError, match=r"graph\.md' is not a folder"):
        plan_edit(file, EDGE, "accept", server="shop")


def test_edit_of_a_broken_document_is_refused(tmp_path: Path) -> None:
    edit = plan_edit(tmp_path, EDGE, "accept", server="shop")
    edit.write()
    edit.file.write_text("---\ntitle: [", "utf-8")

    with pytest.raises(ConfigError, match=r"reviewed/shop\.md:1: the front matter is not closed"):
        plan_edit(tmp_path, EDGE, "reject", server="shop")


async def test_documents_of_proposals_have_no_effect_until_they_are_moved(tmp_path: Path) -> None:
    """If their folder is given as the folder of documents, they are read."""
    (tmp_path / "proposed").mkdir()
    (tmp_path / "proposed" / "shop.md").write_text("# Shop\n\n- a --requires--> b\n", "utf-8")
    (tmp_path / "mine.md").write_text("# Mine", "utf-8")

    loaded, _ = await load(tmp_path)
    from_folder, _ = await load(tmp_path / "proposed")

    assert ["mine.md"] == [item.path for item in loaded]
    assert ["shop.md"] == [item.path for item in from_folder]
    assert ["proposed/shop.md"] == [proposal.path for proposal in load_proposals(tmp_path)]
    assert () == load_proposals(None) == load_proposals(tmp_path / "none")
