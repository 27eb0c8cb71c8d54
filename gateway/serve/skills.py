"""Skills of the catalog in MCP, with the extension ``io.modelcontextprotocol/skills``.

The plugin ``manifests`` writes a skill of the catalog as ``skill://NAMESPACE/NAME/SKILL.md``, if
its name is valid as a folder name. Files of an upstream server's skill are read like its resources.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp import types
from mcp.server import Server

from gateway.call.resources import ResourceLibrary
from gateway.catalog.entries import Entry
from gateway.catalog.identity import to_gateway_uri
from gateway.errors import InvalidRequestError
from gateway.mcp.skills import EXTENSION, FILE, FILES, FRONT, file_of, is_skill_name
from gateway.plugin_manager import own_plugins
from gateway.serve.auth import caller_of
from gateway.serve.client import Context, raise_as_mcp_error
from gateway.serve.resources import ResourceHandlers, page
from gateway.serve.subscriptions import listable
from gateway.types import Caller, Entity

SCHEME = "skill://"


class _GetSkillParams(types.RequestParams):
    uri: str


class SkillHandlers:
    """Handlers of the skills of one server.

    *resources* handles all other resources. Clients may cache answers for *ttl_ms* milliseconds.
    """

    def __init__(
        self, library: ResourceLibrary, resources: ResourceHandlers, *, ttl_ms: int
    ) -> None:
        self._library = library
        self._resources = resources
        self._cacheable = {"resultType": "complete", "ttlMs": ttl_ms, "cacheScope": "private"}

    def offer(self, server: Server[Any]) -> None:
        """Register the extension and its methods at *server*."""
        server.extensions[EXTENSION] = {}
        server.add_request_handler("skills/list", types.PaginatedRequestParams, self.list_skills)
        server.add_request_handler("skills/get", _GetSkillParams, self.get_skill)

    async def list_skills(
        self, context: Context, params: types.PaginatedRequestParams
    ) -> dict[str, Any]:
        """Answer ``skills/list``."""
        skills = await self._skills(caller_of(context))
        page_skills, cursor = page(listable(skills.values()), params)
        following = {} if cursor is None else {"nextCursor": cursor}
        return {"skills": list(map(_entry, page_skills)), **self._cacheable, **following}

    async def get_skill(self, context: Context, params: _GetSkillParams) -> dict[str, Any]:
        """Answer ``skills/get``."""
        skills = await self._skills(caller_of(context))
        with raise_as_mcp_error({"uri": params.uri}, context):
            if params.uri not in skills:
                raise InvalidRequestError(
                    f"unknown skill {params.uri!r}; skills/list lists the skills"
                )
            return {"skill": _entry(skills[params.uri]), **self._cacheable}

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        """Answer ``resources/read``, also for the catalog's own skills."""
        skill = None
        if params.uri.startswith(SCHEME):
            skill = (await self._skills(caller_of(context))).get(params.uri)
        if skill is None or FRONT in skill.definition.details:
            return await self._resources.read_resource(context, params)
        from gateway.plugins.manifests.skills import write_skill  # noqa: PLC0415  (it may not be installed)

        content = types.TextResourceContents(
            uri=params.uri, mime_type="text/markdown", text=write_skill(_to_entry(skill))
        )
        return types.ReadResourceResult(contents=[content])

    async def _skills(self, caller: Caller) -> Mapping[str, Entity]:
        """Return the skills that *caller* may see, keyed by address."""
        entities = await self._library.entities("skill", caller=caller)
        return {uri: entity for entity in entities if (uri := _address(entity))}


def _address(entity: Entity) -> str:
    """Return a skill's address at this server. Empty if it is not offered."""
    if FRONT in entity.definition.details:
        return to_gateway_uri("resource", entity.server, entity.name)
    is_offered = is_skill_name(entity.name) and "manifests" in own_plugins()
    return f"{SCHEME}{entity.server}/{entity.name}/{FILE}" if is_offered else ""


def _to_entry(entity: Entity) -> Entry:
    return Entry(
        kind=entity.kind,
        name=entity.name,
        description=entity.description,
        namespace=entity.server,
        hints=entity.hints,
        metadata=entity.metadata,
    )


def _entry(entity: Entity) -> dict[str, Any]:
    uri, details = _address(entity), entity.definition.details
    if FRONT not in details:
        from gateway.plugins.manifests.skills import front_matter, write_skill  # noqa: PLC0415  (it may not be installed)

        entry = _to_entry(entity)
        files: object = [file_of(uri, write_skill(entry).encode())]
        return {"uri": uri, FRONT: front_matter(entry), FILES: files}
    files = details[FILES]
    if isinstance(files, list):
        files = [
            {**file, "uri": to_gateway_uri("resource", entity.server, file["uri"])}
            for file in files
        ]
    return {"uri": uri, FRONT: details[FRONT], FILES: files}
