"""The JSON responses of the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import PydanticSerializationError, to_json
from starlette.responses import JSONResponse

from gateway.runtime.text import visible_json

HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class ApiResponse(JSONResponse):
    """A JSON response with `HEADERS`."""

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        """Set `HEADERS` and *headers*."""
        super().init_headers({**HEADERS, **(headers or {})})

    def render(self, content: Any) -> bytes:
        """Return *content* as JSON; numbers that JSON lacks become null."""
        try:
            return to_json(content, inf_nan_mode="null")
        except PydanticSerializationError:
            # UTF-8 cannot write a lone surrogate, which texts of the host's own may hold.
            return to_json(visible_json(content))
