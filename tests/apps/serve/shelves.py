"""Resources, prompts and completions of the fixture server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcp import MCPError, types

from tests.apps.serve.asking import CONTEXT, Context, ask

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
_TEMPLATE = "test://template/{id}/data"
_TEXTS: Mapping[str, str] = {
    "test://static-text": "This is the content of the static text resource.",
    "test://watched-resource": "Somebody may watch this.",
}
_DESCRIBED: Mapping[str, str] = {
    "test_simple_prompt": "A prompt without arguments.",
    "test_prompt_with_arguments": "A prompt that greets in two words.",
    "test_prompt_with_embedded_resource": "A prompt around a resource.",
    "test_prompt_with_image": "A prompt with a picture.",
    "test_input_required_result_prompt": "A prompt that asks for its context.",
}
_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
}


async def list_resources(_context: object, _params: object) -> types.ListResourcesResult:
    texts = [
        types.Resource(
            uri=uri, name=uri.removeprefix("test://"), description=text, mime_type="text/plain"
        )
        for uri, text in _TEXTS.items()
    ]
    picture = types.Resource(
        uri="test://static-binary", name="pixel", description="A pixel.", mime_type="image/png"
    )
    return types.ListResourcesResult(resources=[*texts, picture])


async def list_templates(_context: object, _params: object) -> types.ListResourceTemplatesResult:
    text = "The data of one id."
    template = types.ResourceTemplate(uri_template=_TEMPLATE, name="data", description=text)
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read(
    _context: object, params: types.ReadResourceRequestParams
) -> types.ReadResourceResult:
    """Return a resource, as the conformance suite expects it."""
    return types.ReadResourceResult(contents=[_content(params.uri)])


def _content(uri: str) -> types.TextResourceContents | types.BlobResourceContents:
    if uri in _TEXTS:
        return types.TextResourceContents(uri=uri, mime_type="text/plain", text=_TEXTS[uri])
    if uri == "test://static-binary":
        return types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PIXEL)
    if uri.startswith("test://template/"):
        number = uri.split("/")[3]
        text = json.dumps({"id": number, "templateTest": True, "data": f"Data for ID: {number}"})
        return types.TextResourceContents(uri=uri, mime_type="application/json", text=text)
    raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})


async def list_prompts(_context: object, _params: object) -> types.ListPromptsResult:
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=name,
                description=text,
                arguments=[
                    types.PromptArgument(name=item, description=item, required=True)
                    for item in _ARGUMENTS.get(name, ())
                ],
            )
            for name, text in _DESCRIBED.items()
        ]
    )


async def get_prompt(
    context: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    if params.name not in _DESCRIBED:
        raise MCPError(types.INVALID_PARAMS, f"no prompt {params.name}")
    if params.name == "test_input_required_result_prompt":
        responses = await ask(context, params, {"user_context": CONTEXT})
        if isinstance(responses, types.InputRequiredResult):
            return responses
        return _prompted({"type": "text", "text": f"context: {responses['user_context'].content}"})
    arguments = params.arguments or {}
    return _prompted(*_contents(params.name, arguments))


def _contents(name: str, arguments: Mapping[str, str]) -> list[dict[str, Any]]:
    if name == "test_prompt_with_arguments":
        text = f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'"
        return [{"type": "text", "text": text}]
    if name == "test_prompt_with_embedded_resource":
        text = "Embedded resource content for testing."
        resource = {"uri": arguments["resourceUri"], "mimeType": "text/plain", "text": text}
        return [
            {"type": "resource", "resource": resource},
            {"type": "text", "text": "Please process the embedded resource above."},
        ]
    if name == "test_prompt_with_image":
        return [
            {"type": "image", "data": PIXEL, "mimeType": "image/png"},
            {"type": "text", "text": "Please analyze the image above."},
        ]
    return [{"type": "text", "text": "This is a simple prompt for testing."}]


def _prompted(*contents: dict[str, Any]) -> types.GetPromptResult:
    messages = [{"role": "user", "content": content} for content in contents]
    return types.GetPromptResult.model_validate({"messages": messages})


async def complete(_context: object, params: types.CompleteRequestParams) -> types.CompleteResult:
    values = [item for item in ("paris", "parma") if item.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values))
