"""Keys derived from the host key, one for each purpose (HKDF, RFC 5869), and encryption with them.

* The host key may be a list, separated by commas, so that it can be rotated: the first key
  encrypts, and the others still decrypt.
* Each text is encrypted with AES-256-GCM for the place where it is stored. So a person who can only
  write to the database cannot give one user's credentials to another.
* The approval key is used to digest the environment variables of a configured command, so that a
  digest does not reveal a short value.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from gateway.errors import ConfigError
from gateway.options import Options
from gateway.options.environment import approval_key_path
from gateway.runtime.atomic_file import write_atomically

MIN_CHARS = 32
_BYTES = 32


def host_keys(options: Options, purpose: str) -> tuple[bytes, ...]:
    """Return the keys for *purpose*, 32 bytes each, the current one first; empty without a host
    key.

    Args:
        options: Options whose ``host_key`` is one or more keys, or a reference to them.
        purpose: A name such as ``approvals``. Keys of different purposes are independent.

    Raises:
        ConfigError: If a key is too short, or the reference cannot be resolved.
    """
    if not options.host_key:
        return ()
    from gateway.runtime.secrets import expand  # noqa: PLC0415  (slow to load: only a host with a key pays for it)

    try:
        texts = [text.strip() for text in expand(options.host_key).split(",")]
    except ConfigError as error:
        raise ConfigError(f"host_key: {error}") from None
    if any(len(text) < MIN_CHARS for text in texts):
        raise ConfigError(
            f"host_key: each key must have {MIN_CHARS} characters or more, with a comma between "
            "two keys: make one with: openssl rand -base64 32"
        )
    return tuple(_derive(text, purpose) for text in texts)


def _derive(key: str, purpose: str) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415  (slow to load: only a host with a key pays for it)
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415  (likewise)

    info = f"tool-gateway/{purpose}".encode()
    return HKDF(algorithm=SHA256(), length=_BYTES, salt=None, info=info).derive(key.encode())


_NONCE_BYTES = 12
"""Length of a nonce in bytes, as in NIST SP 800-38D, section 8.2."""


def encrypt(keys: Sequence[bytes], text: str, *, place: str) -> bytes:
    """Encrypt *text* with the first of *keys* (32 bytes each), for the *place* where it is stored.

    Return a random nonce followed by the encrypted text.
    """
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  (slow to load: only a host with a key pays for it)

    nonce = secrets.token_bytes(_NONCE_BYTES)
    return nonce + AESGCM(keys[0]).encrypt(nonce, text.encode(), place.encode())


def decrypt(keys: Sequence[bytes], data: bytes, *, place: str) -> str | None:
    """Decrypt *data* from `encrypt`; return None unless one of *keys* and *place* match."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415  (as above)
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  (as above)

    nonce, sealed = data[:_NONCE_BYTES], data[_NONCE_BYTES:]
    for key in keys:
        try:
            return AESGCM(key).decrypt(nonce, sealed, place.encode()).decode()
        except (InvalidTag, ValueError):
            continue
    return None


def approval_key(options: Options) -> bytes:
    """Return the approval key, 32 bytes. It is the same on all machines with the same host key.

    Without a host key, the approval key is in the file ``approvals.key``, which is created if
    missing. If this fails, the key is random, and all earlier approvals are invalid.

    Raises:
        ConfigError: If the host key is invalid.
    """
    keys = host_keys(options, "approvals")
    return keys[0] if keys else key_in(approval_key_path(options))


def key_in(path: Path) -> bytes:
    """Return the key in the file *path*, mode 0600, which is created if missing.

    If the file cannot be created or read, return a random key.
    """
    try:
        if not path.exists():
            fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
            write_atomically(fresh, secrets.token_bytes(_BYTES))
            try:
                # Of two processes that create the file at once, both use the key of the first.
                os.link(fresh, path)
            except FileExistsError:
                pass
            finally:
                fresh.unlink()
        return path.read_bytes()
    except OSError:
        return secrets.token_bytes(_BYTES)
