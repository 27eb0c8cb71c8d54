"""Storage of programs that wait for a person, and of values that programs stored."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Annotated, Literal, Protocol, runtime_checkable

from pydantic import ConfigDict, Field, TypeAdapter

from gateway.errors import ConfigError, InvalidRequestError
from gateway.plugins.programs.sandbox import ProgramSnapshot
from gateway.plugins.programs.tables import PROGRAMS, SqlPrograms
from gateway.runtime.json_models import StrictModel
from gateway.runtime.text import digest
from gateway.storage.protocol import TableStore
from gateway.types import Caller, JsonObject

MAX_ROWS = 200
"""Maximum number of rows of one caller, so that a model in a loop cannot fill the disk."""


class ProgramStore(Protocol):
    """Storage of rows, which are JSON texts with a text as key. May be used from any thread and by
    several processes at once.
    """

    def put(self, key: str, row: str, *, keep_s: float, most: int) -> None:
        """Store *row* under *key*, and delete old rows.

        Args:
            key: Prefix that identifies the caller, a point, and a random part.
            row: JSON text.
            keep_s: Rows older than this number of seconds are deleted.
            most: Maximum number of rows with the same prefix. The oldest are deleted.
        """

    def read(self, key: str) -> str | None:
        """Return the row under *key*. None if it does not exist."""

    def replace(self, key: str, old: str, new: str) -> bool:
        """Replace the row *old* by *new*. Return False if the row under *key* is no longer
        *old*.
        """

    def take(self, key: str) -> str | None:
        """Delete the row under *key* and return it. Of concurrent calls, only one gets the row."""

    def rows(self) -> Mapping[str, str]:
        """Return all rows by key, oldest first."""


@runtime_checkable
class KeepsPrograms(Protocol):
    """A `gateway.storage.protocol.Store` that also stores programs."""

    @property
    def programs(self) -> ProgramStore:
        """Storage of the rows of programs."""


def program_store(store: object) -> ProgramStore:
    """Return the storage of programs in *store*.

    Raises:
        ConfigError: If *store* does not store programs.
    """
    if isinstance(store, KeepsPrograms):
        return store.programs
    if isinstance(store, TableStore):
        return SqlPrograms(store.tables(PROGRAMS), wall=store.wall)
    raise ConfigError("the store cannot store programs: it needs 'tables' or 'programs'")


def new_key(caller: JsonObject) -> str:
    """Return a random key that cannot be guessed. All keys of *caller* have the same prefix."""
    return f"{digest(json.dumps(caller))[:12]}.{secrets.token_urlsafe(18)}"


class WaitingCall(StrictModel):
    """A call of a program that waits for a person's decision."""

    id: int
    """Number that identifies the call in its program."""
    tool: str
    """Canonical id of the called tool."""
    arguments: dict[str, object]
    digest: str
    """Digest of the tool's definition at the time of the call."""


class WaitingProgram(StrictModel):
    """A program that waits for a decision about its calls."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    kind: Literal["program"] = "program"
    caller: dict[str, object]
    """Caller for whom the program runs, in the form of `caller_row`."""
    functions: dict[str, str]
    """Ids of the tools that the program may call, keyed by function name."""
    calls: tuple[WaitingCall, ...]
    snapshot: ProgramSnapshot
    """State from which the program continues."""
    task: str
    keep_value: bool
    any_tool: bool
    found: tuple[str, ...] = ()
    """Names of tools that the program's searches have found."""
    approved: bool | None = None
    """Decision of a person: True if approved, False if refused. None while there is no decision."""


class KeptValue(StrictModel):
    """A value that a program stored for later programs."""

    kind: Literal["value"] = "value"
    caller: dict[str, object]
    value: object


Row = WaitingProgram | KeptValue
_ROW: TypeAdapter[Row] = TypeAdapter(Annotated[Row, Field(discriminator="kind")])


def read_row(store: ProgramStore, key: str) -> tuple[str, Row] | None:
    """Return the row under *key* as stored text and as parsed object. None if it does not exist."""
    text = store.read(key)
    return None if text is None else (text, _ROW.validate_json(text))


def caller_row(caller: Caller) -> JsonObject:
    """Return *caller* as JSON. Only an equal caller can use rows that were stored for it."""
    return {
        "user": caller.user,
        "tenant": caller.tenant,
        "scopes": sorted(caller.scopes),
        "attributes": dict(sorted(caller.attributes.items())),
    }


def waiting_programs(store: ProgramStore) -> dict[str, WaitingProgram]:
    """Return the waiting programs of all callers, keyed by program key, oldest first."""
    rows = ((key, _ROW.validate_json(text)) for key, text in store.rows().items())
    return {
        key: row for key, row in rows if isinstance(row, WaitingProgram) and row.approved is None
    }


def waiting_tools(store: ProgramStore, key: str) -> list[str]:
    """Return the ids of the tools that the program under *key* waits to call. Empty if there is no
    such program.
    """
    _, row = read_row(store, key) or ("", None)
    return [call.tool for call in row.calls] if isinstance(row, WaitingProgram) else []


def decide(store: ProgramStore, key: str, *, is_approved: bool) -> WaitingProgram:
    """Approve or refuse all calls of a waiting program.

    The program continues when its conversation resumes it, in any process that shares the store.

    Raises:
        InvalidRequestError: If no program waits under *key*, or there is already a decision.
    """
    text, row = read_row(store, key) or ("", None)
    if not isinstance(row, WaitingProgram) or row.approved is not None:
        raise InvalidRequestError(f"no program {key!r} waits for a decision")
    decided = row.model_copy(update={"approved": is_approved})
    if not store.replace(key, text, decided.model_dump_json()):
        raise InvalidRequestError(f"there is already a decision about {key!r}")
    return decided
