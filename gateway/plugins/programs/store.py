"""What outlives a program: values that it keeps, and programs that wait for a person."""

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
"""So many rows of one caller are kept: a model in a loop must not fill the disk."""


class ProgramStore(Protocol):
    """Rows of JSON by key. Used from any thread, and by several processes at once."""

    def put(self, key: str, row: str, *, keep_s: float, most: int) -> None:
        """Keep *row*; delete all that was put longer ago than *keep_s*.

        Of keys with the same beginning up to a point, the newest *most* stay.
        """

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
    if isinstance(store, KeepsPrograms):
        return store.programs
    if isinstance(store, TableStore):
        return SqlPrograms(store.tables(PROGRAMS), wall=store.wall)
    raise ConfigError("the store keeps no programs: give it 'tables', or 'programs'")


def new_key(caller: JsonObject) -> str:
    """Return a key that cannot be guessed, with the beginning of all keys of *caller*."""
    return f"{digest(json.dumps(caller))[:12]}.{secrets.token_urlsafe(18)}"


class WaitingCall(StrictModel):
    """A call of a program that waits for a person."""

    id: int
    """Its number in the program."""
    tool: str
    """The canonical id."""
    arguments: dict[str, object]
    digest: str
    """Of the tool's definition, as it is asked about."""


class WaitingProgram(StrictModel):
    """A program that waits for a decision about its calls."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    kind: Literal["program"] = "program"
    caller: dict[str, object]
    """The party that it runs for; see `caller_row`."""
    functions: dict[str, str]
    """The ids of its tools, by the functions' names."""
    calls: tuple[WaitingCall, ...]
    snapshot: ProgramSnapshot
    """From which it goes on."""
    task: str
    keep_value: bool
    any_tool: bool
    found: tuple[str, ...] = ()
    """The names of tools that its searches have found."""
    approved: bool | None = None
    """None until somebody has decided."""


class KeptValue(StrictModel):
    """The value of a program, for the next ones."""

    kind: Literal["value"] = "value"
    caller: dict[str, object]
    value: object


Row = WaitingProgram | KeptValue
_ROW: TypeAdapter[Row] = TypeAdapter(Annotated[Row, Field(discriminator="kind")])


def read_row(store: ProgramStore, key: str) -> tuple[str, Row] | None:
    """Return a row of *store*, as it stands there and read; None if there is none."""
    text = store.read(key)
    return None if text is None else (text, _ROW.validate_json(text))


def caller_row(caller: Caller) -> JsonObject:
    """Return *caller* as JSON: what a program keeps is for an equal caller alone."""
    return {
        "user": caller.user,
        "tenant": caller.tenant,
        "scopes": sorted(caller.scopes),
        "attributes": dict(sorted(caller.attributes.items())),
    }


def waiting_programs(store: ProgramStore) -> dict[str, WaitingProgram]:
    """Return the programs that wait for a decision, of all callers, by key, oldest first."""
    rows = ((key, _ROW.validate_json(text)) for key, text in store.rows().items())
    return {
        key: row for key, row in rows if isinstance(row, WaitingProgram) and row.approved is None
    }


def waiting_tools(store: ProgramStore, key: str) -> list[str]:
    """Return the tools that the program under *key* wants to call; none if nothing waits there."""
    _, row = read_row(store, key) or ("", None)
    return [call.tool for call in row.calls] if isinstance(row, WaitingProgram) else []


def decide(store: ProgramStore, key: str, *, is_approved: bool) -> WaitingProgram:
    """Decide about all calls of a program that waits.

    It goes on when its conversation asks for it, in any process that shares the store.

    Raises:
        InvalidRequestError: No program waits under *key*, or there is a decision already.
    """
    text, row = read_row(store, key) or ("", None)
    if not isinstance(row, WaitingProgram) or row.approved is not None:
        raise InvalidRequestError(f"no program {key!r} waits for a decision")
    decided = row.model_copy(update={"approved": is_approved})
    if not store.replace(key, text, decided.model_dump_json()):
        raise InvalidRequestError(f"somebody else has decided about {key!r}")
    return decided
