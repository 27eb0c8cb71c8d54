"""`dataclass`, as in the standard library, but for when it is made: what is used, when it is used.

The standard library writes and compiles every method of every class, and reads every field, 0.4 ms
a class, whether anybody will use it or not; a start makes two hundred classes. Here a class costs
a tenth: its slots. Its methods, and what `dataclasses.fields` gives, are made when somebody looks.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError
from functools import partial
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, TypeVar

from graphs.latefields import LateFields, fields_of, plain, slotted, told

__all__ = ["dataclass"]

T = TypeVar("T")
_FEW = 16
"""To make an ``__init__`` costs what it costs to fill so many objects without it."""


def _dataclass(
    *,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
    eq: bool = True,
    weakref_slot: bool = False,
) -> Callable[[type[T]], type[T]]:
    """Do what `dataclasses.dataclass` does with the same arguments."""

    def made(written: type[T]) -> type[T]:
        # The standard library looks up the signature of a class that says nothing of itself.
        written.__doc__ = written.__doc__ or written.__name__
        methods = _methods(frozen=frozen, slots=slots, eq=eq)
        own = {name: method for name, method in methods.items() if vars(written).get(name) is None}
        tell = partial(told, frozen=frozen, kw_only=kw_only, eq=eq)
        if slots and plain(written):
            return slotted(written, LateFields(written, tell), own, weakref_slot)
        cls = tell(written, slots=slots, weakref_slot=weakref_slot)
        for name, method in own.items():
            setattr(cls, name, method)
            if isinstance(method, _Late):
                method.__set_name__(cls, name)
        return cls

    return made


def _methods(*, frozen: bool, slots: bool, eq: bool) -> dict[str, object]:
    put = object.__setattr__ if frozen else setattr
    methods: dict[str, object] = {"__init__": _LateInit(_init, put), "__repr__": _Late(_repr)}
    if eq:
        methods |= {"__eq__": _Late(_eq), "__hash__": _Late(_hash) if frozen else None}
    if frozen:
        methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
    if frozen and slots:
        # Or a copy would be made by setting what must not be set.
        methods |= {"__getstate__": _state, "__setstate__": _restore}
    return methods


class _Late:
    """A method that is made when it is first looked up, and from then on stands in its own place.

    Args:
        make: Makes it.
    """

    def __init__(self, make: Callable[[type[Any]], Callable[..., Any]]) -> None:
        self._make = make

    def __set_name__(self, cls: type[Any], name: str) -> None:
        """Take note of whose it is."""
        self._cls = cls

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        """Make the method, and give it."""
        cls, method = self._cls, self._make(self._cls)
        method.__module__ = cls.__module__
        method.__qualname__ = f"{cls.__qualname__}.{method.__name__}"
        setattr(cls, method.__name__, method)
        return method.__get__(instance, owner)


class _LateInit(_Late):
    """An ``__init__`` that is made when its class has a few objects: most have one or two.

    Args:
        make: Makes it.
        put: Sets a field of the first few.
    """

    def __init__(
        self,
        make: Callable[[type[Any]], Callable[..., Any]],
        put: Callable[[object, str, object], None],
    ) -> None:
        super().__init__(make)
        self._put = put
        self._left = _FEW

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        """Give what fills *instance* field by field, or the method itself."""
        if self._left <= 0 or not isinstance(instance, self._cls):
            return super().__get__(instance, owner)
        self._left -= 1
        return partial(self._fill, instance)

    def _fill(self, instance: Any, /, *args: object, **given: object) -> None:
        values = None if args else _values(self._cls, given)
        if values is None:
            # By position, or wrong: the method itself says best what it lacks.
            super().__get__(instance, type(instance))(*args, **given)
            return
        _fill(self._cls, instance, values, self._put)


def _fill(
    cls: type[Any],
    instance: Any,
    values: Mapping[str, object],
    put: Callable[[object, str, object], None],
) -> None:
    """Do what the ``__init__`` of *cls* does, with the value of each field."""
    for name, value in values.items():
        put(instance, name, value)
    if hasattr(cls, "__post_init__"):
        instance.__post_init__()


def _fill_below(cls: type[Any], instance: Any, local: Mapping[str, object]) -> None:
    """Fill an object of a subclass of frozen *cls*; among the *local* names are the parameters."""
    names = (field.name for field in dataclasses.fields(cls) if field.init)
    given = {name: local[name] for name in names if local[name] is not _FACTORY}
    _fill(cls, instance, _values(cls, given) or {}, object.__setattr__)


def _values(cls: type[Any], given: dict[str, object]) -> dict[str, object] | None:
    """Give the value of each field; None if one lacks it, or something *given* is of no field."""
    left = dict(given)
    values: dict[str, object] = {}
    for name, said in fields_of(reversed(cls.__mro__)).items():
        field = said if isinstance(said, Field) else None
        if name in left and (field is None or field.init):
            values[name] = left.pop(name)
        elif field is not None and field.default_factory is not MISSING:
            values[name] = field.default_factory()
        elif (default := said if field is None else field.default) is not MISSING:
            values[name] = default
        elif field is None or field.init:
            return None
    return None if left else values


class _Factory:
    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()
"""What stands in a signature where a default is made for each."""


def _init(cls: type[Any]) -> Callable[..., Any]:
    called: dict[str, Any] = {"_factory": _FACTORY}
    positional, named = ["self"], list[str]()
    body: list[str] = []
    for field in dataclasses.fields(cls):
        parameter, value = _given(field, called)
        if parameter:
            (named if field.kw_only else positional).append(parameter)
        if value:
            body.append(_put(cls, field.name, value, called))
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    if cls.__dataclass_params__.frozen:
        # A class below this one may have a property where this one has a slot.
        called |= {"_cls": cls, "_below": _fill_below}
        body.insert(0, "if self.__class__ is not _cls: return _below(_cls, self, locals())")
    star = ["*"] if named else []
    made = _compiled(cls, "__init__", [*positional, *star, *named], body or ["pass"], called)
    types = {field.name: field.type for field in dataclasses.fields(cls) if field.init}
    made.__annotations__ = {**types, "return": None}
    return made


def _given(field: dataclasses.Field[Any], called: dict[str, Any]) -> tuple[str, str]:
    """Give the parameter of *field*, and the expression of its value; empty where there is none."""
    name = field.name
    if field.default_factory is not MISSING:
        called[f"_make_{name}"] = field.default_factory
        made, default = f"_make_{name}()", "_factory"
        value = f"{made} if {name} is {default} else {name}"
    elif field.default is not MISSING:
        made = default = f"_default_{name}"
        called[default] = field.default
        value = name
    else:
        return (name, name) if field.init else ("", "")
    return (f"{name}={default}", value) if field.init else ("", made)


def _put(cls: type[Any], name: str, value: str, called: dict[str, Any]) -> str:
    if not cls.__dataclass_params__.frozen:
        return f"self.{name} = {value}"
    slot = getattr(cls, name, None)
    if not isinstance(slot, MemberDescriptorType):
        return f"self.__dict__[{name!r}] = {value}"
    # Half of what `object.__setattr__` costs, which would look for the slot each time.
    called[f"_set_{name}"] = slot.__set__
    return f"_set_{name}(self, {value})"


def _repr(cls: type[Any]) -> Callable[..., Any]:
    shown = (field.name for field in dataclasses.fields(cls) if field.repr)
    told = ", ".join(f"{name}={{self.{name}!r}}" for name in shown)
    body = f'return f"{{self.__class__.__qualname__}}({told})"'
    return recursive_repr()(_compiled(cls, "__repr__", ["self"], [body]))


def _eq(cls: type[Any]) -> Callable[..., Any]:
    mine, others = _compared(cls, "self"), _compared(cls, "other")
    told = f"return {mine} == {others} if other.__class__ is self.__class__ else NotImplemented"
    return _compiled(cls, "__eq__", ["self", "other"], [told])


def _hash(cls: type[Any]) -> Callable[..., Any]:
    return _compiled(cls, "__hash__", ["self"], [f"return hash({_compared(cls, 'self')})"])


def _compared(cls: type[Any], of: str) -> str:
    names = (f"{of}.{field.name}" for field in dataclasses.fields(cls) if field.compare)
    return f"({''.join(f'{name}, ' for name in names)})"


def _compiled(
    cls: type[Any],
    name: str,
    parameters: Sequence[str],
    body: Sequence[str],
    called: Mapping[str, object] | None = None,
) -> Callable[..., Any]:
    """Compile a method in the module of *cls*, where its annotations are looked up.

    Args:
        cls: Whose.
        name: Its name.
        parameters: As they stand in its head.
        body: Its lines.
        called: What they call by names that the module does not have.
    """
    lines = [
        f"def _made({', '.join(called or ())}):",
        f" def {name}({', '.join(parameters)}):",
        *(f"  {line}" for line in body),
        f" return {name}",
    ]
    held: dict[str, Any] = {}
    exec("\n".join(lines), vars(sys.modules[cls.__module__]), held)  # noqa: S102  (our own words, and the names of fields)
    made: Callable[..., Any] = held["_made"](**(called or {}))
    return made


def _refuse_to_set(_self: object, name: str, _value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _restore(self: Any, state: Sequence[object]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


if TYPE_CHECKING:
    # To a type checker it is that of the standard library, with all that it knows of it.
    from dataclasses import dataclass
else:
    dataclass = _dataclass
