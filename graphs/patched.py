"""A table of which little changes: what came and went lies over the rest, which is not copied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar, cast, overload

_K = TypeVar("_K")
_V = TypeVar("_V")
_T = TypeVar("_T")
_SLACK = 64
_SHARE = 16
"""More than one key in so many, and some, are not laid over: all is written anew."""
_GONE: Final = object()


class Patched(Mapping[_K, _V]):
    """A table and what is otherwise by now. Immutable; keys come in no order.

    Args:
        whole: What nobody changes any more.
        over: What the keys mean that came, changed or went since.
        size: How many keys there are.
    """

    __slots__ = ("_over", "_size", "_whole")

    def __init__(self, whole: Mapping[_K, _V], over: Mapping[_K, object], size: int) -> None:
        self._whole = whole
        self._over = over
        self._size = size

    def changed(self, gone: Iterable[_K], new: Mapping[_K, _V]) -> Patched[_K, _V]:
        """Give the same without some keys and with others.

        Args:
            gone: Keys that are there; each may be among the new ones again.
            new: What comes, or means something else.

        Raises:
            KeyError: If a key cannot go because it is not there.
        """
        left = dict.fromkeys(gone, _GONE)
        if len(self._over) + len(left) + len(new) > self._size // _SHARE + _SLACK:
            return self._anew(left, new)
        for key in left:
            self[key]
        came = sum(key in left or key not in self for key in new)
        over: dict[_K, object] = {**self._over, **left, **new}
        return Patched(self._whole, over, self._size - len(left) + came)

    def _anew(self, gone: Iterable[_K], new: Mapping[_K, _V]) -> Patched[_K, _V]:
        # From table to table, no key is hashed again.
        held: dict[_K, object] = {**self._whole, **self._over}
        whole = {key: cast("_V", value) for key, value in held.items() if value is not _GONE}
        for key in gone:
            del whole[key]
        whole |= new
        return Patched(whole, {}, len(whole))

    @property
    def apart(self) -> int:
        """How many keys are looked up apart."""
        return len(self._over)

    def __getitem__(self, key: _K) -> _V:
        """Give what *key* means."""
        found = self._over.get(key, self)
        if found is self:
            return self._whole[key]
        if found is _GONE:
            raise KeyError(key)
        return cast("_V", found)

    @overload
    def get(self, key: _K, default: None = None, /) -> _V | None: ...
    @overload
    def get(self, key: _K, default: _T, /) -> _V | _T: ...
    def get(self, key: _K, default: object = None, /) -> object:
        """Give what *key* means, or *default*."""
        found = self._over.get(key, self)
        if found is self:
            return self._whole.get(key, default)
        return default if found is _GONE else found

    def __contains__(self, key: object) -> bool:
        """Say whether *key* means anything."""
        found = self._over.get(key, self)  # type: ignore[arg-type]
        return key in self._whole if found is self else found is not _GONE

    def __iter__(self) -> Iterator[_K]:
        """Give the keys."""
        yield from (key for key in self._whole if key not in self._over)
        yield from (key for key, value in self._over.items() if value is not _GONE)

    def __len__(self) -> int:
        """Count the keys."""
        return self._size


def patched(table: Mapping[_K, _V], gone: Iterable[_K], new: Mapping[_K, _V]) -> Patched[_K, _V]:
    """Give *table*, which nobody changes any more, without some keys and with others.

    Args:
        table: Of any kind.
        gone: See `Patched.changed`.
        new: See `Patched.changed`.
    """
    held = table if isinstance(table, Patched) else Patched(table, {}, len(table))
    return held.changed(gone, new)
