"""What a forked child must make anew: threads do not come along (`gunicorn --preload`).

An engine whose threads are gone can be neither asked nor ended, since its end waits for them. So
a child leaves it where it is for as long as it lives, and loads one of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Protocol
from weakref import WeakSet


class Beginning(Protocol):
    """Something with threads."""

    def begin(self) -> object:
        """Make all of it that runs; give what ran before and must never be ended."""
        ...


_LIVING: WeakSet[Beginning] = WeakSet()


def begin_anew_in_children(each: Beginning) -> None:
    """Have *each* begin anew in every process that is forked from this one."""
    _LIVING.add(each)


def _in_child() -> None:
    for each in tuple(_LIVING):
        _leave(each.begin())


def _leave(left: object) -> None:
    import ctypes  # noqa: PLC0415  (only a child needs it)

    hold: Callable[[object], None] = ctypes.pythonapi.Py_IncRef
    hold(ctypes.py_object(left))


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_in_child)
