"""How the index is made and kept: derived edges, saved indexes, caches."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.checks import at_least, check


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOptions:
    """Which rules derive edges that nobody wrote. A host's own documents override them."""

    groups: bool = True
    """Tools of one server that share a word of their names, or a category."""
    phases: bool = True
    """What finds a thing comes before what inspects it, and that before what acts on it."""
    data_flow: bool = True
    """A field of one tool's output is a required argument of another."""
    suppliers: bool = True
    """A tool that needs nothing and gets X feeds a required argument called X."""
    calendar: bool = True
    """What tells the current date or time feeds required arguments written as one."""
    checks: bool = True
    """What validates X comes before what needs an X."""
    sign_in: bool = True
    """What signs in to something comes before what uses it."""
    connection: bool = True
    """What tells whether the machine is online comes before signing in."""
    mentions: bool = True
    """A description that names another tool of its server."""

    def __post_init__(self) -> None:
        """Check the types."""
        check(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOptions:
    """Indexes that outlive the process, so that the next start reads what this one made."""

    saved: bool = True
    """Whether they are saved and read. If the host gives a vector store of its own, they are only
    if ``Options.index_path`` says where."""
    min_tools: int = 200
    """An index of fewer tools is not saved: it is made fast enough."""
    kept: int = 4
    """How many are kept; those that were not used for longest are deleted."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        check(
            self,
            at_least("min_tools", self.min_tools, 1),
            at_least("kept", self.kept, 1),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheOptions:
    """Process-local caches: how many values, for how long. A size of 0 turns a cache off."""

    normalized_items: int = 2048
    normalized_ttl_s: float = 1800.0
    embedding_items: int = 2048
    embedding_ttl_s: float = 900.0
    result_items: int = 1024
    result_ttl_s: float = 300.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        check(
            self,
            *(at_least(name, getattr(self, name), 0) for name in self.__slots__),
        )
