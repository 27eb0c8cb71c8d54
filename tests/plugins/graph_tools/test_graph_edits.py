"""Decisions on edges, in the host's own documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.errors import ConfigError
from gateway.index import load, load_proposals
from gateway.plugins.graph_tools import plan_edit
from graphs.markdown import Edge, collect

EDGE = Edge(subject="shop/pay", predicate="requires", object="shop/login")


def test_the_decisions_on_one_server_stand_in_one_document(tmp_path: Path) -> None:
    """What is accepted is stated, what is rejected is forbidden; its name cannot lead away."""
    other = Edge(subject="shop/pay", predicate="nextStep", object="shop/login")

    plan_edit(tmp_path, EDGE, "accept", server="../shop").write()
    plan_edit(tmp_path, other, "reject", server="../shop").write()

    (document,), notices = collect(tmp_path)
    assert (("reviewed/..%2Fshop.md", ()), (EDGE,)) == ((document.path, notices), document.edges)
    assert (other,) == document.forbidden


def test_the_difference_is_there_before_anything_is_written(tmp_path: Path) -> None:
    """And is empty once the document says it."""
    edit = plan_edit(tmp_path, EDGE, "accept", server="")
    assert "reviewed/other.md" == edit.path
    assert "+graph_edges:\n+  - {subject: " in edit.diff
    assert [] == list(tmp_path.iterdir())

    edit.write()

    assert "" == plan_edit(tmp_path, EDGE, "accept", server="").diff


def test_a_document_that_changed_meanwhile_is_not_written(tmp_path: Path) -> None:
    """Neither since it was read, nor since its difference was shown."""
    seen = plan_edit(tmp_path, EDGE, "accept", server="shop")
    plan_edit(tmp_path, EDGE, "reject", server="shop").write()
    now = plan_edit(tmp_path, EDGE, "accept", server="shop")
    before = seen.file.read_bytes()

    with pytest.raises(ConfigError, match="changed meanwhile"):
        seen.write()
    with pytest.raises(ConfigError, match="changed meanwhile"):
        now.write(revision=seen.revision)

    assert before == seen.file.read_bytes()


def test_decisions_need_a_folder(tmp_path: Path) -> None:
    """A bundle or a single document takes none."""
    file = tmp_path / "graph.md"
    file.write_text("# Graph", "utf-8")

    with pytest.raises(ConfigError, match=r"graph\.md' is no folder"):
        plan_edit(file, EDGE, "accept", server="shop")


def test_a_broken_document_takes_none(tmp_path: Path) -> None:
    """What it says is not known; the error names its file and line."""
    edit = plan_edit(tmp_path, EDGE, "accept", server="shop")
    edit.write()
    edit.file.write_text("---\ntitle: [", "utf-8")

    with pytest.raises(ConfigError, match=r"reviewed/shop\.md:1: the front matter is not closed"):
        plan_edit(tmp_path, EDGE, "reject", server="shop")


async def test_what_is_only_proposed_counts_for_nothing(tmp_path: Path) -> None:
    """Until it stands elsewhere in the folder, or its own folder is the one that is given."""
    (tmp_path / "proposed").mkdir()
    (tmp_path / "proposed" / "shop.md").write_text("# Shop\n\n- a --requires--> b\n", "utf-8")
    (tmp_path / "mine.md").write_text("# Mine", "utf-8")

    counted, _ = await load(tmp_path)
    given, _ = await load(tmp_path / "proposed")

    assert ["mine.md"] == [each.path for each in counted]
    assert ["shop.md"] == [each.path for each in given]
    assert ["proposed/shop.md"] == [each.path for each in load_proposals(tmp_path)]
    assert () == load_proposals(None) == load_proposals(tmp_path / "none")
