"""The scripted model of the demo, for machines without a real one.

* It does not know the catalog: it searches with the user's own words, calls the first match whose
  required arguments the conversation contains, and quotes the real answer.
* Arguments are filled by the schema's parameter names, from literals of the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from gateway.discovery.render_results import direct_names_in
from gateway.options import DiscoveryOptions
from gateway.testing import Call, ModelRequest, Turn, script

_SEARCH = DiscoveryOptions().search_name
_FOLDER = re.compile(r"the folder \"([^\"]+)\"")
_FILE = re.compile(r"\b[\w-]+\.(?:xlsx|docx)\b")
_ZONE = re.compile(r"\b[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+\b")


def _search(request: ModelRequest) -> Turn:
    return Turn(calls=(Call(_SEARCH, {"query": request.user_text}),))


def _call(request: ModelRequest) -> Turn:
    for name in direct_names_in(_answers(request)):
        parameters = request.functions.get(name, {}).get("parameters")
        required = parameters.get("required", ()) if isinstance(parameters, Mapping) else None
        if isinstance(required, Iterable):
            arguments = {str(name): _value(str(name), request) for name in required}
            if None not in arguments.values():
                return Turn(calls=(Call(name, arguments),))
    return Turn("None of the tools that were found fits the request.")


def _answer(request: ModelRequest) -> Turn:
    return Turn(f"The tool answered: {_answers(request)}")


def _answers(request: ModelRequest) -> str:
    return "\n".join(str(result.get("content", "")) for result in request.last_tool_results())


def _value(parameter: str, request: ModelRequest) -> str | None:
    """Return the literal of the conversation that a parameter of this name takes, if any."""
    if "timezone" in parameter:
        zone = _ZONE.search(request.user_text)
        return zone.group() if zone else None
    file = _FILE.search(request.user_text)
    if file is None or not ("file" in parameter or "path" in parameter):
        return None
    folder = _FOLDER.search(str(request.messages[0].get("content")))
    return f"{folder.group(1)}/{file.group()}" if folder else file.group()


policy = script(_search, _call, _answer)
"""Search, then call, then answer."""
