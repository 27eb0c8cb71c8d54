"""Results of tools and prompts."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.types.diagnostics import Diagnostic
from gateway.types.entities import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A content block of a result."""

    type: str
    """``text``, ``image``, ``audio``, ``resource``, ``resource_link`` or a type of the server."""
    text: str = ""
    """Text of a text block or of an embedded text resource, or empty."""
    data: JsonObject = field(default_factory=dict)
    """Complete block as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvokeResult:
    """Result of a call."""

    tool_id: str
    content: tuple[Content, ...] = ()
    structured: object = None
    """Structured content as JSON, or None."""
    is_error: bool = False
    """True if the tool reported an error, with the reason in the content."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Problems in the gateway during the call."""

    @property
    def text(self) -> str:
        """Joined text of all text blocks."""
        return "\n".join(block.text for block in self.content if block.text)


def error_result(tool_id: str, text: str) -> InvokeResult:
    """Return a result that reports an error of the tool."""
    block = Content(type="text", text=text, data={"type": "text", "text": text})
    return InvokeResult(tool_id=tool_id, content=(block,), is_error=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptMessage:
    """A message of a prompt."""

    role: str
    content: Content


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptResult:
    """A prompt with filled in arguments."""

    description: str = ""
    messages: tuple[PromptMessage, ...] = ()
