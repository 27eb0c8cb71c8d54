"""Public keys and metadata (RFC 8414, OpenID Connect Discovery) of identity providers.

* An unknown key id causes a fetch, at most once in `RETRY_S` seconds, so invented key ids do not
  load the provider.
* Cached keys are refreshed in the background each hour. After two hours without requests, the next
  request waits for fresh keys. While the provider is down, cached keys stay valid for a day.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Mapping
from typing import Any

from mcp.client.auth.utils import build_oauth_authorization_server_metadata_discovery_urls

from gateway.errors import Failed, UpstreamError, attempt
from gateway.mcp.json_fetch import fetch_json
from gateway.runtime.cache import Clock
from gateway.serve.identity.issuers import Issuer, address_fault

FETCH_TIMEOUT_S = 5.0
MAX_BYTES = 256 * 1024


async def find_metadata(
    issuer: str, needed: Mapping[str, str], *, timeout_s: float = FETCH_TIMEOUT_S
) -> Mapping[str, Any]:
    """Fetch the metadata of the provider *issuer*.

    *needed* has the purpose of each required https address, for messages, keyed by member of the
    metadata.

    Raises:
        UpstreamError: If the provider has no metadata, or they lack an address.
    """
    faults = list[str]()
    for url in build_oauth_authorization_server_metadata_discovery_urls(issuer, issuer):
        document = await attempt(
            fetch_json(url, configured=issuer, max_bytes=MAX_BYTES, timeout_s=timeout_s)
        )
        if isinstance(document, Failed):
            faults.append(document.reason)
            continue
        metadata = document if isinstance(document, dict) else {}
        if metadata.get("issuer") != issuer:
            faults.append(
                f"{url!r} is from another issuer; configure the issuer exactly as written there"
            )
        elif lacking := [
            purpose for name, purpose in needed.items() if not _is_address(metadata.get(name))
        ]:
            faults.append(f"{url!r} contains no https address of {' and '.join(lacking)}")
        else:
            return metadata
    raise UpstreamError(issuer, f"has no metadata: {'; '.join(faults)}", kind="connect")


def _is_address(value: object) -> bool:
    return isinstance(value, str) and not address_fault(value)


RETRY_S = 10.0
"""Minimum time between two fetches of a provider's keys."""
REFRESH_S = 3600.0
"""Age after which cached keys are refreshed. Keys that the provider removed are then rejected."""
UNUSED_S = 2 * REFRESH_S
"""Age after which a request waits for fresh keys."""
MAX_AGE_S = 24 * 3600.0
"""Maximum age of cached keys that cannot be refreshed."""
_MAX_KEYS = 100
_KEY_TYPES = frozenset({"RSA", "EC", "OKP"})
Key = Mapping[str, Any]
"""JSON Web Key (RFC 7517) that verifies signatures."""

log = logging.getLogger("gateway.serve")


class ProviderKeys:
    """Cached keys of one identity provider. *timeout_s* limits each request to it."""

    def __init__(
        self, issuer: Issuer, *, clock: Clock = time.monotonic, timeout_s: float = FETCH_TIMEOUT_S
    ) -> None:
        self.issuer = issuer
        self._timeout_s = timeout_s
        self._clock = clock
        self._keys: Mapping[str, Key] = {}
        self._fetched_at = self._tried_at = -math.inf
        self._fetching: asyncio.Task[None] | None = None
        self._fault = ""

    async def find(self, key_id: str) -> Key | None:
        """Return the key with *key_id*. None if the provider does not have it.

        Raises:
            UpstreamError: If the key is not cached and the provider is unavailable.
        """
        now = self._clock()
        age = now - self._fetched_at
        is_known = key_id in self._keys and age < MAX_AGE_S
        is_due = age >= REFRESH_S or not is_known
        task = self._fetching
        # A task cancelled with its event loop is done, too.
        if is_due and (task is None or task.done()) and now - self._tried_at >= RETRY_S:
            self._tried_at = now
            task = self._fetching = asyncio.create_task(self._refresh())
        if not is_known or (age >= UNUSED_S and not self._fault):
            if task is not None and not task.done():
                await asyncio.shield(task)
            if self._fault and not is_known:
                raise UpstreamError(self.issuer.issuer, self._fault, kind="connect")
        return self._keys.get(key_id)

    async def _refresh(self) -> None:
        """Fetch the keys. On failure, keep the cached ones and record the reason."""
        keys = await attempt(self.fetch())
        if isinstance(keys, Failed):
            self._fault = keys.reason
            log.warning("the keys of %s cannot be fetched: %s", self.issuer.issuer, self._fault)
            return
        self._fault, self._keys, self._fetched_at = "", keys, self._clock()

    async def fetch(self) -> Mapping[str, Key]:
        """Fetch the provider's public keys, keyed by id.

        Raises:
            GatewayError: If the keys cannot be fetched, or none verifies signatures.
        """
        address = self.issuer.jwks_uri
        if not address:
            metadata = await find_metadata(
                self.issuer.issuer, {"jwks_uri": "keys"}, timeout_s=self._timeout_s
            )
            address = metadata["jwks_uri"]
        document = await self._read(address)
        keys = document.get("keys") if isinstance(document, dict) else None
        if not isinstance(keys, list):
            raise UpstreamError(self.issuer.issuer, "sent an invalid set of keys")
        usable = {key["kid"]: key for key in keys[:_MAX_KEYS] if _is_usable(key)}
        if not usable:
            raise UpstreamError(self.issuer.issuer, "has no keys that verify signatures")
        return usable

    async def _read(self, url: str) -> object:
        configured = self.issuer.jwks_uri or self.issuer.issuer
        return await fetch_json(
            url, configured=configured, max_bytes=MAX_BYTES, timeout_s=self._timeout_s
        )


def _is_usable(key: object) -> bool:
    """Return whether *key* is a public key with an id, for verifying signatures."""
    if not isinstance(key, dict) or not isinstance(key.get("kid"), str):
        return False
    operations = key.get("key_ops", ["verify"])
    return (
        key.get("kty") in _KEY_TYPES
        and key.get("use", "sig") == "sig"
        and isinstance(operations, list)
        and "verify" in operations
        and "d" not in key
    )
