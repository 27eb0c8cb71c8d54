"""The key of the host, from which all other keys come: one for each purpose, by HKDF (RFC 5869).

Replicas that have the same key can read what each of them encrypts in a store. A list of keys,
separated by commas, lets the key be changed: the first one counts, and the others still decrypt.

Texts that only the host can read, wherever they lie: AES-256-GCM under keys of the host.

A text belongs to its place: moved to another one it cannot be decrypted. So nobody who can write
to a database alone makes one user's credentials another's.

The key by which what a configuration file would run is digested: from the key of the host, or
else in a file of its owner alone.

Without it nobody can find a value by trying, not even a short one.
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
    """Return the keys for *purpose*, 32 bytes each, the one that counts first; empty if the host
    has none.

    Args:
        options: Its ``host_key`` is a text of keys, or a reference to it.
        purpose: Such as ``approvals``. The key of one purpose says nothing of that of another.

    Raises:
        ConfigError: A key is too short, or the reference leads nowhere.
    """
    if not options.host_key:
        return ()
    from gateway.runtime.secrets import expand  # noqa: PLC0415  (slow to load: only a host with a key pays for it)

    try:
        texts = [each.strip() for each in expand(options.host_key).split(",")]
    except ConfigError as error:
        raise ConfigError(f"host_key: {error}") from None
    if any(len(each) < MIN_CHARS for each in texts):
        raise ConfigError(
            f"host_key: each key must have {MIN_CHARS} characters or more, with a comma between "
            "two keys: make one with: openssl rand -base64 32"
        )
    return tuple(_derive(each, purpose) for each in texts)


def _derive(key: str, purpose: str) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415  (slow to load: only a host with a key pays for it)
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415  (likewise)

    info = f"tool-gateway/{purpose}".encode()
    return HKDF(algorithm=SHA256(), length=_BYTES, salt=None, info=info).derive(key.encode())


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


def approval_key(options: Options) -> bytes:
    """Return the key: 32 bytes, the same on all machines that have the same key of the host.

    Without that it is in the file ``approvals.key``, mode 0600, which is made if it is missing. If
    there can be no file the key is a new one each time: nothing is then as it was approved.

    Raises:
        ConfigError: The key of the host cannot be used.
    """
    keys = host_keys(options, "approvals")
    return keys[0] if keys else key_in(approval_key_path(options))


def key_in(path: Path) -> bytes:
    """Return the key in the file *path*, mode 0600; make it if it is missing."""
    try:
        if not path.exists():
            fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
            write_atomically(fresh, secrets.token_bytes(_BYTES))
            try:
                # Of two processes that make it at once, both use that of the first.
                os.link(fresh, path)
            except FileExistsError:
                pass
            finally:
                fresh.unlink()
        return path.read_bytes()
    except OSError:
        return secrets.token_bytes(_BYTES)
