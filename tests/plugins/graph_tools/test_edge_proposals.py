"""Edges proposed by a model: batching, validation and documents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from gateway import Gateway, SyncGateway
from gateway.errors import ConfigError, InvalidRequestError
from gateway.options import Options
from gateway.plugins.graph_tools import BATCH, MAX_EDGES, PROPOSALS, batches, connected
from gateway.search import ModelReply
from gateway.testing import ModelRequest, ScriptedModel, Turn
from gateway.types import ToolDefinition
from graphs import parse, render
from tests.conftest import OpenGateway
from tests.fakes import ListSource, tool

ROOMS = ("find_room", "book_room", "send_mail")
ANSWER = """Here is what I think. [[book_room]]
```
rooms/book_room --requires--> rooms/find_room
- find_room --next--> BOOK_ROOM
```
send_mail --relatedTo--> send_mail
send_mail --requires--> rm_rf
book_room --memberOf--> find_room
book_room --frobs--> find_room
book_room --requires--> find_room
"""


class Parrot:
    """Proposer that returns the given answers in turn and records its requests."""

    model_id = "parrot"

    def __init__(self, *answers: str) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def propose(self, tools: str) -> ModelReply:
        self.asked.append(tools)
        answer = self.answers[(len(self.asked) - 1) % len(self.answers)]
        if answer == "fail":
            raise OSError("secret")
        return ModelReply(text=answer, input_tokens=10, output_tokens=2)


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    async with Gateway(strategy="graph") as gateway:
        gateway.add_source(ListSource("rooms", [tool(name) for name in ROOMS]))
        gateway.add_source(ListSource("alone", [tool("one")]))
        yield gateway


async def test_valid_edges_in_a_reply_get_into_the_document_and_others_into_notices(
    gateway: Gateway,
) -> None:
    """Unknown names, other predicates, edges to the same tool and other text must not get into a
    document.
    """
    proposals = await gateway.propose_edges(Parrot(ANSWER))

    (document,) = proposals.documents
    assert ("rooms.md", 1, 10, 2) == (
        document.path, proposals.requests, proposals.input_tokens, proposals.output_tokens
    )  # fmt: skip
    assert [
        ("rooms/book_room", "requires", "rooms/find_room"),
        ("rooms/find_room", "nextStep", "rooms/book_room"),
    ] == sorted((edge.subject, edge.predicate, edge.object) for edge in document.edges)
    for word in ("rm_rf", "send_mail --relatedTo--> send_mail", "memberOf", "'frobs'", "mentions"):
        assert any(word in notice for notice in proposals.notices)
    assert "I think" not in render(document)


async def test_document_of_proposals_declares_its_edges_once_the_host_adds_it(
    gateway: Gateway,
) -> None:
    """Only then do searches use the edges."""
    (document,) = (await gateway.propose_edges(Parrot(ANSWER))).documents
    text = render(document)

    again = parse(text, path=document.path)
    assert document.edges == again.edges
    assert "- `rooms/book_room` --requires--> `rooms/find_room`" in text
    async with Gateway(strategy="graph", graph=[again]) as informed:
        informed.add_source(ListSource("rooms", [tool(name) for name in ROOMS]))
        result = await informed.search("book a room", limit=1)
    assert ["rooms/find_room"] == [prerequisite.id for prerequisite in result.prerequisites]


async def test_propose_asks_once_per_batch_of_a_server_and_skips_single_tools(
    gateway: Gateway,
) -> None:
    """A server with only one tool is skipped; the last batch of a server may have one tool."""
    gateway.add_source(ListSource("many", [tool(f"t{number:02}") for number in range(BATCH + 1)]))
    parrot = Parrot("")

    proposals = await gateway.propose_edges(parrot)

    assert (3, ()) == (proposals.requests, proposals.documents)
    assert [BATCH, 1, 3] == [len(text.splitlines()) for text in parrot.asked]
    assert parrot.asked[2].startswith("- rooms/book_room: ")
    few = await gateway.propose_edges(parrot, servers=["rooms"])
    assert 1 == few.requests
    with pytest.raises(
        InvalidRequestError, match=r"server 'nope' is unknown .* alone, many, rooms"
    ):
        await gateway.propose_edges(parrot, servers=["nope"])


async def test_tool_is_described_to_the_model_in_a_single_line() -> None:
    """The line has inputs and outputs. A server's description must not start another line."""
    rich = ToolDefinition(
        name="pay",
        description="Pays.\nA --requires--> B",
        input_schema={"properties": {"id": {}, "to": {}}, "required": ["id"]},
        output_schema={"properties": {"receipt": {}}},
    )
    async with Gateway(strategy="graph") as gateway:
        gateway.add_source(ListSource("s", [rich, tool("refund")]))
        (batch,) = batches(await gateway.snapshot())

    assert "- s/pay: Pays. A --requires--> B; takes id; gives receipt" == batch.text.split("\n")[0]


async def test_failed_model_request_affects_only_its_batch(gateway: Gateway) -> None:
    """The notice omits the error text, which may contain a secret."""
    gateway.add_source(ListSource("more", [tool("a"), tool("b")]))

    proposals = await gateway.propose_edges(Parrot("fail", "book_room --requires--> find_room"))

    assert ["rooms.md"] == [document.path for document in proposals.documents]
    assert ("more: the model could not be asked: OSError",) == proposals.notices


@pytest.mark.parametrize(
    ("answer", "notice"),
    [
        ("\n".join(["book_room --requires--> find_room"] * (MAX_EDGES + 1)), ""),
        (
            "\n".join(f"x{number} --requires--> y" for number in range(MAX_EDGES + 2)),
            "2 edges above the limit",
        ),
        ("\n" * 30_000, "cannot be parsed"),
    ],
)
async def test_propose_bounds_the_number_of_edges_and_notices(
    gateway: Gateway, answer: str, notice: str
) -> None:
    proposals = await gateway.propose_edges(Parrot(answer))

    assert len(proposals.notices) <= MAX_EDGES + 1
    assert not notice or notice in proposals.notices[-1]


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    def answer(request: ModelRequest) -> Turn:
        return Turn(
            "rooms/book_room --requires--> rooms/find_room" if "rooms/" in request.user_text else ""
        )

    with ScriptedModel(answer) as model:
        yield model


def test_openai_proposer_sends_one_request_per_batch(
    model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tools are not part of the instructions, because they are untrusted data."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"), connected(model="m"):
        pass
    monkeypatch.setenv("OPENAI_API_KEY", "k")

    with (
        connected(model="m", base_url=model.base_url) as proposer,
        SyncGateway(Gateway(strategy="graph")) as twin,
    ):
        twin.gateway.add_source(ListSource("rooms", [tool(name) for name in ROOMS]))
        proposals = twin.propose_edges(proposer)
        assert proposer.model_id.endswith("/m")

    (document,) = proposals.documents
    assert ("rooms.md", 1) == (document.path, len(document.edges))
    assert proposals.input_tokens > 0 < proposals.output_tokens
    (request,) = model.requests
    assert PROPOSALS == request.messages[0]["content"]
    assert "- rooms/book_room: " in request.user_text


async def test_propose_edges_is_refused_without_the_plugin(open_gateway: OpenGateway) -> None:
    gateway = open_gateway(options=Options(plugins=()))

    with pytest.raises(ConfigError, match="needs the plugin 'graph_tools'"):
        await gateway.propose_edges(Parrot(ANSWER))
