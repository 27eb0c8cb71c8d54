"""Token counts: by the model's own vocabulary if it is on this machine, else estimated.

Nothing is downloaded. tiktoken fetches vocabularies over the network, so it is used only for one
whose file is in its cache already.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from gateway.runtime.text import estimate_tokens

TokenCounter = Callable[[str], int]
_BASE_URL = "https://openaipublic.blob.core.windows.net/encodings/"
_SHA256 = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
"""Vocabularies that chat models use, by the hash of their files."""


@lru_cache(maxsize=64)
def token_counter(model: str, folder: Path) -> TokenCounter:
    """Return what counts tokens as *model* does, with the vocabularies in *folder*."""
    if not folder.is_dir() or find_spec("tiktoken") is None:
        return estimate_tokens
    import tiktoken  # noqa: PLC0415  (the optional extra `tokens`)

    try:
        name = tiktoken.encoding_name_for_model(model)
    except KeyError:
        return estimate_tokens
    if not has_vocabulary(name, folder):
        return estimate_tokens
    encoding = tiktoken.get_encoding(name)
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def has_vocabulary(name: str, folder: Path) -> bool:
    """Return whether *folder* has the whole vocabulary *name*: tiktoken would fetch any other."""
    key = hashlib.sha1(f"{_BASE_URL}{name}.tiktoken".encode(), usedforsecurity=False).hexdigest()
    path = folder / key
    if name not in _SHA256 or not path.is_file():
        return False
    return hashlib.sha256(path.read_bytes()).hexdigest() == _SHA256[name]


def json_tokens(value: object) -> int:
    """Estimate the tokens of *value* as JSON."""
    return estimate_tokens(json.dumps(value, ensure_ascii=False, default=str))
