"""A model, the service that runs it and the tokens that it took, as the conventions name them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from gateway.runtime.telemetry_names import OTHER

_OPENAI = "api.openai.com"
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEndpoint:
    """A model and the service that runs it, as the conventions name them."""

    model: str
    """As requests name it; "" if it is not known."""
    provider: str = OTHER
    address: str = ""
    """The host of the service; "" if it is not known, or there is none."""
    port: int = 0

    @classmethod
    def at(cls, model: str, url: str, *, provider: str = "") -> Self:
        """Return the endpoint behind *url*; another host than OpenAI's names itself as the
        provider, if none is given: many services speak its wire format.
        """
        parts = urlsplit(url)
        host = parts.hostname or ""
        provider = provider or ("openai" if host.endswith(_OPENAI) else host) or OTHER
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
        return cls(model=model, provider=provider, address=host, port=port)

    @property
    def attributes(self) -> dict[str, str | int | float | bool]:
        """What is known, as attributes."""
        attributes: dict[str, str | int | float | bool] = {
            "gen_ai.provider.name": self.provider,
            "gen_ai.request.model": self.model,
            "server.address": self.address,
            "server.port": self.port,
        }
        return {name: value for name, value in attributes.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage:
    """The tokens of one request or several, as services report them; None is not reported."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    """Those of the input that the service had cached."""
    reasoning: int | None = None
    """Those of the output that nobody sees."""

    @property
    def attributes(self) -> dict[str, str | int | float | bool]:
        """What was reported, as attributes of a span."""
        counts = {
            "gen_ai.usage.input_tokens": self.input,
            "gen_ai.usage.output_tokens": self.output,
            "gen_ai.usage.cache_read.input_tokens": self.cached,
            "gen_ai.usage.reasoning.output_tokens": self.reasoning,
        }
        return {name: count for name, count in counts.items() if count is not None}
