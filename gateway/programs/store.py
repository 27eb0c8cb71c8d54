"""What outlives a program: values that it keeps, and programs that wait for a person."""

from __future__ import annotations

import json
import secrets
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol, runtime_checkable

from gateway.errors import ConfigError, InvalidRequestError
from gateway.programs.sandbox import PendingCall, Snapshot
from gateway.types import Caller, JsonObject


class ProgramStore(Protocol):
    """Rows of JSON by key. Used from any thread, and by several processes at once."""

    def put(self, key: str, row: str, *, keep_s: float) -> None:
        """Keep *row*; delete all that was put longer ago than *keep_s*."""

    def read(self, key: str) -> str | None:
        """Return a row; None if there is none."""

    def replace(self, key: str, old: str, new: str) -> bool:
        """Put *new* in the place of *old*, if that is still there; return whether it was."""

    def take(self, key: str) -> str | None:
        """Delete a row and return it: of several takers, to one alone."""

    def rows(self) -> Mapping[str, str]:
        """Return all rows by key, the oldest first."""


@runtime_checkable
class KeepsPrograms(Protocol):
    """A `gateway.storage.protocol.Store` that keeps programs too."""

    @property
    def programs(self) -> ProgramStore:
        """The rows of programs."""


def program_store(store: object) -> ProgramStore:
    """Return where programs are kept.

    Raises:
        ConfigError: *store* keeps none.
    """
    if not isinstance(store, KeepsPrograms):
        raise ConfigError("the store keeps no programs: give it 'programs', a ProgramStore")
    return store.programs


def new_key() -> str:
    """Return a key that nobody can guess."""
    return secrets.token_urlsafe(18)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingCall:
    """A call of a program that waits for a person."""

    id: int
    tool: str
    """The canonical id."""
    arguments: JsonObject
    digest: str
    """Of the tool's definition, as it is asked about."""
    call: PendingCall
    """As the program made it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingProgram:
    """A program that waits until somebody has decided about its calls."""

    caller: JsonObject
    """The party that it runs for; see `caller_row`."""
    functions: Mapping[str, str]
    """The ids of its tools, by the functions' names."""
    calls: tuple[WaitingCall, ...]
    state: str
    """The snapshot, in Base64."""
    calls_made: int
    printed: str
    task: str
    keeps: bool
    any_tool: bool
    approved: bool | None = None
    """None until somebody has decided."""

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot from which it goes on."""
        return Snapshot(
            state=b64decode(self.state),
            waiting=tuple(waiting.call for waiting in self.calls),
            calls=self.calls_made,
            printed=self.printed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptValue:
    """The value of a program, for the next ones."""

    caller: JsonObject
    value: object


def caller_row(caller: Caller) -> JsonObject:
    """Return *caller* as JSON: what a program keeps is for an equal caller alone."""
    return {
        "user": caller.user,
        "tenant": caller.tenant,
        "scopes": sorted(caller.scopes),
        "attributes": dict(sorted(caller.attributes.items())),
    }


def encode_state(state: bytes) -> str:
    """Return a snapshot's state as text."""
    return b64encode(state).decode("ascii")


def encode(row: WaitingProgram | KeptValue) -> str:
    """Write a row."""
    return json.dumps({"kind": type(row).__name__, **asdict(row)})


def decode(text: str) -> WaitingProgram | KeptValue:
    """Read a row of this package."""
    row: dict[str, Any] = json.loads(text)
    if row.pop("kind") == KeptValue.__name__:
        return KeptValue(**row)
    calls = tuple(
        WaitingCall(**{**call, "call": _pending(call["call"])}) for call in row.pop("calls")
    )
    return WaitingProgram(**row, calls=calls)


def waiting_programs(store: ProgramStore) -> dict[str, WaitingProgram]:
    """Return the programs that wait for a decision, of all callers, by key, oldest first."""
    rows = ((key, decode(text)) for key, text in store.rows().items())
    return {
        key: row for key, row in rows if isinstance(row, WaitingProgram) and row.approved is None
    }


def decide(store: ProgramStore, key: str, *, is_approved: bool) -> WaitingProgram:
    """Decide about all calls of a program that waits.

    It goes on when its conversation asks for it, in any process that shares the store.

    Raises:
        InvalidRequestError: No program waits under *key*, or somebody has decided already.
    """
    text = store.read(key)
    row = None if text is None else decode(text)
    if text is None or not isinstance(row, WaitingProgram) or row.approved is not None:
        raise InvalidRequestError(f"no program {key!r} waits for a decision")
    row = replace(row, approved=is_approved)
    if not store.replace(key, text, encode(row)):
        raise InvalidRequestError(f"somebody else has decided about {key!r}")
    return row


def _pending(row: dict[str, Any]) -> PendingCall:
    return PendingCall(**{**row, "positional": tuple(row["positional"])})
