"""Skills of servers: entries of the extension ``io.modelcontextprotocol/skills`` (SEP-2640). Pure.

A skill is a folder of files, each of which is a resource. Its URI is the URI of its ``SKILL.md``.
Its entry lists all files with their digests, so that an approval covers their contents.
"""

from __future__ import annotations

import base64
import hashlib
import re

from gateway.runtime.json_schema import as_texts
from gateway.runtime.text import clean, is_visible, visible_json
from gateway.types import Hints, JsonObject, ToolDefinition

EXTENSION = "io.modelcontextprotocol/skills"
FRONT, FILES = "frontmatter", "resources"
"""Keys of a skill's entry and of its definition's details: front matter, list of files."""
FILE = "SKILL.md"
DYNAMIC = "dynamic"
"""Value of an entry's list of files if the contents of the files are generated when read."""
MAX_FILES = 512
MAX_BYTES = 16 * 2**20
"""Maximum total size of the files of a skill, in bytes."""
MAX_NAME_CHARS = 64
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def is_skill_name(name: object) -> bool:
    """Return whether *name* is valid for a skill, and so for the last folder of its URI."""
    return (
        isinstance(name, str) and len(name) <= MAX_NAME_CHARS and _NAME.fullmatch(name) is not None
    )


def is_file_of(skill: str, uri: str) -> bool:
    """Return whether the file *uri* is in the folder of the skill with the URI *skill*."""
    return skill.endswith(f"/{FILE}") and uri.startswith(skill.removesuffix(FILE))


def find_skill_fault(item: JsonObject, uri: str) -> str:
    """Return the problem with the skill entry *item* at *uri*, or ""."""
    front = item.get(FRONT)
    if not isinstance(front, dict) or not isinstance(front.get("description"), str):
        return "its front matter is not an object with a name and a description"
    name = front.get("name")
    if not is_skill_name(name) or not uri.endswith(f"/{name}/{FILE}"):
        return f"its address does not end in its name and {FILE}"
    files = item.get(FILES)
    return "" if files == DYNAMIC else _find_files_fault(files, uri)


def _find_files_fault(files: object, uri: str) -> str:
    if not isinstance(files, list) or len(files) > MAX_FILES:
        return f"its files are not a list of at most {MAX_FILES}"
    root = uri.removesuffix(FILE)
    if not all(isinstance(file, dict) and _is_file(file, root) for file in files):
        return "one of its files is outside its folder, or has no digest and size"
    uris = [file["uri"] for file in files]
    if uri not in uris or len(set(uris)) < len(uris):
        return f"its files lack {FILE}, or name one twice"
    size = sum(file["size"] for file in files)
    return f"its files are larger than {MAX_BYTES} bytes" if size > MAX_BYTES else ""


def _is_file(file: JsonObject, root: str) -> bool:
    uri, digest, size = (file.get(key) for key in ("uri", "digest", "size"))
    is_inside = isinstance(uri, str) and uri.startswith(root) and is_visible(uri)
    is_digest = isinstance(digest, str) and _DIGEST.fullmatch(digest) is not None
    return is_inside and is_digest and type(size) is int and size >= 0


def parse_skill(item: JsonObject, uri: str, *, max_chars: int) -> ToolDefinition:
    """Return the definition of the skill entry *item*, which has passed all checks."""
    front = item[FRONT]
    assert isinstance(front, dict)  # noqa: S101  (find_skill_fault has checked it)
    return ToolDefinition(
        kind="skill",
        name=uri,
        title=front["name"],
        description=clean(front["description"], limit=max_chars),
        hints=Hints(
            tags=tuple(clean(tag, limit=MAX_NAME_CHARS) for tag in as_texts(front.get("tags")))
        ),
        details={FRONT: visible_json(front), FILES: item[FILES]},
    )


def file_of(uri: str, content: bytes) -> JsonObject:
    """Return the entry of the file at *uri* with this *content*."""
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    return {"uri": uri, "digest": digest, "size": len(content)}


def is_as_listed(content: JsonObject, file: JsonObject) -> bool:
    """Return whether *content*, as read, has the digest and size of the listed *file*."""
    text, blob = content.get("text"), content.get("blob")
    try:
        raw = text.encode() if isinstance(text, str) else base64.b64decode(str(blob))
    except ValueError:
        return False
    return file_of(str(file["uri"]), raw) == {key: file[key] for key in ("uri", "digest", "size")}
