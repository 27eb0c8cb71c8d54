"""A package index for pip and npm, with small servers to install."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from tests.plugins.provision.registries import Served

PYTHON = """
import json, os, sys

def main():
    if "{mode}" == "exits":
        sys.exit("no licence")
    for line in sys.stdin:
        message = json.loads(line)
        if "{mode}" != "silent" and message.get("id") is not None:
            answer(message)

def answer(message):
    method = message["method"]
    if method == "initialize":
        found = {{"protocolVersion": "2025-11-25", "capabilities": {{"tools": {{}}}},
                 "serverInfo": {{"name": "tiny", "version": "0"}}}}
    elif method == "tools/list":
        tool = {{"name": "{tool}", "description": "{about}", "inputSchema": {{"type": "object"}}}}
        found = {{"tools": [] if "{mode}" == "empty" else [tool]}}
    elif method == "tools/call":
        values = json.dumps([sys.argv[1:], os.environ.get("TINY_KEY", ""), sys.prefix])
        found = {{"content": [{{"type": "text", "text": values}}]}}
    else:
        say({{"id": message["id"], "error": {{"code": -32601, "message": "no such method"}}}})
        return
    say({{"id": message["id"], "result": found}})

def say(message):
    sys.stdout.write(json.dumps({{"jsonrpc": "2.0", **message}}) + "\\n")
    sys.stdout.flush()
"""
NODE = """#!/usr/bin/env node
const lines = require("readline").createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (id === undefined) return;
  const answers = {
    "initialize": { protocolVersion: "2025-11-25", capabilities: { tools: {} },
      serverInfo: { name: "tiny", version: "0" } },
    "tools/list": { tools: [{ name: "%s", description: "%s", inputSchema: { type: "object" } }] },
    "tools/call": { content: [{ type: "text", text: "called" }] },
  };
  const answer = method in answers ? { result: answers[method] }
    : { error: { code: -32601, message: "no such method" } };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...answer }) + "\\n");
});
"""
_ABOUT = "Weighs a parcel."


class FakeIndex(Served):
    """Serves wheels to pip (`pip_url`) and packages to npm (`npm_url`)."""

    def __init__(self) -> None:
        self.fetched: list[str] = []
        self._files: dict[str, bytes] = {}
        self._wheels: dict[str, list[str]] = {}
        self._packages: dict[str, Any] = {}
        routes = [
            Route("/simple/{name}/", self._simple),
            Route("/files/{file}", self._file),
            Route("/npm/{name:path}", self._npm),
        ]
        super().__init__(routes)

    @property
    def pip_url(self) -> str:
        return f"{self.base}/simple"

    @property
    def npm_url(self) -> str:
        return f"{self.base}/npm"

    def wheel(
        self,
        name: str,
        mode: str = "works",
        *,
        scripts: tuple[str, ...] = (),
        tool: str = "weigh_parcel",
        about: str = _ABOUT,
        needs: str = "",
        files: Mapping[str, str] | None = None,
    ) -> None:
        """Offer *name* 1.0.0 to pip. By default, its program has the same name."""
        module = name.replace("-", "_")
        entries = "\n".join(f"{script} = {module}:main" for script in scripts or (name,))
        info = f"{module}-1.0.0.dist-info"
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n"
        contents = {
            f"{module}.py": PYTHON.format(mode=mode, tool=tool, about=about),
            f"{info}/METADATA": f"{metadata}Requires-Dist: {needs}\n" if needs else metadata,
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{info}/entry_points.txt": f"[console_scripts]\n{entries}\n" if entries else "",
            **(files or {}),
        }
        record = "".join(f"{path},,\n" for path in (*contents, f"{info}/RECORD"))
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as wheel:
            for path, text in {**contents, f"{info}/RECORD": record}.items():
                wheel.writestr(path, text)
        file = f"{module}-1.0.0-py3-none-any.whl"
        self._files[file] = packed.getvalue()
        self._wheels.setdefault(name, []).append(file)

    def source(self, name: str, code: str = "raise SystemExit('it ran')") -> None:
        """Offer *name* 1.0.0 to pip only as source code, whose build runs *code*."""
        system = '[build-system]\nrequires = []\nbuild-backend = "build"\nbackend-path = ["."]\n'
        packed = _tar(
            {
                f"{name}-1.0.0/pyproject.toml": system,
                f"{name}-1.0.0/build.py": code,
                f"{name}-1.0.0/PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n",
            }
        )
        self._files[f"{name}-1.0.0.tar.gz"] = packed
        self._wheels.setdefault(name, []).append(f"{name}-1.0.0.tar.gz")

    def npm(self, name: str, program: object = "server.js", **more: object) -> None:
        """Offer *name* 1.0.0 to npm."""
        manifest = {"name": name, "version": "1.0.0", "bin": program, **more}
        text = NODE % ("weigh_parcel", _ABOUT)
        packed = _tar({"package/package.json": json.dumps(manifest), "package/server.js": text})
        file = f"{name.replace('/', '-').removeprefix('@')}-1.0.0.tgz"
        self._files[file] = packed
        digest = base64.b64encode(hashlib.sha512(packed).digest()).decode()
        tarball = f"{self.base}/files/{file}"
        version = {**manifest, "dist": {"tarball": tarball, "integrity": f"sha512-{digest}"}}
        self._packages[name] = {
            "name": name,
            "dist-tags": {"latest": "1.0.0"},
            "versions": {"1.0.0": version},
        }

    async def _simple(self, request: Request) -> Response:
        files = self._wheels.get(request.path_params["name"], [])
        links = "".join(f'<a href="/files/{file}">{file}</a>' for file in files)
        return HTMLResponse(f"<!DOCTYPE html><html><body>{links}</body></html>")

    async def _file(self, request: Request) -> Response:
        self.fetched.append(request.path_params["file"])
        return Response(self._files[request.path_params["file"]])

    async def _npm(self, request: Request) -> Response:
        package = self._packages.get(request.path_params["name"])
        return JSONResponse(package or {"error": "not found"}, 200 if package else 404)


def _tar(files: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, text in files.items():
            data = text.encode()
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(data), 0o755
            archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()
