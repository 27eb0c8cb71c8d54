"""Web console: server-rendered pages for people who operate a gateway."""

from gateway.serve.console.access import MAX_SESSIONS as MAX_SESSIONS
from gateway.serve.console.access import Sessions as Sessions
from gateway.serve.console.page import ConsoleOptions as ConsoleOptions
from gateway.serve.console.spans import MAX_CHARS as MAX_CHARS
from gateway.serve.console.spans import MAX_EVENTS as MAX_EVENTS
from gateway.serve.console.spans import MAX_STREAMS as MAX_STREAMS
from gateway.serve.console.spans import SpanRecord as SpanRecord
from gateway.serve.console.spans import SpanRing as SpanRing
