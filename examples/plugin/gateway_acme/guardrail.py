"""A guardrail: it hides account numbers in the answers of tools."""

from __future__ import annotations

import re
from dataclasses import replace

from gateway.call.hooks import Call, CallHook, Proceed
from gateway.types import Content, InvokeResult


class Guardrail(CallHook):
    """Rewrites the text of each answer and drops the rest, which could hold a number too."""

    name = "acme_guardrail"

    async def around(self, call: Call, proceed: Proceed) -> InvokeResult:
        """Do the call, and return its answer without account numbers."""
        result = await proceed(call)
        text = re.sub(r"ACME-\d+", "ACME-***", result.text)
        block = Content(type="text", text=text, data={"type": "text", "text": text})
        return replace(result, content=(block,), structured=None)
