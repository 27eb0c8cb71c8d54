"""The key of the host, from which all other keys come: one for each purpose, by HKDF (RFC 5869).

Replicas that have the same key can read what each of them encrypts in a store. A list of keys,
separated by commas, lets the key be changed: the first one counts, and the others still decrypt.
"""

from __future__ import annotations

from gateway.errors import ConfigError
from gateway.options import Options

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
