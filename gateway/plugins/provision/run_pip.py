"""A program: run pip so that it starts no other program and imports nothing of what it installs.

``--only-binary`` alone is not enough: pip builds a dependency that a package names by its address,
and a build runs the dependency's code. A build needs a process of its own, and so does git.

Started by the interpreter of the new environment: ``python -I run_pip.py RUNNER ARGUMENT…``, where
RUNNER is pip's ``__pip-runner__.py``.
"""

from __future__ import annotations

import runpy
import sys

_STARTS = frozenset({"subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system"})
_LOADER = "ld-musl"
"""Where libc is musl, pip starts its loader to see the version."""


def main() -> None:
    """Run pip with the arguments of this program."""
    del sys.argv[0]
    sys.path[:] = [path for path in sys.path if not path.startswith(sys.prefix)]
    sys.addaudithook(refuse_programs)
    runpy.run_path(sys.argv[0], run_name="__main__")


def refuse_programs(event: str, arguments: tuple[object, ...]) -> None:
    """Raise if *event* of the interpreter is the start of a program."""
    if event in _STARTS and _LOADER not in str(arguments[0]):
        raise PermissionError("pip may start no program here: only wheels are installed")


if __name__ == "__main__":
    main()
