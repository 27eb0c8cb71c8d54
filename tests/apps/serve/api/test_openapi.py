"""The OpenAPI document and `docs/http.md` describe the API."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from gateway.serve.http_options import HttpOptions
from tests.apps.serve.api.client import HERE, SECRET, open_client
from tests.conftest import OpenGateway

PAGE = (Path(__file__).parents[4] / "docs" / "http.md").read_text(encoding="utf-8")


async def document(open_gateway: OpenGateway, http: HttpOptions = HERE) -> dict[str, Any]:
    async with open_client(open_gateway(), http) as client:
        headers = {"Authorization": f"Bearer {http.token}"} if http.token else {}
        answer = await client.get("/openapi.json", headers=headers)
    spec: dict[str, Any] = answer.json()
    return spec


async def test_every_reference_in_the_openapi_document_resolves(open_gateway: OpenGateway) -> None:
    spec = await document(open_gateway)
    names = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(spec)))
    every = [operation for path in spec["paths"].values() for operation in path.values()]

    assert spec["openapi"].startswith("3.1")
    assert names == set(spec["components"]["schemas"])
    assert len(every) == len({operation["operationId"] for operation in every})
    assert all(operation["summary"].endswith(".") for operation in every)
    assert all("503" in operation["responses"] for operation in every)


async def test_openapi_document_requires_a_token_only_if_the_server_does(
    open_gateway: OpenGateway,
) -> None:
    guarded = await document(open_gateway, HttpOptions(token=SECRET))
    open_to_all = await document(open_gateway)

    assert [{"bearer": []}] == guarded["paths"]["/api/index"]["get"]["security"]
    assert [] == guarded["paths"]["/api/health"]["get"]["security"]
    assert "401" in guarded["paths"]["/api/index"]["get"]["responses"]
    assert [] == open_to_all["paths"]["/api/index"]["get"]["security"]
    assert "securitySchemes" not in open_to_all["components"]


async def test_http_documentation_lists_every_api_operation(open_gateway: OpenGateway) -> None:
    spec = await document(open_gateway)
    offered = {
        f"{method.upper()} {path}" for path, item in spec["paths"].items() for method in item
    }

    assert offered == set(re.findall(r"^\| `([A-Z]+ /api/[^`]+)` \|", PAGE, re.MULTILINE))


async def test_http_documentation_lists_every_search_field(open_gateway: OpenGateway) -> None:
    spec = await document(open_gateway)
    fields = set(spec["components"]["schemas"]["SemanticSearch"]["properties"])

    assert fields == set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
