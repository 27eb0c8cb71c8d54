"""The fields of a dataclass, told by the standard library once somebody asks for them."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING
from threading import RLock
from typing import Any, TypeVar

T = TypeVar("T")
FIELDS = "__dataclass_fields__"
"""Where the standard library keeps the fields of a class."""
_BESIDE = ("__dataclass_params__", "__match_args__")
if sys.version_info >= (3, 13):
    _BESIDE += ("__replace__",)
_INIT_ONLY = "InitVar"
_OF_OBJECTS = ("__dict__", "__weakref__")
_NO_FIELDS = ("ClassVar", _INIT_ONLY, "KW_ONLY")


def told(written: type[T], *, frozen: bool, kw_only: bool, eq: bool, **slots: bool) -> type[T]:
    """Have the standard library say of *written* what a dataclass of its kind says, and no more."""
    fields_only = dataclasses.dataclass(
        init=False,
        repr=False,
        eq=False,
        # True costs as much as all the rest; but what is derived must be as its bases are.
        frozen=frozen and any(map(dataclasses.is_dataclass, written.__bases__)),
        kw_only=kw_only,
        **slots,
    )
    if _INIT_ONLY in _annotated(written):
        raise TypeError(f"{written.__qualname__}: InitVar is not supported here")
    cls = fields_only(written)
    said = vars(cls)["__dataclass_params__"]
    said.init, said.repr, said.eq, said.frozen = True, True, eq, frozen
    return cls


def plain(written: type[Any]) -> bool:
    """Whether each annotation is a field, so that the names of the slots are theirs."""
    annotated = _annotated(written)
    return not any(word in annotated for word in _NO_FIELDS)


def _annotated(written: type[Any]) -> str:
    return " ".join(map(str, vars(written).get("__annotations__", {}).values()))


def slotted(
    written: type[T], late: LateFields, methods: dict[str, object], weakref_slot: bool
) -> type[T]:
    """Make *written* anew with a slot for each field, and with *methods*."""
    names = tuple(fields_of(written.__mro__[:0:-1]) | late.own)
    taken = {slot for base in written.__mro__[1:-1] for slot in _slots(base)}
    left_out = {*names, *_OF_OBJECTS}
    kept = {name: value for name, value in vars(written).items() if name not in left_out}
    slots = (*names, "__weakref__") if weakref_slot else names
    kept["__slots__"] = tuple(slot for slot in slots if slot not in taken)
    kept["__qualname__"] = written.__qualname__
    beside = {FIELDS: late, **{name: _LateTold(late, name) for name in _BESIDE}}
    kind: Any = type(written)
    made: type[T] = kind(written.__name__, written.__bases__, kept | methods | beside)
    return made


def _like(written: type[Any]) -> type[Any]:
    """Give a class as it was written, once more."""
    kind: Any = type(written)
    own = {name: value for name, value in vars(written).items() if name not in _OF_OBJECTS}
    made: type[Any] = kind(written.__name__, written.__bases__, own)
    return made


def _slots(base: type[Any]) -> Sequence[str]:
    slots = vars(base).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _own(written: type[Any]) -> dict[str, object]:
    """Give what *written* itself says of each field: a default, a `Field`, or `MISSING`."""
    own = vars(written)
    return {name: own.get(name, MISSING) for name in own.get("__annotations__", ())}


def fields_of(bases: Iterable[type[Any]]) -> dict[str, object]:
    """Give what is said of each field, by name; see `_own`.

    Args:
        bases: The furthest first.
    """
    found: dict[str, object] = {}
    for base in bases:
        said = vars(base).get(FIELDS)
        if isinstance(said, LateFields):
            found |= said.own
        elif said is not None:
            found |= {each.name: each for each in dataclasses.fields(base)}
    return found


class LateFields:
    """What the standard library says of a class, once somebody asks.

    Args:
        written: The class as it was written, without its slots.
        tell: Has the standard library say it of that.
    """

    telling = RLock()
    """One class at a time is told."""

    def __init__(self, written: type[Any], tell: Callable[[type[Any]], type[Any]]) -> None:
        self.own = _own(written)
        """See `_own`."""
        self._written = written
        self._tell = tell

    def __set_name__(self, cls: type[Any], name: str) -> None:
        """Take note of the class that has the slots."""
        self._cls = cls

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        """Give the fields by name."""
        self.tell()
        return getattr(owner, FIELDS)

    def tell(self) -> None:
        """Have it said, once; from then on all of it stands in its own place."""
        with LateFields.telling:
            if vars(self._cls)[FIELDS] is self:
                # Of a class apart: what is broken off, by Ctrl-C say, can be begun anew.
                said = vars(self._tell(_like(self._written)))
                for name in (*_BESIDE, FIELDS):
                    setattr(self._cls, name, said[name])


class _LateTold:
    """What it says beside the fields."""

    def __init__(self, fields: LateFields, name: str) -> None:
        self._fields = fields
        self._name = name

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        """Give it."""
        self._fields.tell()
        return getattr(owner, self._name)


def _begin_anew() -> None:
    # The thread that was telling a class did not come along: its class is told from the beginning.
    LateFields.telling = RLock()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_begin_anew)
