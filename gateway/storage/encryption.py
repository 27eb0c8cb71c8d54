"""Texts that only the host can read, wherever they lie: AES-256-GCM under keys of the host.

A text belongs to its place: moved to another one it cannot be decrypted. So nobody who can write
to a database alone makes one user's credentials another's.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

_NONCE_BYTES = 12
"""NIST SP 800-38D, section 8.2."""


def encrypt(keys: Sequence[bytes], text: str, *, place: str) -> bytes:
    """Return *text* encrypted under the first of *keys*, behind a random nonce.

    Args:
        keys: 32 bytes each, at least one.
        text: What is to be kept.
        place: Where; `decrypt` needs the same.
    """
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  (slow to load: only a host with a key pays for it)

    nonce = secrets.token_bytes(_NONCE_BYTES)
    return nonce + AESGCM(keys[0]).encrypt(nonce, text.encode(), place.encode())


def decrypt(keys: Sequence[bytes], data: bytes, *, place: str) -> str | None:
    """Return the text of *data*; None if none of *keys* encrypted it for this *place*."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415  (as above)
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  (as above)

    nonce, sealed = data[:_NONCE_BYTES], data[_NONCE_BYTES:]
    for key in keys:
        try:
            return AESGCM(key).decrypt(nonce, sealed, place.encode()).decode()
        except (InvalidTag, ValueError):
            continue
    return None
