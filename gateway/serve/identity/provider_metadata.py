"""What an identity provider says of itself (RFC 8414; OpenID Connect Discovery)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.client.auth.utils import build_oauth_authorization_server_metadata_discovery_urls

from gateway.errors import Failed, UpstreamError, attempt
from gateway.mcp.json_fetch import fetch_json
from gateway.serve.identity.issuers import address_fault

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
