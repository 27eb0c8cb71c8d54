"""A conversation in the format of the Responses API. Pure, but for what `Chains` remembers.

* Each turn sends the whole of what this call has gained; the service's own memory
  (``previous_response_id``) stays as the caller gave it. Of a ``conversation`` the service keeps
  what it was sent, so that each turn sends what is new alone.
* A turn that mixes the host's calls with ours goes back with the host's; where the service keeps
  the conversation, ours are answered with the caller's next request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from openai.types.responses import Response
from openai.types.responses.response_output_item import ResponseOutputItem
from pydantic import BaseModel

from gateway.chat.chains import Chains, Link
from gateway.chat.choice import demanded, relaxed
from gateway.chat.messages import plain
from gateway.chat.wire import IsOurs, Loaded, Plain
from gateway.discovery.call_handler import Answer, ToolCall
from gateway.discovery.render_results import names_of
from gateway.discovery.tool_list import Offer
from gateway.discovery.wire_formats import NATIVE_SEARCH, Form, messages_of
from gateway.errors import InvalidRequestError

_HOSTS = frozenset(
    {
        "apply_patch_call",
        "computer_call",
        "custom_tool_call",
        "local_shell_call",
        "mcp_approval_request",
        "shell_call",
    }
)
"""Items that the caller answers; what is neither these nor a function runs at the service."""


class ResponsesTalk:
    """One call of ``responses``."""

    form: Form = "responses"

    def __init__(self, body: Mapping[str, object], chains: Chains) -> None:
        self._body = body
        self._chains = chains
        given = body.get("input")
        self._input: list[Plain] = (
            [{"role": "user", "content": given}]
            if isinstance(given, str)
            else plain(given, "input")
        )
        self._gained: list[Plain] = []
        self._shown: tuple[str, ...] = ()
        self.host_tools: Sequence[Plain] = plain(body.get("tools"), "tools")
        self.model = str(body.get("model", ""))
        self.demanded = demanded(body.get("tool_choice"))
        self._conversation = _id_of(body.get("conversation"))
        self._previous = str(body.get("previous_response_id") or "")
        self._link = chains.get(self._conversation or self._previous)
        self.recalled = self._link.shown
        self.owed = self._link.owed
        self._repaid: list[Plain] = []
        self._unsent: list[Plain] = list(self._input)

    def refuse(self) -> None:
        """Refuse what nobody waits for: its calls would never be answered."""
        if self._body.get("background"):
            raise InvalidRequestError(
                "'background' cannot work with found tools, since nobody is there to call them: "
                "leave it out, or use the bare client as .openai"
            )

    def history(self) -> Sequence[Plain]:
        """Give the conversation as chat messages, what the service keeps in short."""
        return messages_of([*self._repaid, *self._input, *self._gained])

    def body(self, turn: int, offer: Offer) -> dict[str, object]:
        """Write the request; the first one hands on the caller's own input, byte for byte."""
        self._shown = offer.proxies
        body = dict(self._body)
        if self._link.goes_on_from and self._previous:
            body["previous_response_id"] = self._link.goes_on_from
        if turn > 1 or self._repaid:
            everything = [*self._repaid, *self._input, *self._gained]
            body["input"] = list(self._unsent) if self._conversation else everything
        if turn > 1 and "tool_choice" in body:
            body["tool_choice"] = relaxed(body["tool_choice"])
        self._unsent.clear()
        if not offer.empty:
            body["tools"] = list(offer.tools)
        return body

    def readable(self, reply: object) -> bool:
        """Say whether it has items."""
        return isinstance(reply, Response) and isinstance(reply.output, list)

    def calls(self, reply: Response) -> tuple[ToolCall, ...]:
        """Give the calls that wait for an answer; none of a reply that was broken off."""
        if reply.status not in {None, "completed"}:
            return ()
        return tuple(call for item in reply.output if (call := _call(item)) is not None)

    def trimmed(self, reply: Response, is_ours: IsOurs) -> Response:
        """Leave out our calls."""
        kept = [item for item in reply.output if not _is_ours(item, is_ours)]
        if len(kept) == len(reply.output):
            return reply
        return reply.model_copy(update={"output": kept})

    def grow(self, reply: Response, answers: Sequence[Answer], loaded: Loaded) -> None:
        """Add the reply's items and the items that answer its calls."""
        told = self._told(answers, loaded)
        said = [_item(item) for item in reply.output]
        if self._body.get("store") is False:
            # The service has not kept them and cannot read them back.
            said = [each for each in said if each.get("type") != "reasoning" or _sealed(each)]
        self._gained += said
        self._gained += told
        self._unsent += told

    def repay(self, answers: Sequence[Answer], loaded: Loaded) -> None:
        """Put the answers that are owed before the caller's input; what they found is shown."""
        self._repaid = self._told(answers, loaded)
        self._unsent = [*self._repaid, *self._unsent]
        found = (name for done in answers if done.search for name in names_of(done.text))
        self.recalled = tuple(dict.fromkeys((*self.recalled, *found)))

    def _told(self, answers: Sequence[Answer], loaded: Loaded) -> list[Plain]:
        """Write the items that answer calls. What a search found that stands loaded in this
        request already is not loaded again, unless there is nothing else.
        """
        known = set() if self._body.get("truncation") == "auto" else self._known()
        told: list[Plain] = []
        for done in answers:
            new = [name for name in done.loaded if name not in known] or done.loaded
            known.update(new)
            told.append(_output(done, loaded(new) if done.call.native else ()))
        return told

    def _known(self) -> set[str]:
        """Give the names that earlier outputs have loaded."""
        outputs = (
            item.get("tools")
            for item in (*self._input, *self._gained)
            if item.get("type") == "tool_search_output"
        )
        listed = (each for tools in outputs if isinstance(tools, list) for each in tools)
        return {str(tool.get("name")) for tool in listed if isinstance(tool, Mapping)}

    def keep(self, final: Response, owed: tuple[ToolCall, ...], *, opened: str = "") -> None:
        """Remember what was shown and what is owed, if the service keeps the conversation."""
        if self._body.get("store") is False and not self._conversation:
            return
        link = Link(shown=self._shown, owed=owed)
        for name in filter(None, (final.id, self._conversation)):
            self._chains.put(name, link)
        if opened and opened != final.id:
            self._chains.put(opened, replace(link, goes_on_from=final.id))

    def gained(self) -> tuple[Plain, ...]:
        """Give the items since the caller's."""
        return tuple(self._gained)

    def text(self, reply: Response) -> str:
        """Give the text."""
        return reply.output_text

    def metered(self, reply: Response) -> BaseModel | None:
        """Give the usage."""
        return reply.usage


def _id_of(conversation: object) -> str:
    if isinstance(conversation, Mapping):
        conversation = conversation.get("id")
    return conversation if isinstance(conversation, str) else ""


def _call(item: ResponseOutputItem) -> ToolCall | None:
    if item.type == "function_call":
        return ToolCall(id=item.call_id, name=item.name, arguments=item.arguments)
    if item.type == "tool_search_call" and item.execution == "client":
        arguments = json.dumps(item.arguments or {}, default=str)
        return ToolCall(id=item.call_id or "", name="", arguments=arguments, native=True)
    if item.type in _HOSTS:
        call_id = str(getattr(item, "call_id", ""))
        return ToolCall(id=call_id, name="", arguments="", foreign=True)
    return None


def _is_ours(item: ResponseOutputItem, is_ours: IsOurs) -> bool:
    if item.type == "tool_search_call":
        return item.execution == "client" and is_ours(NATIVE_SEARCH)
    return item.type == "function_call" and is_ours(item.name)


def _item(item: BaseModel) -> Plain:
    return item.model_dump(mode="json", exclude_unset=True, by_alias=True)


def _sealed(item: Plain) -> bool:
    return bool(item.get("encrypted_content"))


def _output(done: Answer, tools: Sequence[Plain]) -> Plain:
    if not done.call.native:
        return {"type": "function_call_output", "call_id": done.call.id, "output": done.text}
    return {
        "type": "tool_search_output",
        "call_id": done.call.id,
        "execution": "client",
        "status": "completed",
        "tools": list(tools),
    }
