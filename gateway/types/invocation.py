"""What tools and prompts answer."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.types.diagnostics import Diagnostic
from gateway.types.entities import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """One block of a tool's answer, with nothing left out."""

    type: str
    """``text``, ``image``, ``audio``, ``resource``, ``resource_link`` or what the upstream says."""
    text: str = ""
    """The text of a text block or of an embedded text resource."""
    data: JsonObject = field(default_factory=dict)
    """The block as JSON, nothing dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvokeResult:
    """What a tool answered."""

    tool_id: str
    content: tuple[Content, ...] = ()
    structured: object = None
    """The structured content as JSON, or None."""
    is_error: bool = False
    """True if the tool said that it failed; the content then says why."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """What was amiss here meanwhile."""

    @property
    def text(self) -> str:
        """All text blocks, one after another."""
        return "\n".join(block.text for block in self.content if block.text)


def error_result(tool_id: str, text: str) -> InvokeResult:
    """Return a result that says that the tool failed, and why."""
    block = Content(type="text", text=text, data={"type": "text", "text": text})
    return InvokeResult(tool_id=tool_id, content=(block,), is_error=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptMessage:
    """One message of a prompt."""

    role: str
    """``user`` or ``assistant``."""
    content: Content


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptResult:
    """A prompt, filled in."""

    description: str = ""
    messages: tuple[PromptMessage, ...] = ()
