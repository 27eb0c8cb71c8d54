"""Spans and metrics of a gateway, for whoever listens.

* Importing this loads no OpenTelemetry. A host that listens has loaded its API, or the environment
  names a provider; until then every call is a no-op.
* No query, argument, result or description goes out unless the host asked for content.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from typing import Any, Self

from gateway.options.environment import names_telemetry
from gateway.runtime.telemetry_names import (
    Attributes,
    Instruments,
    MeterProvider,
    Span,
    TracerProvider,
)


class _Silence(AbstractContextManager[Any]):
    """`Instruments` that nobody listens to, and also their spans and blocks."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def set_attribute(self, key: str, value: object) -> None: ...

    def set_attributes(self, attributes: Attributes) -> None: ...

    def is_recording(self) -> bool:
        return False

    def end(self) -> None: ...

    def span(self, kind: str, target: str, attributes: Attributes | None) -> Self:
        del kind, target, attributes
        return self

    begin = span

    def within(self, span: Span) -> Self:
        del span
        return self

    def fail(self, span: Span, error_type: str) -> None: ...

    def timed(self, metric: str, attributes: Attributes) -> Self:
        del metric, attributes
        return self

    def record(self, metric: str, value: float, attributes: Attributes | None) -> None: ...

    def add(self, metric: str, value: int, attributes: Attributes | None) -> None: ...


_SILENCE = _Silence()


class Telemetry:
    """The spans and instruments of one gateway.

    Args:
        tracer_provider: Where spans go; None is the process's own.
        meter_provider: Where metrics go; None is the process's own.
        capture_content: Whether spans may hold queries, arguments and results.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        capture_content: bool = False,
    ) -> None:
        self.capture_content = capture_content
        self._providers = tracer_provider, meter_provider
        self._wanted = any(self._providers) or names_telemetry()
        self._made: Instruments = _SILENCE

    @property
    def _instruments(self) -> Instruments:
        if self._made is _SILENCE and (self._wanted or "opentelemetry" in sys.modules):
            from gateway.runtime.otel import OpenTelemetry  # noqa: PLC0415  (where nobody listens, nobody pays for it)

            self._made = OpenTelemetry(*self._providers)
        return self._made

    def span(
        self, kind: str, target: str = "", attributes: Attributes | None = None
    ) -> AbstractContextManager[Span]:
        """Open a span of *kind*, current within the block; an exception marks it as failed.

        Args:
            kind: A key of `SPANS`.
            target: The second word of the span's name, of few values; may be empty.
            attributes: Those known at creation, which samplers read.
        """
        return self._instruments.span(kind, target, attributes)

    def begin(self, kind: str, target: str = "", attributes: Attributes | None = None) -> Span:
        """Start a span that no block bounds; its owner ends it, and may enter it with `within`.

        Args:
            kind: A key of `SPANS` that names an operation.
            target: See `span`.
            attributes: See `span`.
        """
        return self._instruments.begin(kind, target, attributes)

    def within(self, span: Span) -> AbstractContextManager[object]:
        """Make *span* the parent of what the block starts, without ending it."""
        return self._instruments.within(span)

    def timed(
        self, metric: str, attributes: dict[str, str | int | float | bool]
    ) -> AbstractContextManager[object]:
        """Record the block's duration; *attributes* may be filled in while it runs."""
        return self._instruments.timed(metric, attributes)

    def record(self, metric: str, value: float, attributes: Attributes | None = None) -> None:
        """Record *value* in the histogram *metric*."""
        self._instruments.record(metric, value, attributes)

    def add(self, metric: str, value: int = 1, attributes: Attributes | None = None) -> None:
        """Add *value* to the counter *metric*."""
        self._instruments.add(metric, value, attributes)

    def cache_event(self, name: str, event: str) -> None:
        """Count one look-up in a cache."""
        self.add(
            "gateway.cache.requests",
            attributes={"gateway.cache.name": name, "gateway.cache.result": event},
        )

    def fail(self, span: Span, error_type: str) -> None:
        """Mark *span* as failed. No message: it could hold what a user said."""
        self._instruments.fail(span, error_type)
