"""Tools of the fixture server that ask the client for input, in old and new protocol versions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp import MCPError, types
from mcp.server.context import ServerRequestContext
from mcp.shared.message import ServerMessageMetadata

Context = ServerRequestContext[Any]
Params = types.CallToolRequestParams | types.GetPromptRequestParams
Call = types.CallToolRequestParams
Requests = dict[str, types.InputRequest]
Answer = str | types.InputRequiredResult
Tool = Callable[[Context, Call], Awaitable[Answer]]
SECRET = "state-of-the-fixture"


def is_stateless(context: Context) -> bool:
    return context.protocol_version >= "2026-07-28"


def form(message: str, **properties: object) -> types.ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    params = types.ElicitRequestFormParams(message=message, requested_schema=schema)
    return types.ElicitRequest(params=params)


def sample(prompt: str, *, tokens: int = 100) -> types.CreateMessageRequest:
    """Return a request for a completion by the client's model."""
    message = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
    params = types.CreateMessageRequestParams(messages=[message], max_tokens=tokens)
    return types.CreateMessageRequest(params=params)


NAME = form("What is your name?", name={"type": "string"})
CONTEXT = form("What context should the prompt use?", context={"type": "string"})
CONFIRM = form("Please confirm", ok={"type": "boolean"})
KINDS: Mapping[str, type[types.Result]] = {
    "sampling/createMessage": types.CreateMessageResult,
    "elicitation/create": types.ElicitResult,
    "roots/list": types.ListRootsResult,
}
DEFAULTS = form(
    "Review the defaults",
    name={"type": "string", "default": "John Doe"},
    age={"type": "integer", "default": 30},
    score={"type": "number", "default": 95.5},
    status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    verified={"type": "boolean", "default": True},
)
_TITLED = [{"const": f"value{n}", "title": f"{n}. option"} for n in (1, 2, 3)]
ENUMS = form(
    "Choose",
    untitledSingle={"type": "string", "enum": ["option1", "option2", "option3"]},
    titledSingle={"type": "string", "oneOf": _TITLED},
    legacyEnum={
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    untitledMulti={
        "type": "array",
        "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
    },
    titledMulti={"type": "array", "items": {"anyOf": _TITLED}},
)


async def ask(
    context: Context, params: Params, requests: Requests, state: str | None = None
) -> Mapping[str, Any] | types.InputRequiredResult:
    """Return the responses to *requests*, or a result that requires them first."""
    if is_stateless(context):
        responses = params.input_responses or {}
        if not all(key in responses for key in requests):
            return types.InputRequiredResult(input_requests=requests, request_state=state)
        if state is not None and params.request_state != state:
            raise MCPError(types.INVALID_PARAMS, "the state is not the fixture's")
        return responses
    related = ServerMessageMetadata(related_request_id=context.request_id)
    return {
        key: await context.session.send_request(request, KINDS[request.method], metadata=related)
        for key, request in requests.items()
    }


async def _multi_round(context: Context, params: Call) -> Answer:
    steps = {
        "step1": form("Step 1: What is your name?", name={"type": "string"}),
        "step2": form("Step 2: What is your favorite color?", color={"type": "string"}),
    }
    if not is_stateless(context):
        return f"said: {await ask(context, params, dict(steps))}"
    responses = params.input_responses or {}
    for key, request in steps.items():
        if params.request_state == key and key in responses:
            continue
        if params.request_state == "step2" and key == "step1":
            continue
        return types.InputRequiredResult(input_requests={key: request}, request_state=key)
    return "both steps done"


async def _capable(context: Context, params: Call) -> Answer:
    can = context.session.client_capabilities or types.ClientCapabilities()
    requests: Requests = {}
    if can.sampling is not None:
        requests["model"] = sample("What is the capital of France?")
    if can.elicitation is not None:
        requests["person"] = NAME
    return await _answer(context, params, requests) if requests else "nothing can be asked"


async def _needy(context: Context, _params: Call) -> Answer:
    can = context.session.client_capabilities
    if can is None or can.sampling is None:
        data: dict[str, object] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "needs a model", data)
    return "there is a model"


async def _answer(context: Context, params: Call, requests: Requests) -> Answer:
    responses = await ask(context, params, requests)
    if isinstance(responses, types.InputRequiredResult):
        return responses
    return "; ".join(f"{key}: {_text(item)}" for key, item in responses.items() if key in requests)


def _text(result: object) -> str:
    if isinstance(result, types.ElicitResult):
        return f"{result.action} {result.content}"
    if isinstance(result, types.ListRootsResult):
        return ", ".join(str(root.uri) for root in result.roots)
    content = getattr(result, "content", None)
    return str(getattr(content, "text", content))


def _asking(requests: Requests) -> Tool:
    return lambda context, params: _answer(context, params, requests)


def _stated(requests: Requests, answer: str) -> Tool:
    async def run(context: Context, params: Call) -> Answer:
        responses = await ask(context, params, requests, SECRET)
        return responses if isinstance(responses, types.InputRequiredResult) else answer

    return run


async def _progress(context: Context, _params: Call) -> Answer:
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100, f"{done} %")
    return "all done"


async def _sampling(context: Context, params: Call) -> Answer:
    prompt = str((params.arguments or {}).get("prompt", ""))
    return await _answer(context, params, {"model": sample(prompt)})


async def _elicitation(context: Context, params: Call) -> Answer:
    message = str((params.arguments or {}).get("message", ""))
    request = form(message, username={"type": "string"}, email={"type": "string"})
    return await _answer(context, params, {"person": request})


_EVERYTHING: Requests = {
    "user_name": NAME,
    "greeting": sample("Generate a greeting", tokens=50),
    "client_roots": types.ListRootsRequest(),
}
TOOLS: Mapping[str, Tool] = {
    "test_sampling": _sampling,
    "test_elicitation": _elicitation,
    "test_elicitation_sep1034_defaults": _asking({"person": DEFAULTS}),
    "test_elicitation_sep1330_enums": _asking({"person": ENUMS}),
    "test_streaming_elicitation": _asking({"person": NAME}),
    "test_tool_with_progress": _progress,
    "test_missing_capability": _needy,
    "test_input_required_result_elicitation": _asking({"user_name": NAME}),
    "test_input_required_result_sampling": _asking(
        {"capital_question": sample("What is the capital of France?")}
    ),
    "test_input_required_result_list_roots": _asking({"client_roots": types.ListRootsRequest()}),
    "test_input_required_result_request_state": _stated({"confirm": CONFIRM}, "state-ok"),
    "test_input_required_result_tampered_state": _stated({"confirm": CONFIRM}, "state-ok"),
    "test_input_required_result_multiple_inputs": _stated(_EVERYTHING, "everything was said"),
    "test_input_required_result_multi_round": _multi_round,
    "test_input_required_result_capabilities": _capable,
}
