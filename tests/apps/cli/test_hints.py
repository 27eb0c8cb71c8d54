"""Extras of the package that messages and docs tell the user to install."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
_WRITTEN = re.compile(r"""pip install [^\n`]*?(?:tool-gateway|\.)\[([\w,-]+)\]""")
_RAISED = re.compile(r"""ExtraError\((?:[^,)]+,\s*)?["']([\w-]+)["']""")


def test_extras_named_in_messages_and_docs_are_declared_by_the_package() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    folders = ("gateway", "graphs", "examples", "docs")
    files = [path for name in folders for path in (ROOT / name).rglob("*.[pm][yd]")]
    named = {
        extra
        for path in (*files, ROOT / "README.md")
        for pattern in (_WRITTEN, _RAISED)
        for result in pattern.findall(path.read_text("utf-8"))
        for extra in result.split(",")
    }

    assert named >= {"local", "demo", "dev", "metrics", "keyring", "shacl", "langchain"}
    assert named <= declared["optional-dependencies"].keys()
