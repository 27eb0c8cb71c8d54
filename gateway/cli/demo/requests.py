"""What the demo's user asks, and what must really have happened afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One conversation of the demo."""

    title: str
    language: str
    text: str
    expected_tool: str
    """The canonical id of the tool that must be called. The model is not told."""
    expected_file: str = ""
    """The name of a file that must exist afterwards; empty if none."""


REQUESTS = (
    Request(
        title="English",
        language="en",
        text="Create an Excel workbook called quarterly-report.xlsx.",
        expected_tool="excel/create_workbook",
        expected_file="quarterly-report.xlsx",
    ),
    Request(
        title="German",
        language="de",
        text="Wie spät ist es gerade in Tokio? Die Zeitzone heißt Asia/Tokyo.",
        expected_tool="time/get_current_time",
    ),
    Request(
        title="Full of typos",
        language="en",
        text="plese creat a new Wrod documnt, name it meeting-notes.docx thx",
        expected_tool="word/create_document",
        expected_file="meeting-notes.docx",
    ),
)
"""The three conversations."""


def instructions(folder: Path) -> str:
    """Give the system message: what a host tells its model of the place it works in."""
    return (
        "You are the assistant of a small office. Use tools; never pretend to have used one. "
        f'Keep files in the folder "{folder}" and give tools absolute paths. '
        "Answer in one sentence, in the user's language."
    )
