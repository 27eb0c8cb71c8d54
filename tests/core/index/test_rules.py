"""Rules that derive edges between tools."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import pytest

from gateway.index import RELIABLE_RULES
from gateway.index.rules import MAX_GROUP, RULES, EdgeDeriver
from gateway.index.tool_words import MAX_STEPS
from gateway.options import GraphOptions, Options, SearchOptions
from gateway.testing import HashingEmbedder
from gateway.types import Entity, ToolDefinition
from graphs import Document, Link
from tests.conftest import OpenGateway
from tests.fakes import compile_graph, tool

ALL = GraphOptions()
NONE = GraphOptions(**{each.name: False for each in fields(GraphOptions)})


def entity(definition: ToolDefinition, server: str = "srv") -> Entity:
    name = definition.name
    return Entity(id=f"{server}/{name}", exposed_name=name, server=server, definition=definition)


def tool_taking(
    name: str, *arguments: str, description: str = "Does.", text: str = ""
) -> ToolDefinition:
    """Return a tool with required *arguments*, each described by *text*."""
    schema = {
        "type": "object",
        "properties": {argument: {"type": "string", "description": text} for argument in arguments},
        "required": list(arguments),
    }
    return ToolDefinition(name=name, description=description, input_schema=schema)


@dataclass(frozen=True)
class DerivedEdge:
    """A derived edge between two entities, which are given by position."""

    subject: int
    relation: str
    object: int
    rule: str


def derive(entities: Sequence[Entity], options: GraphOptions) -> tuple[DerivedEdge, ...]:
    """Derive all edges of a catalog whose entities may share an id."""
    deriver = EdgeDeriver(options)
    deriver.update((), [replace(entity, id=str(index)) for index, entity in enumerate(entities)])
    return tuple(
        DerivedEdge(int(subject), relation, int(target), rule)
        for subject, targets in deriver.edges.items()
        for (relation, target), rule in targets.items()
    )


def derived_edges(*tools: ToolDefinition, options: GraphOptions = ALL) -> set[tuple[str, str, str]]:
    """Return the edges derived between *tools*, as (subject, relation, object)."""
    entities = [entity(tool) for tool in tools]
    return {
        (tools[edge.subject].name, edge.relation, tools[edge.object].name)
        for edge in derive(entities, options)
    }


def test_phases_relate_tools_that_find_inspect_and_change_one_thing() -> None:
    """These are the three phases. Each tool gets at most a few next steps, all on its server."""
    derived = derived_edges(
        tool("list_invoices"),
        tool("get_invoice"),
        tool("pay_invoice"),
        tool("send_invoice"),
        tool("print_invoice"),
        tool("play_song"),
    )

    steps = {subject: [o for s, _, o in derived if s == subject] for subject, _, _ in derived}
    assert {"list_invoices", "get_invoice"} == steps.keys()
    assert "get_invoice" in steps["list_invoices"]
    assert {"pay_invoice", "send_invoice", "print_invoice"} == set(steps["get_invoice"])
    assert max(map(len, steps.values())) <= MAX_STEPS


def test_phases_ignore_a_noun_that_many_tools_share() -> None:
    """More than `MAX_GROUP` tools of one server with the same noun are not related."""
    crowd = [tool(f"act{number}_item") for number in range(MAX_GROUP + 1)]

    assert set() == derived_edges(tool("list_items"), *crowd)


def test_phases_do_not_relate_tools_of_different_servers() -> None:
    pair = [entity(tool("list_invoices")), entity(tool("pay_invoice"), server="other")]

    assert () == derive(pair, ALL)


@pytest.mark.parametrize("argument", ["date", "start_date", "dates", "startDate"])
def test_tool_without_arguments_supplies_arguments_with_its_name(argument: str) -> None:
    """The spelling does not matter, and an argument may have further words before that name."""
    derived = derived_edges(tool_taking("get_current_date"), tool_taking("book_room", argument))

    assert {("book_room", "requires", "get_current_date")} == derived


def test_supplier_with_the_longer_name_is_preferred() -> None:
    derived = derived_edges(
        tool_taking("get_date"),
        tool_taking("get_start_date"),
        tool_taking("book_room", "start_date"),
    )

    assert {("book_room", "requires", "get_start_date")} == derived


def test_names_without_words_derive_no_edges() -> None:
    assert set() == derived_edges(tool_taking("__", "date"), tool_taking("_"))


def test_argument_with_more_than_two_suppliers_gets_no_edge() -> None:
    """A guess among three suppliers would be arbitrary."""
    suppliers = [tool_taking(f"{verb}_date") for verb in ("get", "fetch", "read")]

    assert set() == derived_edges(*suppliers, tool_taking("book_room", "date"))


def test_supplier_with_required_arguments_is_ignored_for_a_single_word() -> None:
    """The supplier must be callable at once."""
    assert set() == derived_edges(tool_taking("get_date", "zone"), tool_taking("book_room", "date"))


def test_tools_of_a_service_require_the_tool_that_signs_in_to_it() -> None:
    """The service is the word that both names contain."""
    derived = derived_edges(
        tool_taking("login_to_acme_account"),
        tool_taking("acme_buy_ticket"),
        tool_taking("other_buy_ticket"),
    )

    assert {("acme_buy_ticket", "requires", "login_to_acme_account")} == derived


def test_sign_in_without_a_service_in_its_name_derives_no_edges() -> None:
    assert set() == derived_edges(tool_taking("login"), tool_taking("buy_ticket"))


def test_sign_in_is_required_only_if_the_name_contains_the_whole_service() -> None:
    """One common word is not enough. A tool with a sign-in word in the middle of its name is not a
    sign-in.
    """
    names = ("fresh_market_login", "fresh_market_buy", "fresh_farm_buy")
    others = ("security_authenticate_risk", "security_scan_risk")
    tools = [("srv", tool_taking(name)) for name in (*names, *others)]

    assert {("fresh_market_buy", "fresh_market_login")} == derived_by_rule(*tools, rule="sign_in")


@pytest.mark.parametrize("name", ["log_in_to_acme", "acme_user_login", "sign_in_acme"])
def test_sign_in_tool_is_recognized_in_several_spellings(name: str) -> None:
    assert {("acme_pay", "requires", name)} == derived_edges(
        tool_taking(name), tool_taking("acme_pay")
    )


def derived_by_rule(*tools: tuple[str, ToolDefinition], rule: str) -> set[tuple[str, str]]:
    """Return the edges that *rule* derives, as pairs of names. *tools* are pairs of server and
    tool.
    """
    entities = [entity(tool, server) for server, tool in tools]
    derived = [edge for edge in derive(entities, ALL) if edge.rule == rule]
    return {(entities[edge.subject].name, entities[edge.object].name) for edge in derived}


DATE, TIME = tool_taking("get_current_date"), tool_taking("get_current_time")


@pytest.mark.parametrize(
    ("argument", "text", "clock"),
    [
        ("due", "As YYYY-MM-DD.", "get_current_date"),
        ("due", "DD/MM/YYYY", "get_current_date"),
        ("year", "", "get_current_date"),
        ("start", "As HH:MM.", "get_current_time"),
        ("due", "As YYYY-MM/DD.", ""),
        ("model_year", "", ""),
        ("due", "A day of the week.", ""),
    ],
)
def test_clock_tool_supplies_arguments_in_a_date_or_time_format(
    argument: str, text: str, clock: str
) -> None:
    """The description of the argument states the format. The clock tool may be on any server."""
    derived = derived_by_rule(
        ("os", DATE), ("os", TIME), ("app", tool_taking("do", argument, text=text)), rule="calendar"
    )

    assert ({("do", clock)} if clock else set()) == derived


def test_two_clock_tools_or_optional_dates_derive_no_edges() -> None:
    """Two clock tools are ambiguous. Optional arguments do not need a supplier."""
    book = tool_taking("book", "year")
    free = ToolDefinition(
        name="see", description="See.", input_schema={"properties": {"year": {}, "date": {}}}
    )

    assert set() == derived_by_rule(("a", DATE), ("b", DATE), ("c", book), rule="calendar")
    for rule in ("calendar", "suppliers"):
        assert set() == derived_by_rule(("a", DATE), ("c", free), rule=rule)
    assert set() == derived_by_rule(("a", tool_taking("get_current_date", "year")), rule="calendar")


@pytest.mark.parametrize("argument", ["email", "email_address", "emails"])
def test_tools_require_the_tool_that_checks_one_of_their_arguments(argument: str) -> None:
    """It serves only tools of its own server, or tools of all servers if its server has a clock
    tool.
    """
    check, send = tool_taking("validate_email", "email"), tool_taking("send", argument)

    assert {("send", "validate_email")} == derived_by_rule(("a", check), ("a", send), rule="checks")
    assert set() == derived_by_rule(("a", check), ("b", send), rule="checks")
    assert {("send", "validate_email")} == derived_by_rule(
        ("os", DATE), ("os", check), ("b", send), rule="checks"
    )
    assert set() == derived_by_rule(("a", check), ("a", check), ("a", send), rule="checks")


WIFI_STATUS = tool_taking("get_wifi_status")


def test_tools_that_need_the_network_require_the_connection_check() -> None:
    """These are tools that sign in, and tools whose description says that they need the network."""
    sign_in = tool_taking("acme_login")
    call = tool_taking("call", description="Needs an internet connection.")
    sing = tool_taking("sing", description="Sings of networks.")

    assert {("acme_login", "get_wifi_status"), ("call", "get_wifi_status")} == derived_by_rule(
        ("os", DATE),
        *((server, definition) for definition in (sign_in, call, sing) for server in ("os", "app")),
        ("os", WIFI_STATUS),
        rule="connection",
    )
    assert set() == derived_by_rule(("router", WIFI_STATUS), ("app", sign_in), rule="connection")
    assert set() == derived_by_rule(
        ("a", WIFI_STATUS), ("a", WIFI_STATUS), ("a", sign_in), rule="connection"
    )


def test_secret_of_one_server_is_not_supplied_to_tools_of_others() -> None:
    key, pay = tool_taking("generate_api_key"), tool_taking("pay", "api_key")

    assert {("pay", "generate_api_key")} == derived_by_rule(
        ("a", key), ("a", pay), rule="suppliers"
    )
    assert set() == derived_by_rule(("a", key), ("b", pay), rule="suppliers")


def test_sentences_in_descriptions_derive_no_edges() -> None:
    """Otherwise a server could promote its tools by its descriptions."""
    prose = "First call find_room. Use the id returned by find_room."

    assert set() == derived_edges(tool_taking("book", description=prose), tool_taking("find_room"))


def test_tool_that_creates_a_thing_comes_before_all_other_phases() -> None:
    """Tools that take something back, and tools that find it again, are not next steps."""
    names = ("create_note", "view_note", "send_note", "delete_note", "list_notes")
    derived = derived_edges(*map(tool_taking, names))

    steps = {(subject, other) for subject, relation, other in derived if relation == "next_steps"}
    assert {("create_note", "view_note"), ("create_note", "send_note")} <= steps
    assert {"create_note", "delete_note", "list_notes"}.isdisjoint(other for _, other in steps)


@pytest.mark.parametrize(
    ("tools", "finder"),
    [
        (("search_movies(query)", "get_movie(movie_id)"), "search_movies"),
        (("search_movies(query)", "rate_movies(movie_ids)"), "search_movies"),
        (("search_movies(query)", "list_movies()", "get_movie(movie_id)"), "search_movies"),
        (("list_movies()", "list_new_movies()", "get_movie(movie_id)"), "list_movies"),
        (("find_user_by_name(name)", "ban(user_id)"), "find_user_by_name"),
        (("search_movies(query)", "get_movie(id)"), "search_movies"),
        (("search_movies(query)", "credits(id)"), None),
        (("search_movies(query, year)", "get_movie(movie_id)"), None),
        (("search_movies(query)", "get_movie(movie)"), None),
        (("search_people(query)", "get_movie(movie_id)"), None),
        (("create_movie(name)", "get_movie(movie_id)"), None),
    ],
)
def test_tool_that_finds_a_thing_is_required_for_its_id(
    tools: tuple[str, ...], finder: str | None
) -> None:
    """Rule ``resolvers``: of several finders, the plainest one that takes a text is required."""
    parts = [text.rstrip(")").partition("(") for text in tools]
    derived = derived_edges(
        *(tool_taking(name, *filter(None, args.split(", "))) for name, _, args in parts),
        options=replace(NONE, resolvers=True),
    )

    name = parts[-1][0]
    assert derived == ({(name, "requires", finder)} if finder else set())


def test_path_in_a_description_names_the_thing_that_an_id_identifies() -> None:
    credit = tool_taking("credits", "id", description="GET /movie/{id}/credits.")

    derived = derived_edges(tool_taking("search_movie", "query"), credit)

    assert ("credits", "requires", "search_movie") in derived


def test_finders_of_another_server_are_not_required() -> None:
    """Only the server that issued an id understands it."""
    finder, reader = tool_taking("search_movies", "query"), tool_taking("get_movie", "movie_id")

    edges = derive([entity(finder), entity(reader, server="other")], ALL)

    assert "resolvers" not in {edge.rule for edge in edges}


def test_next_step_must_contain_all_nouns_of_the_first_tool() -> None:
    """Tools for product reviews do not lead to tools for products. The verb in `searcher` is
    `search`.
    """
    strangers = derived_edges(tool_taking("search_product_reviews"), tool_taking("buy_product"))
    derived = derived_edges(tool_taking("article_searcher"), tool_taking("article_getter"))

    assert set() == strangers
    assert {("article_searcher", "next_steps", "article_getter")} == derived


@pytest.mark.parametrize("rule", sorted(RULES))
def test_each_rule_for_edges_can_be_disabled(rule: str) -> None:
    """If all rules are disabled, no edges are derived."""
    tools = (
        tool_taking("list_rooms"),
        tool_taking("open_room", "date", description="Use after list_rooms."),
        tool_taking("get_date"),
        tool_taking("acme_login"),
        tool_taking("acme_pay", "email"),
        tool_taking("pay_rent", "due", description="Pay the rent.", text="As YYYY-MM-DD."),
        tool_taking("get_current_date"),
        tool_taking("validate_email"),
        tool_taking("get_wifi_status"),
        tool_taking("paint_room", "room_id"),
    )
    entities = [entity(tool) for tool in tools]
    without = GraphOptions(**{rule: False})

    assert rule in {edge.rule for edge in derive(entities, ALL)}
    assert rule not in {edge.rule for edge in derive(entities, without)}
    assert () == derive(entities, NONE)


def test_graph_with_all_options_off_contains_only_texts() -> None:
    """Groups and data flow have options, too."""
    tools = [entity(tool_taking("list_rooms", "date")), entity(tool_taking("open_room", "date"))]
    relations = {"memberOf", "consumes", "produces", "nextStep", "requires", "relatedTo"}

    assert relations & {fact.predicate for fact in compile_graph(tools).facts}
    assert not relations & {fact.predicate for fact in compile_graph(tools, options=NONE).facts}


async def test_derived_edge_names_its_rule(open_gateway: OpenGateway) -> None:
    """A host can thus find the rule that it wants to disable."""
    wide = SearchOptions(window_min=50, window_margin=0)
    gateway = open_gateway(
        (
            tool_taking("get_date", description="Tell the date."),
            tool_taking("book_room", "date", description="Book a room."),
            *(tool_taking(name) for name in ("sing", "dance", "paint", "write")),
        ),
        strategy="auto",
        embedder=HashingEmbedder(),
        options=Options(search=wide),
    )

    result = await gateway.search("book a room for a date", limit=1)

    (needed,) = result.prerequisites
    (step,) = needed.evidence.path
    assert ("get_date", "derived/suppliers", False) == (needed.name, step.source, step.declared)


async def test_argument_and_result_of_equal_name_derive_next_steps_not_prerequisites(
    open_gateway: OpenGateway,
) -> None:
    """As prerequisites, they would flood the list."""
    output = {"type": "object", "properties": {"room_id": {"type": "string"}}}
    maker = ToolDefinition(name="find", description="Find a room.", output_schema=output)
    gateway = open_gateway(
        (maker, tool_taking("book", "room_id", description="Book a room.")),
        strategy="auto",
        embedder=HashingEmbedder(),
        options=Options(search=SearchOptions(window_min=50, window_margin=0)),
    )

    result = await gateway.search("book a room", limit=1)
    steps = await gateway.next_steps(["find"])

    assert "book" == result.matches[0].name
    assert () == result.prerequisites
    assert "book" == steps[0].name


async def test_declared_edge_overrides_a_derived_one(open_gateway: OpenGateway) -> None:
    declared = Document(id="own", title="book_room", requires=(Link(target="get_date"),))
    gateway = open_gateway(
        (tool_taking("get_date", description="Tell the date."), tool_taking("book_room", "date")),
        graph=[declared],
        strategy="auto",
        embedder=HashingEmbedder(),
    )

    result = await gateway.search("book a room", limit=1)

    assert [True] == [
        step.declared for match in result.prerequisites for step in match.evidence.path
    ]


def test_supplier_with_arguments_is_used_for_a_name_of_several_words() -> None:
    """This allows chains of look-ups. The supplier's name must contain all words of the
    argument.
    """
    derived = derived_edges(
        tool_taking("get_country_code", "country_name"),
        tool_taking("get_city_code", "city_name", "country_code"),
        tool_taking("count_people", "city_code"),
        tool_taking("get_code", "text"),
        tool_taking("get_unit_code", "unit_code"),
        tool_taking("scan", "code", "unit_code"),
    )

    assert {
        ("get_city_code", "requires", "get_country_code"),
        ("count_people", "requires", "get_city_code"),
    } == {edge for edge in derived if edge[1] == "requires"}


def test_argument_of_a_single_word_is_supplied_only_within_its_server() -> None:
    """A ``status`` has another meaning on each server. The current date has not, so it is supplied
    to all.
    """
    tools = [tool_taking("get_status"), tool_taking("get_current_date")]
    same_server, other = tool_taking("check", "status"), tool_taking("plan", "status", "date")
    entities = [
        *(entity(definition, "a") for definition in (*tools, same_server)),
        entity(other, "b"),
    ]

    derived = {
        (entities[edge.subject].name, entities[edge.object].name)
        for edge in derive(entities, ALL)
        if edge.rule == "suppliers"
    }

    assert {("check", "get_status"), ("plan", "get_current_date")} == derived


PARTS = (
    ("get", "list", "pay", "login_to", "validate", "get_current", "check"),
    ("invoice", "start_date", "date", "acme", "city_code", "email", "wifi_status"),
)
ARGUMENTS = ("date", "start_date", "city_code", "email_address", "year")
TEXTS = ("Does.", "Use after get_date.", "See list_invoice then pay_invoice.", "Needs wifi access.")


@pytest.mark.parametrize("number", range(40))
def test_edges_of_a_changed_catalog_are_equal_to_those_of_a_fresh_one(number: int) -> None:
    draw = random.Random(number)
    deriver = EdgeDeriver(ALL)
    catalog: dict[str, Entity] = {}
    for _ in range(6):
        gone = draw.sample(sorted(catalog), k=min(len(catalog), 2))
        removed = [catalog.pop(key) for key in gone]
        ids_before = {*catalog}
        for _ in range(draw.randrange(8)):
            name = "_".join(draw.choice(part) for part in PARTS)
            taken = draw.sample(ARGUMENTS, k=draw.randrange(3))
            definition = tool_taking(name, *taken, description=draw.choice(TEXTS))
            tool = entity(definition, draw.choice("ab"))
            catalog.setdefault(tool.id, tool)
        deriver.update(removed, [added for key, added in catalog.items() if key not in ids_before])

        entities = list(catalog.values())
        fresh = {
            (entities[edge.subject].id, edge.relation, entities[edge.object].id, edge.rule)
            for edge in derive(entities, ALL)
        }
        assert fresh == {
            (subject, relation, target, rule)
            for subject, targets in deriver.edges.items()
            for (relation, target), rule in targets.items()
        }


def test_reliable_rules_are_all_rules_for_prerequisites() -> None:
    """Searches use the constant `RELIABLE_RULES`, so that they need not load the rules."""
    assert RULES.keys() - {"phases"} == RELIABLE_RULES
