"""Results of tools and prompts."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.types.diagnostics import Diagnostic
from gateway.types.entities import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """One content block of a tool's result."""

    type: str
    """Type of the block: ``text``, ``image``, ``audio``, ``resource``, ``resource_link`` or another
    type that the server uses."""
    text: str = ""
    """Text of a text block or of an embedded text resource; empty for other blocks."""
    data: JsonObject = field(default_factory=dict)
    """The complete block as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvokeResult:
    """The result of a call."""

    tool_id: str
    content: tuple[Content, ...] = ()
    structured: object = None
    """Structured content of the result, as JSON; None if the tool returned none."""
    is_error: bool = False
    """True if the tool reported an error. The content then contains the reason."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Problems in the gateway during the call."""

    @property
    def text(self) -> str:
        """Text of all text blocks of the content, joined."""
        return "\n".join(block.text for block in self.content if block.text)


def error_result(tool_id: str, text: str) -> InvokeResult:
    """Return a result that reports an error of the tool."""
    block = Content(type="text", text=text, data={"type": "text", "text": text})
    return InvokeResult(tool_id=tool_id, content=(block,), is_error=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptMessage:
    """One message of a prompt."""

    role: str
    content: Content


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptResult:
    """A prompt with its arguments filled in."""

    description: str = ""
    messages: tuple[PromptMessage, ...] = ()
