"""Storage of programs that wait for a person, and of values for later programs."""

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
"""Maximum number of rows of one caller. A model in a loop cannot fill the disk."""


class ProgramStore(Protocol):
    """Storage of JSON texts, keyed by text, for any thread and several processes."""

    def put(self, key: str, row: str, *, keep_s: float, most: int) -> None:
        """Store *row*, and delete rows that are too old or too many.

        Args:
            key: Prefix that identifies the caller, a point, and a random part.
            row: JSON text.
            keep_s: Maximum age of rows in seconds.
            most: Maximum number of rows with the same prefix. The oldest are deleted.
        """

    def read(self, key: str) -> str | None:
        """Return the row under *key*, or None."""

    def replace(self, key: str, old: str, new: str) -> bool:
        """Replace the row *old* by *new*. Return False if another row is under *key*."""

    def take(self, key: str) -> str | None:
        """Delete the row under *key* and return it, to only one of concurrent calls."""

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
    """Return an unguessable key. All keys of *caller* have the same prefix."""
    return f"{digest(json.dumps(caller))[:12]}.{secrets.token_urlsafe(18)}"


class WaitingCall(StrictModel):
    """A call of a program that waits for a person's decision."""

    id: int
    """Number of the call in its program."""
    tool: str
    """Canonical id of the tool."""
    arguments: dict[str, object]
    digest: str
    """Digest of the tool's definition at the time of the call."""


class WaitingProgram(StrictModel):
    """A program that waits for a decision about its calls."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    kind: Literal["program"] = "program"
    caller: dict[str, object]
    """Caller in the form of `caller_row`."""
    functions: dict[str, str]
    """Ids of the program's tools, keyed by function name."""
    calls: tuple[WaitingCall, ...]
    snapshot: ProgramSnapshot
    task: str
    keep_value: bool
    any_tool: bool
    found: tuple[str, ...] = ()
    """Names of tools that searches of the program found."""
    approved: bool | None = None
    """Decision of a person; None until there is one."""


class KeptValue(StrictModel):
    """A value that a program stored for later programs."""

    kind: Literal["value"] = "value"
    caller: dict[str, object]
    value: object


Row = WaitingProgram | KeptValue
_ROW: TypeAdapter[Row] = TypeAdapter(Annotated[Row, Field(discriminator="kind")])


def read_row(store: ProgramStore, key: str) -> tuple[str, Row] | None:
    """Return the row under *key* as stored text and as parsed object, or None."""
    text = store.read(key)
    return None if text is None else (text, _ROW.validate_json(text))


def caller_row(caller: Caller) -> JsonObject:
    """Return *caller* as JSON. Only an equal caller can use its rows."""
    return {
        "user": caller.user,
        "tenant": caller.tenant,
        "scopes": sorted(caller.scopes),
        "attributes": dict(sorted(caller.attributes.items())),
    }


def waiting_programs(store: ProgramStore) -> dict[str, WaitingProgram]:
    """Return the waiting programs of all callers, by key, oldest first."""
    rows = ((key, _ROW.validate_json(text)) for key, text in store.rows().items())
    return {
        key: row for key, row in rows if isinstance(row, WaitingProgram) and row.approved is None
    }


def waiting_tools(store: ProgramStore, key: str) -> list[str]:
    """Return the ids of the tools that a program waits to call; empty if it does not exist."""
    _, row = read_row(store, key) or ("", None)
    return [call.tool for call in row.calls] if isinstance(row, WaitingProgram) else []


def decide(store: ProgramStore, key: str, *, is_approved: bool) -> WaitingProgram:
    """Approve or refuse all calls of a waiting program, which any replica can then resume.

    Raises:
        InvalidRequestError: If no program under *key* waits for a decision.
    """
    text, row = read_row(store, key) or ("", None)
    if not isinstance(row, WaitingProgram) or row.approved is not None:
        raise InvalidRequestError(f"no program {key!r} waits for a decision")
    decided = row.model_copy(update={"approved": is_approved})
    if not store.replace(key, text, decided.model_dump_json()):
        raise InvalidRequestError(f"there is already a decision about {key!r}")
    return decided
