"""The public keys of an identity provider, fetched and kept.

* A key that is not known has them fetched again, at most once in `RETRY_S` seconds and by one
  request for all that wait: a flood of invented keys costs the provider no more.
* Known keys are used at once, while they are fetched again each hour in the background; after two
  hours in which nobody asked, the first request waits for them. While the provider is down they are
  kept, for a day at most.

What an identity provider says of itself (RFC 8414; OpenID Connect Discovery).
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
    """Return the metadata of *issuer*.

    Args:
        issuer: Its address, to the letter.
        needed: The members that must be https addresses, and what each is the address of.
        timeout_s: When an answer is given up.

    Raises:
        UpstreamError: There are none, or they lack an address.
    """
    faults = list[str]()
    for url in build_oauth_authorization_server_metadata_discovery_urls(issuer, issuer):
        document = await attempt(
            fetch_json(url, configured=issuer, max_bytes=MAX_BYTES, timeout_s=timeout_s)
        )
        if isinstance(document, Failed):
            faults.append(document.reason)
            continue
        found = document if isinstance(document, dict) else {}
        if found.get("issuer") != issuer:
            faults.append(f"{url!r} is of another issuer: write it here to the letter as there")
        elif lacking := [what for name, what in needed.items() if not _is_address(found.get(name))]:
            faults.append(f"{url!r} names no https address of {' and '.join(lacking)}")
        else:
            return found
    raise UpstreamError(issuer, f"has no metadata: {'; '.join(faults)}", kind="connect")


def _is_address(value: object) -> bool:
    return isinstance(value, str) and not address_fault(value)


RETRY_S = 10.0
"""How long keys are not fetched again after the last time, whatever is asked for."""
REFRESH_S = 3600.0
"""When keys are fetched again. A key that the provider took out is refused from then on."""
UNUSED_S = 2 * REFRESH_S
"""When keys are fetched again before they are used: no request came in time to have it done."""
MAX_AGE_S = 24 * 3600.0
"""When keys that could not be fetched again are used no more."""
_MAX_KEYS = 100
_KEY_TYPES = frozenset({"RSA", "EC", "OKP"})
Key = Mapping[str, Any]
"""A JSON Web Key (RFC 7517) for the verification of signatures."""

log = logging.getLogger("gateway.serve")


class ProviderKeys:
    """The keys of one provider.

    Args:
        issuer: The provider.
        clock: Tells seconds.
        timeout_s: When an answer is given up.
    """

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
        """Return the key with *key_id*; None if the provider has none.

        Raises:
            UpstreamError: It is not known, and the provider cannot be asked.
        """
        now = self._clock()
        age = now - self._fetched_at
        is_known = key_id in self._keys and age < MAX_AGE_S
        is_due = age >= REFRESH_S or not is_known
        task = self._fetching
        # One that was cancelled with its loop is over too.
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
        """Fetch the keys; if that fails, note why and keep what there is."""
        keys = await attempt(self.fetch())
        if isinstance(keys, Failed):
            self._fault = keys.reason
            log.warning("the keys of %s cannot be fetched: %s", self.issuer.issuer, self._fault)
            return
        self._fault, self._keys, self._fetched_at = "", keys, self._clock()

    async def fetch(self) -> Mapping[str, Key]:
        """Return the provider's keys by id, those that can verify signatures.

        Raises:
            GatewayError: They cannot be fetched, or there are none.
        """
        address = self.issuer.jwks_uri
        if not address:
            found = await find_metadata(
                self.issuer.issuer, {"jwks_uri": "keys"}, timeout_s=self._timeout_s
            )
            address = found["jwks_uri"]
        document = await self._read(address)
        keys = document.get("keys") if isinstance(document, dict) else None
        if not isinstance(keys, list):
            raise UpstreamError(self.issuer.issuer, "sent no set of keys")
        usable = {key["kid"]: key for key in keys[:_MAX_KEYS] if _is_usable(key)}
        if not usable:
            raise UpstreamError(self.issuer.issuer, "has no key that could verify a signature")
        return usable

    async def _read(self, url: str) -> object:
        configured = self.issuer.jwks_uri or self.issuer.issuer
        return await fetch_json(
            url, configured=configured, max_bytes=MAX_BYTES, timeout_s=self._timeout_s
        )


def _is_usable(key: object) -> bool:
    """Return whether *key* is a public key with an id that may verify signatures."""
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
