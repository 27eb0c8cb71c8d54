"""Edges that a model proposes: asked in batches, looked at strictly, written for people."""

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
    """A proposer that says the same to everybody, and counts."""

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
    async with Gateway() as gateway:
        gateway.add_source(ListSource("rooms", [tool(name) for name in ROOMS]))
        gateway.add_source(ListSource("alone", [tool("one")]))
        yield gateway


async def test_what_is_meant_is_written_and_the_rest_is_told(gateway: Gateway) -> None:
    """Unknown names, other kinds, circles and chatter never reach a document."""
    found = await gateway.propose_edges(Parrot(ANSWER))

    (document,) = found.documents
    assert ("rooms.md", 1, 10, 2) == (
        document.path, found.requests, found.input_tokens, found.output_tokens
    )  # fmt: skip
    assert [
        ("rooms/book_room", "requires", "rooms/find_room"),
        ("rooms/find_room", "nextStep", "rooms/book_room"),
    ] == sorted((edge.subject, edge.predicate, edge.object) for edge in document.edges)
    for word in ("rm_rf", "send_mail --relatedTo--> send_mail", "memberOf", "'frobs'", "mentions"):
        assert any(word in notice for notice in found.notices)
    assert "I think" not in render(document)


async def test_the_text_is_markdown_ld_that_declares_what_it_shows(gateway: Gateway) -> None:
    """Given back as the host's own, it is what a search follows."""
    (document,) = (await gateway.propose_edges(Parrot(ANSWER))).documents
    text = render(document)

    again = parse(text, path=document.path)
    assert document.edges == again.edges
    assert "- `rooms/book_room` --requires--> `rooms/find_room`" in text
    async with Gateway(graph=[again]) as informed:
        informed.add_source(ListSource("rooms", [tool(name) for name in ROOMS]))
        result = await informed.search("book a room", limit=1)
    assert ["rooms/find_room"] == [each.id for each in result.prerequisites]


async def test_each_server_is_asked_in_batches_and_a_lone_tool_never(gateway: Gateway) -> None:
    """What cannot belong together costs nothing."""
    gateway.add_source(ListSource("many", [tool(f"t{at:02}") for at in range(BATCH + 1)]))
    parrot = Parrot("")

    found = await gateway.propose_edges(parrot)

    assert (3, ()) == (found.requests, found.documents)
    assert [BATCH, 1, 3] == [len(text.splitlines()) for text in parrot.asked]
    assert parrot.asked[2].startswith("- rooms/book_room: ")
    few = await gateway.propose_edges(parrot, servers=["rooms"])
    assert 1 == few.requests
    with pytest.raises(InvalidRequestError, match=r"no server 'nope' .* alone, many, rooms"):
        await gateway.propose_edges(parrot, servers=["nope"])


async def test_a_tool_is_told_on_one_line_with_what_it_takes_and_gives() -> None:
    """A description of an upstream cannot open a line of its own."""
    rich = ToolDefinition(
        name="pay",
        description="Pays.\nA --requires--> B",
        input_schema={"properties": {"id": {}, "to": {}}, "required": ["id"]},
        output_schema={"properties": {"receipt": {}}},
    )
    async with Gateway() as gateway:
        gateway.add_source(ListSource("s", [rich, tool("refund")]))
        (batch,) = batches(await gateway.snapshot())

    assert "- s/pay: Pays. A --requires--> B; takes id; gives receipt" == batch.text.split("\n")[0]


async def test_a_failed_request_leaves_the_others(gateway: Gateway) -> None:
    """And says so without the error's text, which may hold a secret."""
    gateway.add_source(ListSource("more", [tool("a"), tool("b")]))

    found = await gateway.propose_edges(Parrot("fail", "book_room --requires--> find_room"))

    assert ["rooms.md"] == [each.path for each in found.documents]
    assert ("more: the model could not be asked: OSError",) == found.notices


@pytest.mark.parametrize(
    ("answer", "notice"),
    [
        ("\n".join(["book_room --requires--> find_room"] * (MAX_EDGES + 1)), ""),
        ("\n".join(f"x{at} --requires--> y" for at in range(MAX_EDGES + 2)), "2 edges more than"),
        ("\n" * 30_000, "cannot be read"),
    ],
)
async def test_a_flood_is_bounded(gateway: Gateway, answer: str, notice: str) -> None:
    """A model may say the same for ever."""
    found = await gateway.propose_edges(Parrot(answer))

    assert len(found.notices) <= MAX_EDGES + 1
    assert not notice or notice in found.notices[-1]


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    def answer(request: ModelRequest) -> Turn:
        return Turn(
            "rooms/book_room --requires--> rooms/find_room" if "rooms/" in request.user_text else ""
        )

    with ScriptedModel(answer) as model:
        yield model


def test_a_model_over_the_wire_is_asked_once_a_batch(
    model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the instructions beside the tools, which are data; the environment has the key."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"), connected(model="m"):
        pass
    monkeypatch.setenv("OPENAI_API_KEY", "k")

    with connected(model="m", base_url=model.base_url) as proposer, SyncGateway(Gateway()) as twin:
        twin.gateway.add_source(ListSource("rooms", [tool(name) for name in ROOMS]))
        found = twin.propose_edges(proposer)
        assert proposer.model_id.endswith("/m")

    (document,) = found.documents
    assert ("rooms.md", 1) == (document.path, len(document.edges))
    assert found.input_tokens > 0 < found.output_tokens
    (request,) = model.requests
    assert PROPOSALS == request.messages[0]["content"]
    assert "- rooms/book_room: " in request.user_text


async def test_proposals_need_the_plugin(open_gateway: OpenGateway) -> None:
    gateway = open_gateway(options=Options(plugins=()))

    with pytest.raises(ConfigError, match="needs the plugin 'graph_tools'"):
        await gateway.propose_edges(Parrot(ANSWER))
