"""The scripted model of the demo, for machines without a real one.

* It does not know the catalog: it searches with the user's own words, takes the first match whose
  required arguments the conversation contains, calls it, and quotes the real answer.
* Arguments are filled by the schema's parameter names, from literals of the conversation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from gateway.discovery.render_results import direct_names_in
from gateway.options import DiscoveryOptions
from gateway.testing import Call, ModelRequest, Turn

_SEARCH = DiscoveryOptions().search_name
_FOLDER = re.compile(r"the folder \"([^\"]+)\"")
_FILE = re.compile(r"\b[\w-]+\.(?:xlsx|docx)\b")
_ZONE = re.compile(r"\b[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+\b")


def policy(request: ModelRequest) -> Turn:
    """Search, then call, then answer."""
    results = request.last_tool_results()
    if not results:
        return Turn(calls=(Call(_SEARCH, {"query": request.user_text}),))
    content = "\n".join(str(result.get("content", "")) for result in results)
    if _called(request) != _SEARCH:
        return Turn(f"{_called(request)} answered: {content}")
    for name in direct_names_in(content):
        arguments = _arguments(request, name)
        if arguments is not None:
            return Turn(calls=(Call(name, arguments),))
    return Turn("None of the tools that were found fits the request.")


def _called(request: ModelRequest) -> str:
    """Return the name of the first tool that the last assistant message called."""
    *_, last = (message for message in request.messages if message.get("role") == "assistant")
    calls = last.get("tool_calls")
    return str(calls[0]["function"]["name"]) if isinstance(calls, list) and calls else ""


def _arguments(request: ModelRequest, tool: str) -> dict[str, object] | None:
    """Return the required arguments of a visible tool; None if one cannot be filled."""
    parameters = request.functions.get(tool, {}).get("parameters")
    if not isinstance(parameters, Mapping):
        return None
    required = parameters.get("required", [])
    filled = {
        str(name): _value(str(name), request)
        for name in (required if isinstance(required, Sequence) else ())
    }
    return None if None in filled.values() else dict(filled)


def _value(parameter: str, request: ModelRequest) -> str | None:
    for word, read in _READERS.items():
        if word in parameter.casefold():
            return read(request)
    return None


def _file(request: ModelRequest) -> str | None:
    """Return the file that the user names, in the folder that the host names."""
    file = _FILE.search(request.user_text)
    if file is None:
        return None
    folder = next(filter(None, map(_FOLDER.search, _texts(request, "system"))), None)
    return f"{folder.group(1)}/{file.group()}" if folder else file.group()


def _zone(request: ModelRequest) -> str | None:
    zone = _ZONE.search(request.user_text)
    return zone.group() if zone else None


def _texts(request: ModelRequest, role: str) -> Iterator[str]:
    for message in request.messages:
        content = message.get("content")
        if message.get("role") == role:
            yield content if isinstance(content, str) else json.dumps(content)


_READERS: Mapping[str, Callable[[ModelRequest], str | None]] = {
    "file": _file,
    "path": _file,
    "timezone": _zone,
}
"""How a parameter is filled whose name contains the word."""
