"""Selection of entities by words and facets, and changes of several entities."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gateway.catalog import Entry, Selection, select
from gateway.errors import InvalidRequestError
from gateway.gateway import Gateway
from gateway.options import CatalogOptions, Options
from gateway.types import Access, Entity, Filters, Hints, ToolDefinition
from tests.conftest import OpenGateway
from tests.fakes import ListSource, tool


def entity(
    name: str,
    server: str = "srv",
    text: str = "",
    *,
    title: str = "",
    kind: str = "tool",
    tags: str = "",
    enabled: bool = True,
) -> Entity:
    hints = Hints(tags=tuple(tags.split()), enabled=enabled)
    definition = ToolDefinition(name=name, title=title, description=text, hints=hints, kind=kind)
    return Entity(
        id=f"{server}/{name}",
        kind=kind,
        exposed_name=name,
        server=server,
        definition=definition,
        status="draft" if name == "b" else "active",
    )


CATALOG = (
    entity("b", text="Sends a Letter.", tags="Post eu"),
    entity("a", title="Letters", tags="post"),
    entity("c", "mail", "Sends mail.", enabled=False),
    entity("d", "mail", kind="prompt", tags="eu"),
)


@pytest.mark.parametrize(
    ("selection", "names"),
    [
        (Selection(), "abcd"),
        (Selection(text="LETTER"), "ab"),
        (Selection(text="letter sends"), "b"),
        (Selection(text="mail"), "cd"),
        (Selection(kinds=frozenset({"prompt", "skill"})), "d"),
        (Selection(servers=frozenset({"srv"}), statuses=frozenset({"active"})), "a"),
        (Selection(tags=frozenset({"POST", "eu"})), "b"),
        (Selection(enabled=False), "c"),
        (Selection(enabled=True, text="nothing"), ""),
    ],
)
def test_select_filters_by_words_and_facets(selection: Selection, names: str) -> None:
    entities, _ = select(CATALOG, selection)

    assert [*names] == sorted(entity.name for entity in entities)


def test_facet_counts_ignore_the_condition_on_their_own_facet() -> None:
    """So the counts of a facet show how many entities another value of this facet would select.
    Tags are
    different: each further tag narrows the selection.
    """
    selection = Selection(servers=frozenset({"srv"}), tags=frozenset({"post"}))
    _, facets = select(CATALOG, selection)
    _, others = select(CATALOG, Selection(kinds=frozenset({"tool", "prompt"})))

    assert {
        "kind": {"tool": 2},
        "server": {"srv": 2},
        "tag": {"post": 2, "eu": 1},
        "status": {"active": 1, "draft": 1},
        "enabled": {"true": 2},
    } == facets
    assert [("mail", 2), ("srv", 2)] == [*others["server"].items()]


@pytest.fixture
def gateway(open_gateway: OpenGateway, options: Options) -> Gateway:
    """Return a gateway with a tagged tool of a source, a tool that requires a scope, and an
    entry.
    """
    gateway = open_gateway(options=options)
    tools = [
        tool("send", "Sends mail.", hints=Hints(tags=("Mail",))),
        tool("wipe*", "Wipes the box."),
        tool("wipes", "Wipes the glasses."),
    ]
    gateway.add_source(ListSource("box", tools))
    gateway.set_rules({"box/wipes": Access(scopes=frozenset({"staff"}))})
    return gateway


AGENT = Entry(kind="agent", name="planner", hints=Hints(tags=("eu", "old")))
EVERYBODY = Filters(include_disabled=True, kinds=frozenset({"tool", "agent"}))


async def tags_of(gateway: Gateway) -> Mapping[str, tuple[str, ...]]:
    page = await gateway.catalog.list()
    return {entity.id: entity.hints.tags for entity in page.entities if entity.hints.tags}


async def test_access_change_applies_to_entries_and_listed_entities(gateway: Gateway) -> None:
    """The report has the reason for each failure. An entity that the caller may not see counts as
    unknown.
    """
    await gateway.catalog.put(AGENT)
    ids = ["box/send", "box/wipe*", AGENT.id, "box/wipes", "nobody"]

    report = await gateway.catalog.change(
        ids,
        {"enabled": False},
        add_tags=("New", "EU"),
        remove_tags=("mail", "old"),
        filters=EVERYBODY,
    )
    disabled = await gateway.catalog.list(None, Selection(enabled=False))

    assert ("box/wipe*", AGENT.id) == report.changed
    assert ["box/send", "box/wipes", "nobody"] == sorted(report.failed)
    assert "'mail'" in report.failed["box/send"]
    assert report.failed["nobody"] == report.failed["box/wipes"]
    assert [AGENT.id, "box/send", "box/wipe*"] == [entity.id for entity in disabled.entities]
    assert {
        "box/send": ("Mail", "New", "EU"),
        "box/wipe*": ("New", "EU"),
        AGENT.id: ("New", "eu"),
    } == await tags_of(gateway)


async def test_pages_of_a_selection_have_the_same_facets(gateway: Gateway) -> None:
    """Without a selection, pages have no facets."""
    catalog, selection = gateway.catalog, Selection(text="wipes")
    first = await catalog.list(None, selection, limit=1)
    second = await catalog.list(None, selection, after=first.next, limit=None)

    assert ["box/wipe*", "box/wipes"] == [
        entity.id for page in (first, second) for entity in page.entities
    ]
    assert (2, 2, "") == (first.total, second.total, second.next)
    assert first.facets == second.facets
    assert {} == (await catalog.list()).facets


async def test_access_change_can_be_undone(gateway: Gateway, open_gateway: OpenGateway) -> None:
    """Later changes are kept, also by the next gateway."""
    await gateway.catalog.change(["box/wipe*"], {"status": "beta"}, add_tags=("a", "b"))
    report = await gateway.catalog.change(["box/wipe*"], {"enabled": True}, remove_tags=("A",))
    await gateway.catalog.change([], {"enabled": False}, add_tags=("c",))
    changed = await gateway.catalog.get("box/wipe*")

    assert ("box/wipe*",) == report.changed
    assert changed is not None
    assert ("beta", ("b",)) == (changed.status, changed.hints.tags)


@pytest.mark.parametrize("use", [{"status": "lost"}, {"tags": "x"}, {"name": "x"}])
async def test_invalid_access_change_is_refused_as_a_whole(
    gateway: Gateway, use: Mapping[str, object]
) -> None:
    with pytest.raises(InvalidRequestError):
        await gateway.catalog.change(["box/send"], use, add_tags=("new",))

    assert {"box/send": ("Mail",)} == await tags_of(gateway)


async def test_access_rules_for_names_and_for_patterns_apply_in_their_order(
    open_gateway: OpenGateway, options: Options
) -> None:
    """A name may contain characters that have a meaning in patterns. The catalog escapes such a
    name.
    """
    names = ("a*", "ab", "a[*]", "[a]")
    rules = {
        "box/*": Access(tags=("all",), status="draft"),
        "box/a[*]": Access(tags=("star",), status="beta"),
        "box/a[[][*]]": Access(tags=("bracket",)),
        "box/[[]a]": Access(tags=("first",)),
        "*/a?": Access(status="active"),
    }
    catalog = CatalogOptions(rules=rules)
    gateway = open_gateway(map(tool, names), options=Options(catalog=catalog))
    gateway.add_source(ListSource("box", map(tool, names)))
    page = await gateway.catalog.list(None, Selection(servers=frozenset({"box"})))

    assert {
        "a*": (("all", "star"), "active"),
        "ab": (("all",), "active"),
        "a[*]": (("all", "bracket"), "draft"),
        "[a]": (("all", "first"), "draft"),
    } == {entity.name: (entity.hints.tags, entity.status) for entity in page.entities}
