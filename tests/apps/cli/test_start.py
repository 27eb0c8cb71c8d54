"""Starts of the library, of commands and of `serve`, each of which reads data that another start
saved.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from gateway.cli.commands.serve import serve_options
from gateway.cli.session import open_gateway, open_session, read_config
from gateway.gateway import Gateway
from gateway.options import IndexOptions, Options
from gateway.sync import SyncGateway
from gateway.types import IndexReport
from tests.apps.cli.running import Place


@contextmanager
def _library(config: Path) -> Iterator[IndexReport]:
    options = Options(index=IndexOptions(min_tools=1))
    with closing(Gateway(strategy="auto", embedder="local", options=options)) as gateway:
        gateway.add_config(config)
        yield SyncGateway(gateway).report()


@contextmanager
def _command(config: Path) -> Iterator[IndexReport]:
    with open_session(config, strategy="auto") as session:
        yield session.report


@contextmanager
def _served(config: Path) -> Iterator[IndexReport]:
    manifest = read_config(config)
    options = serve_options(manifest, frozenset(), None)
    with open_gateway(manifest, strategy="auto", options=options) as gateway:
        yield SyncGateway(gateway).report()


_STARTS = {"library": _library, "command": _command, "serve": _served}


@pytest.mark.parametrize("first", _STARTS)
def test_later_starts_embed_nothing_and_build_no_index(
    place: Place, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    monkeypatch.setenv("GATEWAY_CACHE_DIR", str(place.cache))
    config = Path(place.config({"srv": place.hostile()}, options={"index": {"min_tools": 1}}))

    with _STARTS[first](config) as report:
        assert (False, True) == (report.saved, report.embedded_texts > 0)
    for name, start in _STARTS.items():
        with start(config) as report:
            assert (name, True, 0) == (name, report.saved, report.embedded_texts)
