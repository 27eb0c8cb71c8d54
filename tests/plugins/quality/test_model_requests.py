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
    """A model with one answer per tool, which records its requests."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        self.answers = answers
        self.instructions: list[str] = []

    async def ask(self, instructions: str, text: str, *, max_tokens: int) -> ModelReply:
        self.instructions.append(instructions)
        answers = [answer for key, answer in self.answers.items() if f"{key}:" in text]
        if not answers:
            raise OSError("no such model")
        return ModelReply(text=answers[0])


def write(writer: Writer, *tools: Entity, language: str = "en") -> ModelRequests:
    told: list[tuple[str, int, int]] = []

    def note(*stage: object) -> None:
        told.append(stage)  # type: ignore[arg-type]  # as they come

    work = model_requests(tools, writer, Telemetry(), language=language, progress=note)
    requests = asyncio.run(work)
    assert ("writing", len(tools), len(tools)) == told[-1]
    return requests


def test_model_requests_have_three_styles_in_order() -> None:
    lines = ("1. put a remark below", '2) "how do I cite a source?"', "", "- no source yet", "x")
    answer = "\n".join(lines)
    writer = Writer({FOOTNOTE.id: answer})
    result = write(writer, FOOTNOTE, language="de")

    assert [
        ("command", "put a remark below"),
        ("question", "how do I cite a source?"),
        ("situation", "no source yet"),
    ] == [(request.style, request.text) for request in result.requests]
    assert {("model", "de", ((FOOTNOTE.id,),))} == {
        (request.source, request.language, request.wanted) for request in result.requests
    }
    assert writer.instructions[0].endswith("Write in this language: de.")


def test_requests_with_the_name_or_rare_words_are_rejected() -> None:
    """A word that all tools contain is not rare, and in a small catalog no word is."""
    answer = "add footnote here\nthe footnotes are missing\nunder the paragraph, please"
    writer = Writer({FOOTNOTE.id: answer, "word/format": "format it"})
    among, alone = write(writer, FOOTNOTE, *OTHERS), write(writer, FOOTNOTE)

    def texts(found: ModelRequests) -> list[str]:
        return [request.text for request in found.requests if FOOTNOTE.id in request.wanted[0]]

    assert ["under the paragraph, please"] == texts(among)
    assert ["the footnotes are missing", "under the paragraph, please"] == texts(alone)
    assert ("word/add_footnote: add footnote here",) == alone.rejected


def test_model_failure_affects_only_its_tool() -> None:
    result = write(Writer({FOOTNOTE.id: "a remark"}), FOOTNOTE, OTHERS[0])

    assert ["a remark"] == [request.text for request in result.requests]
    assert ("word/format_0: the model could not be asked: OSError",) == result.rejected
