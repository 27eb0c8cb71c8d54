"""Where HTTP requests may go: not in plain text over a network, not into the host's own network.

An address in a configuration, or a redirect, may lead to a service that trusts whoever can reach
it (server-side request forgery; CVE-2026-26118). So a name is resolved once, its addresses are
judged, and the connection goes to the very address that was judged. A name that resolves to
something else a moment later changes nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

import httpx2

from gateway.errors import ConfigError
from gateway.options.environment import proxied

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Returns the addresses of a host name."""

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_PORTS = {"https": 443, "http": 80}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_METADATA = frozenset({"169.254.169.254", "169.254.170.2", "fd00:ec2::254", "100.100.100.200"})


async def resolve_host(host: str, port: int) -> list[str]:
    """Resolve as the operating system does."""
    loop = asyncio.get_running_loop()
    entries = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in entries]


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends each request, redirected ones too, only where it may go.

    Args:
        private_hosts: Names of hosts that may be private and speak plain HTTP.
        local: Whether it may go to this machine; never if the address comes from elsewhere.
        inner: What sends.
        resolve: Resolves names.
    """

    def __init__(
        self,
        private_hosts: Iterable[str],
        *,
        local: bool = True,
        inner: httpx2.AsyncBaseTransport | None = None,
        resolve: Resolve = resolve_host,
    ) -> None:
        self._private = frozenset(private_hosts)
        self._local = local
        self._inner = inner or httpx2.AsyncHTTPTransport(trust_env=False)
        self._resolve = resolve

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Judge where *request* goes, then send it to the address that was judged.

        Raises:
            ConfigError: It may not go there.
        """
        *others, last = await self.resolve_url(request.url)
        for address in others:
            with suppress(httpx2.ConnectError):
                return await self._send(request, address)
        return await self._send(request, last)

    async def _send(self, request: httpx2.Request, address: str) -> httpx2.Response:
        # A copy: redirects, and whoever sends it again, go by the name that stands in it.
        addressed = httpx2.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": request.url.host},
        )
        return await self._inner.handle_async_request(addressed)

    async def resolve_url(self, url: httpx2.URL) -> list[str]:
        """Return the addresses of the host of *url*, at least one, all of them judged.

        Raises:
            ConfigError: A request may not go there.
            httpx2.ConnectError: There is no such host.
        """
        check_url(url, self._private, local=self._local)
        try:
            addresses = await self._resolve(url.host, url.port or _PORTS[url.scheme])
        except OSError as error:
            raise httpx2.ConnectError(f"no address for {url.host!r}") from error
        for address in addresses:
            _check_address(address, url.host, self._private)
        return [address.partition("%")[0] for address in addresses]

    async def aclose(self) -> None:
        """Close what sends."""
        await self._inner.aclose()


def guarded_transport(url: str, private_hosts: Iterable[str]) -> GuardedTransport | None:
    """Return the transport for *url*; None if the environment puts a proxy before it.

    A proxy resolves names itself: then only the address as it is written can be judged.

    Raises:
        ConfigError: The address itself may not be used.
    """
    check_url(url, private_hosts)
    local = is_local(url)
    parts = httpx2.URL(url)
    if not local and proxied(parts.scheme, parts.host):
        return None
    return GuardedTransport(private_hosts, local=local)


def is_local(url: str) -> bool:
    """Whether *url* names this machine."""
    return httpx2.URL(url).host in _LOOPBACK_NAMES


def check_url(url: str | httpx2.URL, private_hosts: Iterable[str], *, local: bool = True) -> None:
    """Judge *url* as it is written, which is all that can be judged if a proxy resolves names.

    Args:
        url: Where a request goes.
        private_hosts: As for `GuardedTransport`.
        local: As for `GuardedTransport`.

    Raises:
        ConfigError: It is refused.
    """
    try:
        parts = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise ConfigError("the address of a server cannot be used: correct its url") from error
    is_loopback = parts.host in _LOOPBACK_NAMES
    if parts.scheme != "https" and not is_loopback and not _is_private(parts.host, private_hosts):
        raise ConfigError(
            f"{parts.host!r} may not be asked without TLS: use https, or, in a network of your "
            "own, name it in UpstreamOptions.private_hosts"
        )
    if is_loopback and not local:
        raise ConfigError(
            f"a server elsewhere may not lead to {parts.host!r}, which is this machine"
        )
    with suppress(ValueError):
        _check_address(parts.host, parts.host, private_hosts)


def _check_address(address: str, host: str, private_hosts: Iterable[str]) -> None:
    """Refuse *address*, to which *host* resolved, if it lies in a network of the host's own.

    Raises:
        ConfigError: It is refused.
        ValueError: It is no address.
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        ip = _carried_address(ip)
    if ip.is_loopback and host in _LOOPBACK_NAMES:
        return
    is_allowed = _is_private(host, private_hosts) and not ip.is_link_local
    is_public = ip.is_global and not ip.is_multicast and not ip.is_reserved
    if not is_public and not (is_allowed and str(ip) not in _METADATA):
        raise ConfigError(
            f"{host!r} leads into a private network: if that is meant, name it in "
            "UpstreamOptions.private_hosts"
        )


def _is_private(host: str, private_hosts: Iterable[str]) -> bool:
    return host in {name.casefold() for name in private_hosts}


def _carried_address(
    address: ipaddress.IPv6Address,
) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return the IPv4 address that *address* carries, if it carries one."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
