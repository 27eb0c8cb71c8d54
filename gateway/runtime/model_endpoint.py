from __future__ import annotations

from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from gateway.runtime.telemetry_names import OTHER

_OPENAI = "api.openai.com"
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEndpoint:
    """A model and the service that runs it."""

    model: str
    """Name of the model in requests; empty if unknown."""
    provider: str = OTHER
    address: str = ""
    """Host of the service; empty if unknown or local."""
    port: int = 0

    @classmethod
    def at(cls, model: str, url: str, *, provider: str = "") -> Self:
        """Return the endpoint at *url*.

        If *provider* is empty, it is the host of *url*, except for OpenAI's own host.
        """
        parts = urlsplit(url)
        host = parts.hostname or ""
        provider = provider or ("openai" if host.endswith(_OPENAI) else host) or OTHER
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
        return cls(model=model, provider=provider, address=host, port=port)

    @property
    def attributes(self) -> dict[str, str | int | float | bool]:
        """Known fields of the endpoint, as attributes of a span."""
        attributes: dict[str, str | int | float | bool] = {
            "gen_ai.provider.name": self.provider,
            "gen_ai.request.model": self.model,
            "server.address": self.address,
            "server.port": self.port,
        }
        return {name: value for name, value in attributes.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage:
    """Token numbers of one or more requests, as reported by the service; None if not reported."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    """Number of input tokens that the service read from its cache."""
    reasoning: int | None = None
    """Number of output tokens for hidden reasoning."""

    @property
    def attributes(self) -> dict[str, str | int | float | bool]:
        """Reported token numbers, as attributes of a span."""
        counts = {
            "gen_ai.usage.input_tokens": self.input,
            "gen_ai.usage.output_tokens": self.output,
            "gen_ai.usage.cache_read.input_tokens": self.cached,
            "gen_ai.usage.reasoning.output_tokens": self.reasoning,
        }
        return {name: count for name, count in counts.items() if count is not None}
