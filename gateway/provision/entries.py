"""What a registry says of a server, as values: the shape of its `server.json`, as far as it serves.

Everything in them is a stranger's text: it is shown, ranked and checked, never run as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

KNOWN = "known"
"""The source of an entry of the bundled list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One argument, environment variable, header or placeholder."""

    name: str
    """Of a positional argument: its hint."""
    description: str = ""
    flag: str = ""
    """What stands before the value on a command line, such as ``--port``; empty for none."""
    value: str | None = None
    """Fixed by the entry; ``{name}`` in it stands for one of *variables*."""
    default: str | None = None
    required: bool = False
    secret: bool = False
    variables: tuple[Input, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """One way to get the server: a package of a public index."""

    kind: str
    """``pypi``, ``npm``, ``oci`` … as the registry has it."""
    identifier: str
    version: str = ""
    transport: str = "stdio"
    arguments: tuple[Input, ...] = ()
    environment: tuple[Input, ...] = ()
    runtime_arguments: bool = False
    """Whether the entry wants arguments for the program that runs the package."""
    base_url: str = ""
    """The index, if the entry names one."""
    sha256: str = ""
    script: str = ""
    """The package's program, if it is known before the install; only of the bundled list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """Another way: a server that runs elsewhere."""

    transport: str
    url: str
    headers: tuple[Input, ...] = ()
    variables: tuple[Input, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One server of a registry, at one version."""

    name: str
    """``namespace/name``; the namespace is what the registry verified."""
    title: str = ""
    description: str = ""
    version: str = ""
    status: str = "active"
    """``active``, ``deprecated`` or ``deleted``."""
    latest: bool = True
    updated: str = ""
    """When it was last changed, RFC 3339; empty if the registry does not say."""
    source: str = KNOWN
    """Who says all this: `KNOWN`, or the registry's origin."""
    packages: tuple[Package, ...] = ()
    remotes: tuple[Remote, ...] = ()
    suspicions: tuple[str, ...] = ()
    """Why its text looks like an attack on a model."""

    @property
    def namespace(self) -> str:
        """What stands before the slash."""
        return self.name.partition("/")[0]

    @property
    def short(self) -> str:
        """What stands behind it."""
        return self.name.partition("/")[2]
