"""Replacement of uv for tests that do not concern the installation itself.

It accepts the two commands of a plan, and unpacks one wheel of the index in ``UV_DEFAULT_INDEX``.
"""

from __future__ import annotations

import configparser
import io
import os
import re
import sys
import urllib.request
import zipfile
from pathlib import Path

_SITE = "lib/python3/site-packages"


def main(arguments: list[str]) -> None:
    if arguments[0] == "venv":
        folder = Path(arguments[-1])
        (folder / "bin").mkdir(parents=True)
        (folder / _SITE).mkdir(parents=True)
        return
    inside = Path(arguments[arguments.index("--python") + 1])
    name, _, _ = arguments[-1].partition("==")
    _unpack(_wheel(name), inside.parents[1])


def _wheel(name: str) -> zipfile.ZipFile:
    index = os.environ["UV_DEFAULT_INDEX"]
    match = re.search(r'href="(/files/[^"]+[.]whl)"', _get(f"{index}/{name}/").decode())
    if match is None:
        sys.exit(f"no wheel of {name}")
    address = index.removesuffix("/simple") + match[1]
    return zipfile.ZipFile(io.BytesIO(_get(address)))


def _get(address: str) -> bytes:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(address, timeout=60) as answer:
        body: bytes = answer.read()
    return body


def _unpack(wheel: zipfile.ZipFile, folder: Path) -> None:
    site = folder / _SITE
    wheel.extractall(site)
    (entries,) = site.glob("*.dist-info/entry_points.txt")
    table = configparser.ConfigParser()
    table.read(entries)
    for script, target in table["console_scripts"].items():
        module, _, function = target.partition(":")
        path = folder / "bin" / script
        path.write_text(
            f"#!{sys.executable} -IS\nimport sys\nsys.path.insert(0, {str(site)!r})\n"
            f"sys.prefix = {str(folder)!r}\n"
            f"from {module} import {function}\n{function}()\n"
        )
        path.chmod(0o755)


if __name__ == "__main__":
    main(sys.argv[1:])
