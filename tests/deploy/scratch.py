"""A root file system for a container's commands, without a container.

An empty layer over the machine's root disappears with the process. The commands of
`deploy/Containerfile` run there unchanged, as root and in their own namespaces:

* ``unshare --mount python -m tests.deploy.scratch build FOLDER`` runs the build stage, and leaves
  /opt and /wheels in FOLDER.
* ``unshare --mount python -m tests.deploy.scratch exec FOLDER COMMAND…`` runs a command in the
  built environment.
* ``unshare --mount --net python -m tests.deploy.scratch serve SPEC`` runs the runtime stage; then
  its user starts the service on a read-only root. Standard output is JSON with the observations.
  SPEC is JSON: ``layer``, an empty folder; ``opt``, the result of a build, or null for this
  environment; ``env``, ``command`` and ``requests``.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from tests.deploy.containerfile import ROOT, Stage, stages

PATIENCE_S = 60
PORT = 8930
BUILT = ("opt", "wheels")
"""Folders of the image that a build fills."""
HIDDEN = "/tmp"  # noqa: S108  (of the container)
PYTHON = "/usr/local"
"""Folder of Python in the base image."""
SHOWN = (sys.prefix, sys.base_prefix, str(ROOT))
"""Folders that are visible in the root, although their parent is hidden or private."""


def is_possible() -> bool:
    layers = "mount -t overlay o -o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w /mnt/r"
    trial = f"mount -t tmpfs t /mnt && mkdir /mnt/u /mnt/w /mnt/r && {layers}"
    return code_of(["unshare", "--mount", "--net", "sh", "-c", trial]) == 0


def run(*command: str) -> None:
    subprocess.run(command, check=True)


def bind(source: str, root: Path, target: str) -> None:
    (root / target[1:]).mkdir(parents=True, exist_ok=True)
    run("mount", "--rbind", source, f"{root}{target}")


def make_root(layer: Path) -> Path:
    """Mount an empty layer over the machine's root."""
    run("mount", "-t", "tmpfs", "tmpfs", str(layer))
    root = layer / "root"
    for name in ("upper", "work", "root"):
        (layer / name).mkdir()
    layers = f"lowerdir=/,upperdir={layer}/upper,workdir={layer}/work"
    run("mount", "-t", "overlay", "overlay", "-o", layers, str(root))
    run("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", f"{root}{HIDDEN}")
    for place in ("/dev", "/proc", *SHOWN):
        if place.startswith(HIDDEN) or place in {"/dev", "/proc"}:
            bind(place, root, place)
        else:
            for parent in list(Path(place).parents)[:-1]:
                (root / str(parent)[1:]).chmod(0o755)
    bind(sys.base_prefix, root, PYTHON)
    return root


def in_root(root: Path, stage: Stage, env: Mapping[str, str], command: Sequence[str]) -> list[str]:
    variables = [f"{name}={value}" for name, value in env.items()]
    folder = f"--chdir={stage.one('WORKDIR')}"
    user = [f"--userspec={item}" for item in stage.all("USER")]
    return ["chroot", *user, "--groups=", str(root), "env", "-i", folder, *variables, *command]


def build(folder: Path, layer: Path) -> None:
    """Run the build stage with this process's package indexes."""
    stage, _ = stages()
    root = make_root(layer)
    for name in BUILT:
        (folder / name).mkdir(parents=True)
    show_built(folder, root)
    env = {"PATH": f"{PYTHON}/bin:/usr/bin:/bin", "HOME": "/root", **stage.env, **own_env()}
    place = root / stage.one("WORKDIR")[1:]
    place.mkdir(parents=True, exist_ok=True)
    for text in stage.all("COPY"):
        *sources, target = shlex.split(text)
        for source in sources:
            run("cp", "-r", str(ROOT / source), str(place / target))
    for line in stage.all("RUN"):
        print(f"RUN {line}", flush=True)  # noqa: T201
        run(*in_root(root, stage, env, ["sh", "-ec", line]))


def show_built(folder: Path, root: Path) -> None:
    """Mount the result of a build at its original path."""
    for name in BUILT:
        bind(str(folder / name), root, f"/{name}")


def own_env() -> dict[str, str]:
    """Return the package indexes of this process as variables."""
    return {name: value for name, value in os.environ.items() if name.startswith("PIP_")}


def execute(folder: Path, layer: Path, command: Sequence[str]) -> int:
    """Run *command* as root in the built environment. Written files are lost."""
    _, stage = stages()
    root = make_root(layer)
    show_built(folder, root)
    env = {
        **stage.env,
        **own_env(),
        "HOME": "/root",
        "GATEWAY_CACHE_DIR": HIDDEN,
        "LANG": "C.UTF-8",
    }
    variables = [f"{name}={value}" for name, value in env.items()]
    inside = ["chroot", str(root), "env", "-i", f"--chdir={HIDDEN}", *variables, *command]
    return subprocess.run(inside, check=False).returncode


def install(root: Path, stage: Stage, opt: str | None) -> None:
    """Run the runtime stage: built files, RUN lines and volume; then make the root read-only."""
    if opt:
        show_built(Path(opt), root)
    else:
        (root / "opt" / "gateway").symlink_to(sys.prefix)
    shutil.copytree(ROOT / "deploy" / "config", root / stage.one("WORKDIR")[1:])
    for line in stage.all("RUN"):
        run("chroot", str(root), "sh", "-ec", line)
    volume = f"{root}{stage.one('VOLUME')}"
    run("mount", "--bind", volume, volume)
    run("mount", "-o", "remount,ro,bind", str(root))


def open_loopback() -> None:
    with socket.socket() as link:
        fcntl.ioctl(link, 0x8914, struct.pack("16sH14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP


def ask(path: str, headers: Mapping[str, str]) -> tuple[int, str]:
    """Send a request; return the status and the body."""
    connection = HTTPConnection("127.0.0.1", PORT, timeout=PATIENCE_S)
    connection.request("GET", path, headers=dict(headers))
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def code_of(command: Sequence[str]) -> int:
    return subprocess.run(command, capture_output=True, check=False).returncode


@contextmanager
def started(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Start the service; yield it when it listens, and end it."""
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        printed = ""
        while "serving http" not in (line := process.stderr.readline()):
            printed += line
            assert line, printed
        yield process
        process.terminate()
        process.wait(PATIENCE_S)


def serve(
    layer: Path,
    opt: str | None,
    env: Mapping[str, str],
    command: Sequence[str],
    requests: Sequence[tuple[str, Mapping[str, str]]],
) -> dict[str, Any]:
    """Run the service until it is ready, send *requests*, and try forbidden writes."""
    _, stage = stages()
    root = make_root(layer)
    open_loopback()
    install(root, stage, opt)
    check = in_root(root, stage, env, stage.command("HEALTHCHECK"))
    stray = in_root(root, stage, env, ["touch", "/etc/stray", "/opt/stray", "/usr/stray"])
    before = code_of(check)
    with started(in_root(root, stage, env, command)) as process:
        while ask("/readyz", {})[0] != 200:
            assert process.poll() is None
        answers = [ask(path, headers) for path, headers in requests]
        health, wrote = [before, code_of(check)], code_of(stray) == 0
    return {"health": health, "answers": answers, "wrote": wrote, "code": process.returncode}


def main() -> None:
    what, argument, *command = sys.argv[1:]
    if what in {"build", "exec"}:
        folder = Path(argument)
        folder.mkdir(parents=True, exist_ok=True)
        # The layer is not removed here, because folders of the machine are mounted in it.
        layer = Path(tempfile.mkdtemp(dir=folder))
        if what == "build":
            build(folder, layer)
        else:
            sys.exit(execute(folder, layer, command))
    else:
        spec = json.loads(argument)
        observed = serve(Path(spec.pop("layer")), **spec)
        print(json.dumps(observed))  # noqa: T201


if __name__ == "__main__":
    main()
