"""SHACL: whether a graph looks as the dialect says. Needs the extra ``shacl`` (pyshacl)."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files

from graphs.errors import ExtraError
from graphs.facts.fact import Fact
from graphs.rdf.faults import SHAPES_FILE, Fault


def shapes() -> str:
    """Give the shapes of the dialect as Turtle."""
    return files("graphs").joinpath(SHAPES_FILE).read_text(encoding="utf-8")


def validate(facts: Iterable[Fact], *, further: str = "") -> tuple[Fault, ...]:
    """Compare *facts* with the shapes of the dialect.

    Args:
        facts: What to look at.
        further: Turtle with shapes of the host's own; nothing that it imports is fetched.

    Returns:
        The faults, violations first, each once; empty if all is well.

    Raises:
        ExtraError: pyshacl is not installed.
        DocumentError: *further* is no Turtle, or holds rules that would be run.
    """
    try:
        from graphs.rdf import shacl  # noqa: PLC0415  (an optional extra)
    except ModuleNotFoundError as error:
        raise ExtraError("shacl", package="pyshacl") from error
    return shacl.check(facts, shapes(), further)
