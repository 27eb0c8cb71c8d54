"""Script that runs pip without starting other programs or importing installed packages.

``--only-binary`` is not enough, because pip builds a dependency given by URL, which runs its code.
A build and git need a new process, which the script refuses.

The new environment's interpreter runs it: ``python -I run_pip.py RUNNER ARGUMENT…``, where RUNNER
is pip's ``__pip-runner__.py``.
"""

from __future__ import annotations

import runpy
import sys

_PROGRAM_STARTS = frozenset(
    {"subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system"}
)
_MUSL_LOADER = "ld-musl"
"""Loader of libc, which pip starts on systems with musl to read its version."""


def main() -> None:
    """Run pip with the arguments of this script."""
    del sys.argv[0]
    sys.path[:] = [path for path in sys.path if not path.startswith(sys.prefix)]
    sys.addaudithook(refuse_programs)
    runpy.run_path(sys.argv[0], run_name="__main__")


def refuse_programs(event: str, arguments: tuple[object, ...]) -> None:
    """Raise an error if an audit *event* is the start of a program."""
    if event in _PROGRAM_STARTS and _MUSL_LOADER not in str(arguments[0]):
        raise PermissionError("pip must not start programs, because only wheels are installed")


if __name__ == "__main__":
    main()
