"""Requests that a chat model writes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from gateway.plugins.quality import ModelRequests
from gateway.plugins.quality.model_requests import model_requests
from gateway.runtime.telemetry import Telemetry
from gateway.search import ModelReply
from gateway.types import Entity
from tests.plugins.quality.catalogs import entity

FOOTNOTE = entity("word/add_footnote", "Add a footnote below a paragraph.")
OTHERS = tuple(entity(f"word/format_{at}", "Format a paragraph of the text.") for at in range(120))


class Writer:
    """Answers by the tool that it is asked about, and remembers what it was told."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        self.answers = answers
        self.instructions: list[str] = []

    async def ask(self, instructions: str, text: str, *, max_tokens: int) -> ModelReply:
        self.instructions.append(instructions)
        found = [answer for key, answer in self.answers.items() if f"{key}:" in text]
        if not found:
            raise OSError("no such model")
        return ModelReply(text=found[0])


def write(writer: Writer, *tools: Entity, language: str = "en") -> ModelRequests:
    told: list[tuple[str, int, int]] = []

    def note(*stage: object) -> None:
        told.append(stage)  # type: ignore[arg-type]  # as they come

    work = model_requests(tools, writer, Telemetry(), language=language, progress=note)
    found = asyncio.run(work)
    assert ("writing", len(tools), len(tools)) == told[-1]
    return found


def test_three_styles_are_taken_in_their_order() -> None:
    """Bullets and quotes are none of the request."""
    lines = ("1. put a remark below", '2) "how do I cite a source?"', "", "- no source yet", "x")
    answer = "\n".join(lines)
    writer = Writer({FOOTNOTE.id: answer})
    found = write(writer, FOOTNOTE, language="de")

    assert [
        ("command", "put a remark below"),
        ("question", "how do I cite a source?"),
        ("situation", "no source yet"),
    ] == [(each.style, each.text) for each in found.requests]
    assert {("model", "de", ((FOOTNOTE.id,),))} == {
        (each.source, each.language, each.wanted) for each in found.requests
    }
    assert writer.instructions[0].endswith("Write in this language: de.")


def test_the_name_and_rare_words_are_rejected() -> None:
    """What every other tool holds is nobody's own word; in a small catalog nothing is rare."""
    answer = "add footnote here\nthe footnotes are missing\nunder the paragraph, please"
    writer = Writer({FOOTNOTE.id: answer, "word/format": "format it"})
    among, alone = write(writer, FOOTNOTE, *OTHERS), write(writer, FOOTNOTE)

    def texts(found: ModelRequests) -> list[str]:
        return [each.text for each in found.requests if FOOTNOTE.id in each.wanted[0]]

    assert ["under the paragraph, please"] == texts(among)
    assert ["the footnotes are missing", "under the paragraph, please"] == texts(alone)
    assert ("word/add_footnote: add footnote here",) == alone.rejected


def test_a_model_that_fails_costs_its_tool_alone() -> None:
    found = write(Writer({FOOTNOTE.id: "a remark"}), FOOTNOTE, OTHERS[0])

    assert ["a remark"] == [each.text for each in found.requests]
    assert ("word/format_0: the model could not be asked: OSError",) == found.rejected
