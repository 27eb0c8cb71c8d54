"""Skills of servers: the entries of the extension ``io.modelcontextprotocol/skills``. Pure.

After SEP-2640. A skill is a folder of files, each of which is a resource; its address is that of
its ``SKILL.md``. Its entry repeats the front matter, and names all files with their digests, so
that a pin of the entry is a pin of all that the skill says.
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
"""The keys of an entry; the details of a definition have them too."""
FILE = "SKILL.md"
DYNAMIC = "dynamic"
"""Stands for the files of a skill whose contents are made when they are read."""
MAX_FILES = 512
MAX_BYTES = 16 * 2**20
"""How many files a skill may have, and how large they may be together."""
MAX_NAME_CHARS = 64
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def is_skill_name(name: object) -> bool:
    """Return whether a skill may be called so: the last folder of its address is."""
    return (
        isinstance(name, str) and len(name) <= MAX_NAME_CHARS and _NAME.fullmatch(name) is not None
    )


def is_file_of(skill: str, uri: str) -> bool:
    """Return whether *uri* lies in the folder of the skill at the address *skill*."""
    return skill.endswith(f"/{FILE}") and uri.startswith(skill.removesuffix(FILE))


def find_skill_fault(item: JsonObject, uri: str) -> str:
    """Return why the entry *item* of the skill at *uri* cannot be used; empty if it can."""
    front = item.get(FRONT)
    if not isinstance(front, dict) or not isinstance(front.get("description"), str):
        return "its front matter is no object with a name and a description"
    name = front.get("name")
    if not is_skill_name(name) or not uri.endswith(f"/{name}/{FILE}"):
        return f"its address does not end in its name and {FILE}"
    files = item.get(FILES)
    return "" if files == DYNAMIC else _find_files_fault(files, uri)


def _find_files_fault(files: object, uri: str) -> str:
    if not isinstance(files, list) or len(files) > MAX_FILES:
        return f"its files are no list of at most {MAX_FILES}"
    root = uri.removesuffix(FILE)
    if not all(isinstance(file, dict) and _is_file(file, root) for file in files):
        return "one of its files lies elsewhere, or has no digest and size"
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
    """Return the definition of the entry *item*, which has no fault; its name is its address."""
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
    """Return how an entry names the file at *uri* with this *content*."""
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    return {"uri": uri, "digest": digest, "size": len(content)}


def is_as_listed(content: JsonObject, file: JsonObject) -> bool:
    """Return whether a read *content* is that of the listed *file*."""
    text, blob = content.get("text"), content.get("blob")
    try:
        raw = text.encode() if isinstance(text, str) else base64.b64decode(str(blob))
    except ValueError:
        return False
    return file_of(str(file["uri"]), raw) == {key: file[key] for key in ("uri", "digest", "size")}
