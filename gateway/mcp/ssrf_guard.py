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

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
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
        self._private = _fold(private_hosts)
        self._local = local
        self._inner = inner or httpx2.AsyncHTTPTransport(trust_env=False)
        self._resolve = resolve

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Judge where *request* goes, then send it to the address that was judged.

        Raises:
            ConfigError: It may not go there.
        """
        url = request.url
        *others, last = await self.resolve_url(url)
        request.extensions = {**request.extensions, "sni_hostname": url.host}
        for address in others:
            request.url = url.copy_with(host=address)
            with suppress(httpx2.ConnectError):
                return await self._inner.handle_async_request(request)
        request.url = url.copy_with(host=last)
        return await self._inner.handle_async_request(request)

    async def resolve_url(self, url: httpx2.URL) -> list[str]:
        """Return the addresses of the host of *url*, at least one, all of them judged.

        Raises:
            ConfigError: A request may not go there.
            httpx2.ConnectError: There is no such host.
        """
        host = url.host.casefold()
        check_scheme(url.scheme, host, self._private)
        _check_local(host, local=self._local)
        try:
            addresses = await self._resolve(host, url.port or _PORTS[url.scheme])
        except OSError as error:
            raise httpx2.ConnectError(f"no address for {host!r}") from error
        for address in addresses:
            check_address(address, host, self._private)
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
    parts = httpx2.URL(url)
    host = parts.host.casefold()
    private = _fold(private_hosts)
    check_scheme(parts.scheme, host, private)
    try:
        check_address(host, host, private)
    except ValueError:
        # A name, not an address.
        if proxied(parts.scheme, host):
            return None
    return GuardedTransport(private, local=host in _LOOPBACK_NAMES)


def check_literal(url: str, configured: str, private_hosts: Iterable[str]) -> None:
    """Judge *url* as it is written, which is all that can be judged if a proxy resolves names.

    Args:
        url: Where a request goes.
        configured: The configured address, which says whether this machine is meant.
        private_hosts: As for `GuardedTransport`.

    Raises:
        ConfigError: It is refused.
    """
    parts = httpx2.URL(url)
    host = parts.host.casefold()
    private = _fold(private_hosts)
    check_scheme(parts.scheme, host, private)
    _check_local(host, local=httpx2.URL(configured).host.casefold() in _LOOPBACK_NAMES)
    with suppress(ValueError):
        check_address(host, host, private)


def check_scheme(scheme: str, host: str, private: frozenset[str]) -> None:
    """Refuse plain HTTP, but to this machine and to hosts that are allowed.

    Raises:
        ConfigError: It is refused.
    """
    if scheme != "https" and host not in _LOOPBACK_NAMES and host not in private:
        raise ConfigError(
            f"{host!r} may not be asked without TLS: use https, or, in a network of your own, "
            "name it in UpstreamOptions.private_hosts"
        )


def check_address(address: str, host: str, private: frozenset[str]) -> None:
    """Refuse *address*, to which *host* resolved, if it lies in a network of the host's own.

    Raises:
        ConfigError: It is refused.
        ValueError: It is no address.
    """
    ip = _unwrap(ipaddress.ip_address(address.partition("%")[0]))
    if ip.is_loopback and host in _LOOPBACK_NAMES:
        return
    is_allowed = host in private and not ip.is_link_local and str(ip) not in _METADATA
    if (not ip.is_global or ip.is_multicast) and not is_allowed:
        raise ConfigError(
            f"{host!r} leads into a private network: if that is meant, name it in "
            "UpstreamOptions.private_hosts"
        )


def _check_local(host: str, *, local: bool) -> None:
    if host in _LOOPBACK_NAMES and not local:
        raise ConfigError(f"a server elsewhere may not lead to {host!r}, which is this machine")


def _fold(hosts: Iterable[str]) -> frozenset[str]:
    return frozenset(host.casefold() for host in hosts)


def _unwrap(address: Address) -> Address:
    """Return the IPv4 address that *address* carries, if it carries one."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
