"""What the API offers, as one table: routes, checks and the OpenAPI document are made from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gateway.gateway import Gateway
from gateway.serve.api import answers, asked
from gateway.serve.api.callers import ADMIN, WRITE, Caller
from gateway.serve.api.entities import ROOT, Entities, place
from gateway.serve.api.semantic import Searching
from gateway.serve.api.upkeep import Upkeep
from gateway.serve.api.views import Views


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request, checked."""

    caller: Caller
    key: str = ""
    """The id in the path."""
    asked: Any = None
    """The body or the parameters, of the operation's own type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What is answered."""

    value: object = None
    """Of the operation's answer type."""
    content: bytes = b""
    """The same, written already."""
    status: int = 0
    """0 is the operation's own."""
    headers: Mapping[str, str] = field(default_factory=dict)


Run: TypeAlias = Callable[[Call], Awaitable[Reply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing that the API does."""

    name: str
    method: str
    path: str
    summary: str
    run: Run
    answer: type | None
    """None has no body."""
    status: int = 200
    also: tuple[int, ...] = ()
    """Other statuses of success, with the same body."""
    right: str = ""
    """The scope that it needs; see `gateway.serve.api.callers`."""
    public: bool = False
    """Whether nobody needs a token."""
    parameters: type | None = None
    body: type | None = None
    refusals: tuple[int, ...] = ()
    """Statuses of problems that it may answer, besides those of every operation."""


def operations(gateway: Gateway, *, ranking: asked.Ranking) -> tuple[Operation, ...]:
    """Give all that the API does.

    Args:
        gateway: Whose catalog it is.
        ranking: What weighs the evidence where a search does not say.
    """
    views = Views()
    searching = Searching(gateway, views, ranking=ranking)
    entities = Entities(gateway, views)
    upkeep = Upkeep(gateway, views)
    return (
        *_searches(searching),
        *_by_words(entities),
        *_of_all(entities),
        *_of_one(entities),
        *_upkeep(upkeep),
    )


def _searches(searching: Searching) -> tuple[Operation, ...]:
    async def search(call: Call) -> Reply:
        return Reply(content=await searching.search(call.caller, call.asked))

    async def tags(call: Call) -> Reply:
        return Reply(value=await searching.tags(call.caller))

    return (
        Operation(
            name="search",
            method="POST",
            path="/api/search/semantic",
            summary="Search the catalog by meaning and words.",
            run=search,
            body=asked.SemanticSearch,
            answer=answers.Found,
        ),
        Operation(
            name="tags",
            method="GET",
            path="/api/search/tags",
            summary="List the tags of what you may find.",
            run=tags,
            answer=answers.Tags,
        ),
    )


def _by_words(entities: Entities) -> tuple[Operation, ...]:
    def listing(name: str, path: str, run: Run, takes: type = asked.Filtering) -> Operation:
        return Operation(
            name=name,
            method="GET",
            path=path,
            summary=f"List {name}, by words.",
            run=run,
            answer=answers.Listed,
            parameters=takes,
        )

    def filtered(*kinds: str) -> Run:
        async def run(call: Call) -> Reply:
            return Reply(value=await entities.filtered(call.caller, call.asked, frozenset(kinds)))

        return run

    async def skills(call: Call) -> Reply:
        return Reply(value=await entities.skills(call.caller, call.asked))

    return (
        listing("servers", "/api/servers", filtered("server", "virtual_server")),
        listing("agents", "/api/agents", filtered("agent")),
        listing("skills", "/api/skills/search", skills, asked.SkillSearch),
    )


def _of_all(entities: Entities) -> tuple[Operation, ...]:
    async def page(call: Call) -> Reply:
        return Reply(value=await entities.page(call.caller, call.asked))

    async def create(call: Call) -> Reply:
        made = await entities.create(call.caller, call.asked)
        return Reply(value=made, headers={"Location": place(made.id)})

    return (
        Operation(
            name="listEntities",
            method="GET",
            path=ROOT,
            summary="List entities, in pages.",
            run=page,
            parameters=asked.Listing,
            answer=answers.Things,
        ),
        Operation(
            name="createEntity",
            method="POST",
            path=ROOT,
            summary="Add an entity.",
            run=create,
            right=WRITE,
            body=asked.NewEntity,
            answer=answers.Thing,
            status=201,
            refusals=(409,),
        ),
    )


def _of_one(entities: Entities) -> tuple[Operation, ...]:
    async def one(call: Call) -> Reply:
        return Reply(value=await entities.one(call.caller, call.key))

    async def put(call: Call) -> Reply:
        made, new = await entities.put(call.caller, call.key, call.asked)
        return Reply(value=made, status=201 if new else 200)

    async def change(call: Call) -> Reply:
        return Reply(value=await entities.change(call.caller, call.key, call.asked))

    async def remove(call: Call) -> Reply:
        await entities.remove(call.caller, call.key)
        return Reply()

    def single(name: str, method: str, summary: str, run: Run, **more: Any) -> Operation:
        told = {"answer": answers.Thing, "refusals": (404, 409), "right": WRITE, **more}
        path = f"{ROOT}/{{id}}"
        return Operation(name=name, method=method, path=path, summary=summary, run=run, **told)

    whole, flip = asked.EntityBody, asked.EntityChange
    return (
        single("readEntity", "GET", "Read an entity.", one, refusals=(404,), right=""),
        single("putEntity", "PUT", "Add or replace an entity.", put, body=whole, also=(201,)),
        single(
            "changeEntity",
            "PATCH",
            "Change an entity's status, or enable or disable it.",
            change,
            body=flip,
        ),
        single("removeEntity", "DELETE", "Remove an entity.", remove, answer=None, status=204),
    )


def _upkeep(upkeep: Upkeep) -> tuple[Operation, ...]:
    async def index(call: Call) -> Reply:
        return Reply(value=await upkeep.index(call.caller))

    async def rebuild(call: Call) -> Reply:
        return Reply(value=await upkeep.rebuild(call.caller), headers={"Location": "/api/index"})

    async def health(_call: Call) -> Reply:
        return Reply(value=await upkeep.health())

    return (
        Operation(
            name="index",
            method="GET",
            path="/api/index",
            summary="Say what the index is made of.",
            run=index,
            answer=answers.Index,
        ),
        Operation(
            name="rebuildIndex",
            method="POST",
            path="/api/index/rebuild",
            summary="List every server again and build the index anew, in the background.",
            run=rebuild,
            right=ADMIN,
            answer=answers.Rebuilding,
            status=202,
        ),
        Operation(
            name="health",
            method="GET",
            path="/api/health",
            summary="Say whether the server answers.",
            run=health,
            public=True,
            answer=answers.Health,
        ),
    )
