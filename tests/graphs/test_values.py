"""`dataclass` behaves as the one of the standard library, and makes no method before its time."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, FrozenInstanceError, InitVar, field
from types import FunctionType
from typing import Any, ClassVar, get_type_hints

import pytest

from graphs import values

LATE = ("__init__", "__eq__", "__hash__")


@values.dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Somewhere."""

    x: int
    y: int = 0
    names: list[str] = field(default_factory=list, compare=False)


@values.dataclass(frozen=True, slots=True, kw_only=True)
class Named(Point):
    """Somewhere with a name."""

    name: str = "here"


def made(dataclass: Callable[..., Any], *, plain: bool = False, **how: Any) -> Any:
    """A class of every kind of field, by a decorator; *plain* without what is none."""

    class Whole:
        """Everything at once."""

        first: int
        second: str = "two"
        _: KW_ONLY
        third: tuple[int, ...] = ()
        fourth: list[int] = field(default_factory=list, compare=False, kw_only=True)
        shy: str = field(default="hush", repr=False)
        apart: int = field(default=0, compare=False)
        own: list[int] = field(default_factory=list, init=False, compare=False)
        fixed: int = field(default=7, init=False)
        later: int = field(init=False, repr=False, compare=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "later", self.first + 1)

    if plain:
        del Whole.__annotations__["_"]
    return dataclass(**how)(Whole)


KINDS = [
    {"frozen": frozen, "slots": slots, "eq": eq, "kw_only": kw_only, "plain": plain}
    for plain in (False, True)
    for frozen in (False, True)
    for slots in (False, True)
    for eq in (False, True)
    for kw_only in (False, True)
]


def behaviour(kind: Any) -> list[object]:
    """What can be seen of a class of `made` and of its objects."""
    one, same = (kind(first=1, third=(3,), apart=apart) for apart in (4, 5))
    other = dataclasses.replace(one, first=2)
    seen: list[object] = [repr(one), repr(other), one == same, one == other, one == "one"]
    seen += [one.later, other.later, one.fourth is same.fourth, one.own is same.own]
    seen += [[each.name for each in dataclasses.fields(kind)], dataclasses.asdict(one)]
    seen += [str(inspect.signature(kind)), inspect.get_annotations(kind.__init__)]
    seen += [get_type_hints(kind), get_type_hints(kind.__init__)]
    seen += [kind.__match_args__, kind.__doc__, kind.__name__, kind.__qualname__, kind.__module__]
    seen += [kind.__hash__ is None, kind.__hash__ is object.__hash__]
    seen += [kind.__init__.__qualname__, getattr(kind, "__slots__", None)]
    for refused in (
        kind,
        lambda: kind(1, no=2),
        lambda: kind(1, "two", (3,)),
        lambda: setattr(one, "second", "three"),
        lambda: delattr(one, "second"),
    ):
        seen.append(refusal(refused))
    if kind.__hash__ not in (None, object.__hash__):
        seen += [hash(one) == hash(same), hash(one) == hash(other), hash(one)]
    return seen


def refusal(work: Callable[[], object]) -> type[Exception] | None:
    try:
        work()
    except (TypeError, AttributeError) as error:
        return type(error)
    return None


@pytest.mark.parametrize("how", KINDS, ids=str)
def test_a_class_behaves_as_that_of_the_standard_library(how: dict[str, bool]) -> None:
    """Signature, comparison, text, what it refuses: whoever reads `@dataclass` knows it all."""
    assert behaviour(made(dataclasses.dataclass, **how)) == behaviour(made(values.dataclass, **how))


def compiled(kind: Any) -> list[str]:
    """Which of the methods are made."""
    return [name for name in LATE if isinstance(vars(kind)[name], FunctionType)]


def test_no_method_is_compiled_before_it_is_used() -> None:
    """Most classes of a start have no object, or one."""
    kind = made(values.dataclass, frozen=True, slots=True, kw_only=True)

    before = compiled(kind)
    few = [kind(first=1, shy=str(at)) for at in range(16)]
    filled = compiled(kind)
    many = kind(first=1, shy="15")

    assert [[], [], ["__init__"]] == [before, filled, compiled(kind)]
    assert few[15] == many != few[14]
    assert [[], ["__init__", "__eq__"]] == [before, compiled(kind)]


@pytest.mark.parametrize("before", [0, 20])
def test_what_is_given_wrong_is_told_by_name(before: int) -> None:
    """The first objects of a class are made otherwise than the rest; what is wrong is the same."""
    kind = made(values.dataclass, frozen=True, kw_only=True)
    for _ in range(before):
        kind(first=1)

    with pytest.raises(TypeError, match=r"Whole\.__init__\(\) missing 1 .* argument: 'first'"):
        kind()
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'last'"):
        kind(first=1, last=2)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'fixed'"):
        kind(first=1, fixed=2)


def test_fields_are_told_when_somebody_asks() -> None:
    """Of most classes of a start nobody does; who derives from one does not have to either."""

    @values.dataclass(frozen=True, slots=True, kw_only=True)
    class Base:
        x: int
        y: list[int] = field(default_factory=list)

    @values.dataclass(frozen=True, slots=True, kw_only=True)
    class Derived(Base):
        y: list[int] = field(default_factory=lambda: [2])
        z: int = 3

    seen = [(one.x, one.y, one.z) for one in (Derived(x=at) for at in range(16))]
    before = ["__dataclass_fields__" in vars(kind) and told(kind) for kind in (Base, Derived)]
    names = [each.name for each in dataclasses.fields(Derived)]
    after = [told(kind) for kind in (Base, Derived)]

    assert [(at, [2], 3) for at in range(16)] == seen
    assert [[False, False], [True, True]] == [before, after]
    assert ["x", "y", "z"] == names


def told(kind: type[Any]) -> bool:
    return isinstance(vars(kind)["__dataclass_fields__"], dict)


@pytest.mark.parametrize(
    "ask", [dataclasses.fields, dataclasses.is_dataclass, dataclasses.asdict, dataclasses.replace]
)
def test_whoever_asks_first_is_told(ask: Callable[[Any], object]) -> None:
    """The standard library and others look for the fields in the class."""
    kinds = (
        made(kind, plain=True, slots=True) for kind in (dataclasses.dataclass, values.dataclass)
    )
    expected, found = (ask(kind(first=1)) for kind in kinds)

    assert str(expected) == str(found)


def test_several_threads_are_told_the_same() -> None:
    """To have it said twice would lose what the first time took away."""
    kind = made(values.dataclass, plain=True, slots=True)
    with ThreadPoolExecutor(8) as pool:
        every = list(pool.map(lambda _: dataclasses.fields(kind), range(64)))

    assert all(each is one for fields in every for each, one in zip(fields, every[0], strict=True))


# A thread is telling a class when the process forks; a child that hangs ends by its own alarm.
FORKING = """
import dataclasses, os, signal, threading
from graphs.values import dataclass

begun, forked = threading.Event(), threading.Event()

class Slow(type):
    def __delattr__(cls, name):
        super().__delattr__(name)
        begun.set()
        forked.wait()

@dataclass(frozen=True, slots=True, kw_only=True)
class Told(metaclass=Slow):
    x: list[int] = dataclasses.field(default_factory=list)

@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    x: int

thread = threading.Thread(target=dataclasses.fields, args=(Told,))
thread.start()
begun.wait()
child = os.fork()
forked.set()
if not child:
    signal.alarm(300)
    os._exit(7 if len(dataclasses.fields(Other)) == len(dataclasses.fields(Told)) == 1 else 1)
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(dataclasses.fields(Told)))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="it forks")
def test_a_child_is_told_what_another_thread_was_being_told() -> None:
    """That thread, with the lock that it holds, did not come along."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ("7 1", "") == (done.stdout.strip(), done.stderr)


def test_who_is_interrupted_while_it_is_told_is_told_again() -> None:
    """The standard library takes defaults away from the class that it reads; Ctrl-C comes any time.

    In a notebook the process goes on, and the class with it.
    """
    broken: list[str] = []

    class Interrupted(type):
        def __delattr__(cls, name: str) -> None:
            super().__delattr__(name)
            broken.append(name)
            if len(broken) == 1:
                raise KeyboardInterrupt

    @values.dataclass(frozen=True, slots=True, kw_only=True)
    class Held(metaclass=Interrupted):
        x: int
        y: list[int] = field(default_factory=list)

    with pytest.raises(KeyboardInterrupt):
        dataclasses.fields(Held)

    assert [list] == [each.default_factory for each in dataclasses.fields(Held) if each.name == "y"]
    assert [[]] * 20 == [each.y for each in (Held(x=1) for _ in range(20))]
    assert ["y", "y"] == broken


def test_a_method_is_compiled_once() -> None:
    """What was looked up once costs what any method costs."""
    kind = made(values.dataclass, frozen=True)

    assert kind.__init__ is kind.__init__ is vars(kind)["__init__"]


def test_what_is_derived_has_the_fields_of_both() -> None:
    """Each class has methods of its own, whichever of the two is used first."""
    named, bare = Named(x=1, name="there"), Point(x=1)

    assert "Named(x=1, y=0, names=[], name='there')" == repr(named)
    assert (named, bare) == (Named(x=1, name="there"), Point(x=1))
    assert named != bare
    assert len({named, bare, Named(x=1, name="there")}) == 2


def test_a_host_derives_a_frozen_dataclass_of_its_own() -> None:
    """The standard library must find ours to be frozen, or it would refuse."""

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Own(Point):
        z: int = 3

    assert (1, 0, 3) == (Own(x=1).x, Own(x=1).y, Own(x=1).z)
    with pytest.raises(FrozenInstanceError):
        Own(x=1).x = 2  # type: ignore[misc]  # (the point of the test)


@pytest.mark.parametrize("dataclass", [dataclasses.dataclass, values.dataclass])
@pytest.mark.parametrize("slots", [(True, False), (False, True)], ids=str)
def test_one_of_base_and_derived_has_slots(
    dataclass: Callable[..., Any], slots: tuple[bool, bool]
) -> None:
    """A field stands where its class has room for it, in the first objects and in all others."""

    class Base:
        x: int

    base = dataclass(frozen=True, slots=slots[0])(Base)

    class Derived(base):  # type: ignore[misc, valid-type]  # (made by the line above)
        y: int = 2

    derived = dataclass(frozen=True, slots=slots[1])(Derived)

    assert [(1, 2)] * 20 == [(each.x, each.y) for each in (derived(x=1) for _ in range(20))]
    assert derived(1) == derived(x=1)


@pytest.mark.parametrize("dataclass", [dataclasses.dataclass, values.dataclass])
def test_every_object_is_made_alike(dataclass: Callable[..., Any]) -> None:
    """Those that are filled before there is an `__init__` are as those that it makes."""

    class Doubled:
        x: int

        def __setattr__(self, name: str, value: int) -> None:
            object.__setattr__(self, name, 2 * value)

    doubled = dataclass()(Doubled)

    class Later(doubled):  # type: ignore[misc, valid-type]  # (made by the line above)
        def __post_init__(self) -> None:
            raise AssertionError  # It is no dataclass: its base knows nothing of it.

    assert [2] * 20 == [Later(x=1).x for _ in range(20)]


@pytest.mark.parametrize("dataclass", [dataclasses.dataclass, values.dataclass])
@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("slots", [False, True])
def test_a_property_of_a_plain_subclass_is_set_in_every_object(
    dataclass: Callable[..., Any], frozen: bool, slots: bool
) -> None:
    """The first sixteen objects and all later ones go through it, as in the standard library."""

    class Base:
        x: int
        names: list[str] = field(default_factory=list)

    base = dataclass(frozen=frozen, slots=slots)(Base)

    class Doubled(base):  # type: ignore[misc, valid-type]  # (made by the line above)
        @property
        def x(self) -> int:
            return int(self.twice)

        @x.setter
        def x(self, value: int) -> None:
            object.__setattr__(self, "twice", 2 * value)

    class Fixed(base):  # type: ignore[misc, valid-type]  # (made by the line above)
        x = property(lambda self: 5)

    assert [(2, [])] * 20 == [(each.x, each.names) for each in (Doubled(x=1) for _ in range(20))]
    assert [AttributeError] * 20 == [refusal(lambda: Fixed(x=1)) for _ in range(20)]
    assert 1 == base(x=1).x


def test_an_init_only_field_is_refused() -> None:
    """Left out of ``__init__`` without a word, it would be missed at the first object."""

    class Asked:
        x: int
        kept: ClassVar[str] = "for all"
        asked: InitVar[int]

    with pytest.raises(TypeError, match=r"Asked: InitVar is not supported here"):
        values.dataclass(frozen=True)(Asked)


@pytest.mark.parametrize("how", KINDS, ids=str)
def test_a_class_tells_how_it_was_made(how: dict[str, bool]) -> None:
    """Others that read dataclasses look there."""
    kinds = (made(kind, **how) for kind in (dataclasses.dataclass, values.dataclass))
    told, expected = (
        [getattr(kind.__dataclass_params__, name) for name in ("init", "repr", "eq", "frozen")]
        for kind in kinds
    )

    assert expected == told


def pickled(each: Any) -> Any:
    return pickle.loads(pickle.dumps(each))  # noqa: S301  (written a moment ago)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
def test_a_copy_is_equal(copied: Callable[[Any], Any]) -> None:
    """Frozen objects travel between processes."""
    point = Named(x=1, names=["a"], name="there")

    assert (point, ["a"]) == (copied(point), copied(point).names)


def test_a_method_of_its_own_stays() -> None:
    """As in the standard library, what a class writes itself is not replaced."""

    @values.dataclass(frozen=True, kw_only=True)
    class Loud:  # noqa: PLW1641  (it has one: the point of the test)
        x: int

        def __repr__(self) -> str:
            return "LOUD"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Loud)

    assert ("LOUD", True) == (repr(Loud(x=1)), Loud(x=1) == Loud(x=2))
    assert hash(Loud(x=1)) != hash(Loud(x=2))


def test_an_object_that_holds_itself_can_be_shown() -> None:
    """A text must not go on for ever."""
    point = Point(x=1)
    point.names.append(point)  # type: ignore[arg-type]  # (whatever holds itself)

    assert "Point(x=1, y=0, names=[...])" == repr(point)


def test_a_slot_for_weak_references() -> None:
    """For what is remembered as long as somebody holds it."""

    @values.dataclass(eq=False, slots=True, kw_only=True, weakref_slot=True)
    class Held:
        x: int

    held = Held(x=1)

    assert held is weakref.ref(held)()
