"""Kinds that a configuration file declares."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.catalog import Entry
from gateway.config.mcp_json import parse_manifest
from gateway.errors import ConfigError, InvalidRequestError
from gateway.options import CustomKind, Options
from gateway.types import Filters
from tests.conftest import OpenGateway

TABLE = {"sample": {"searchable": ["owner.team"], "maxEntries": 1}, "plain": {}}


def test_kinds_in_the_configuration_get_default_settings() -> None:
    sample = CustomKind(searchable=("owner.team",), max_entries=1)

    manifest = parse_manifest({"mcpServers": {}, "kinds": TABLE})

    assert {"sample": sample, "plain": CustomKind()} == manifest.kinds


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ([], "must be an object"),
        ({"Agent": {}}, "'Agent' cannot be declared"),
        ({"agent": {}}, "'agent' cannot be declared"),
        ({"sample": []}, "sample must be an object"),
        ({"sample": {"fields": []}}, "sample: unknown key 'fields'"),
        ({"sample": {"searchable": "a"}}, "searchable must be a list"),
        ({"sample": {"maxEntries": True}}, "a whole number"),
        ({"sample": {"maxEntries": 0}}, "max_entries"),
        ({"sample": {"searchable": ["$a"]}}, "kind 'sample': field"),
    ],
)
def test_invalid_kind_in_the_configuration_is_refused_with_a_remedy(
    raw: object, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_manifest({"mcpServers": {}, "kinds": raw})


async def test_configured_kind_limits_its_entries_and_their_searchable_metadata(
    open_gateway: OpenGateway, options: Options
) -> None:
    """The settings also apply to entries that already exist."""
    gateway = open_gateway(options=options)
    entry = Entry(kind="sample", name="x", metadata={"owner": {"team": "botany"}})
    await gateway.catalog.put(entry)
    samples = Filters(kinds=frozenset({"sample"}))
    before = await gateway.search("botany", filters=samples)

    gateway.add_config(parse_manifest({"mcpServers": {}, "kinds": TABLE}))
    after = await gateway.search("botany", filters=samples)

    assert ([], [entry.id]) == tuple(
        [match.id for match in result.matches] for result in (before, after)
    )
    with pytest.raises(InvalidRequestError, match="1 entries of kind 'sample'"):
        await gateway.catalog.put(Entry(kind="sample", name="y"))


async def test_reload_replaces_kinds_declared_in_the_file(
    open_gateway: OpenGateway, options: Options, tmp_path: Path
) -> None:
    """Kinds that were removed from the file lose their settings; kinds declared without a file
    stay.
    """
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {}, "kinds": {"sample": {}}}), "utf-8")
    gateway = open_gateway(options=options)
    gateway.add_config(parse_manifest({"mcpServers": {}, "kinds": {"field": {"maxEntries": 1}}}))
    gateway.add_config(path)
    entry = Entry(kind="sample", name="x", metadata={"owner": {"team": "botany"}})
    await gateway.catalog.put(entry, Entry(kind="field", name="a"))
    samples = Filters(kinds=frozenset({"sample"}))
    assert () == (await gateway.search("botany", filters=samples)).matches

    counts: list[int] = []
    for kinds in ({"sample": {"searchable": ["owner.team"]}}, None, {}):
        if kinds is not None:
            path.write_text(json.dumps({"mcpServers": {}, "kinds": kinds}), "utf-8")
        builds = gateway.index_builds
        await gateway.reload()
        result = await gateway.search("botany", filters=samples)
        counts += (len(result.matches), gateway.index_builds - builds)

    assert [1, 1, 1, 0, 0, 1] == counts
    with pytest.raises(InvalidRequestError, match="1 entries of kind 'field'"):
        await gateway.catalog.put(Entry(kind="field", name="b"))
