"""Where HTTP requests may go: not in plain text over a network, not into the host's own network.

An address in a configuration, or a redirect, may lead to a service that trusts whoever can reach
it (server-side request forgery; CVE-2026-26118).

* A name is resolved once, its addresses are judged, and the connection goes to the very address
  that was judged. A name that resolves to something else a moment later changes nothing.
* Behind a proxy the same is judged, as far as this machine can resolve it; the proxy gets the name.
* Addresses are taken in their plain form alone: programs differ in what they read in the others.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import cache
from typing import TypeAlias

import httpx2

from gateway.errors import ConfigError
from gateway.options.environment import proxy_of

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Returns the addresses of a host name."""
_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_PORTS = {"https": 443, "http": 80}
_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""If the last label of a host is one, the host is an address (WHATWG URL, section 3.5)."""
_PRIVATE_DOMAIN = re.compile(r"([^.]+|.*\.(localhost|local|internal|home\.arpa))\.?")
"""Names that only a private network knows (RFC 6761, 6762, 8375, and ICANN's .internal)."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
"""No other IPv6 address is given to anybody on the Internet."""
_SPECIAL = [
    ipaddress.ip_network(network)
    for network in (
        *("192.0.0.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24"),
        *("192.175.48.0/24", "2001::/23", "2002::/16", "2620:4f:8000::/48", "3fff::/20"),
    )
]
"""Of the registries of special-purpose addresses (IANA), what `ipaddress` takes for global in one
version of Python or another."""
_METADATA = [
    ipaddress.ip_address(address)
    for address in (
        *("168.63.129.16", "192.0.0.192", "100.100.100.200", "fd00:ec2::254", "fd20:ce::254"),
    )
]
"""Services of clouds that give credentials away, beside those on link-local addresses."""
_RESOLVE_TIMEOUT_S = 2.0
"""How long this machine may take for a name that a proxy resolves anyway."""


async def resolve_host(host: str, port: int) -> list[str]:
    """Resolve as the operating system does."""
    loop = asyncio.get_running_loop()
    entries = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in entries]


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends each request, redirected ones too, only where it may go.

    Requests go through the proxy that the environment puts before their host, if there is one.

    Args:
        private_hosts: See `UpstreamOptions.private_hosts`.
        local: Whether it may go to this machine; never if the address comes from elsewhere.
        inner: What sends where there is no proxy.
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
        self._private = tuple(private_hosts)
        self._local = local
        self._inner = inner or httpx2.AsyncHTTPTransport(verify=_ssl_context(), trust_env=False)
        self._proxies: dict[str, httpx2.AsyncBaseTransport] = {}
        self._resolve = resolve
        self._unresolved = set[str]()
        """Hosts behind a proxy that this machine cannot resolve."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Judge where *request* goes, then send it to the address that was judged.

        Raises:
            ConfigError: It may not go there.
        """
        addresses = await self.resolve_url(request.url)
        if proxy := _proxy(request.url):
            if proxy not in self._proxies:
                self._proxies[proxy] = httpx2.AsyncHTTPTransport(proxy=httpx2.Proxy(proxy))
            return await self._proxies[proxy].handle_async_request(request)
        *others, last = addresses
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
            extensions={**request.extensions, "sni_hostname": _host(request.url)},
        )
        return await self._inner.handle_async_request(addressed)

    async def resolve_url(self, url: httpx2.URL) -> list[str]:
        """Return the addresses of the host of *url*, all of them judged.

        At least one, but for a host behind a proxy that this machine cannot resolve.

        Raises:
            ConfigError: A request may not go there.
            httpx2.ConnectError: There is no such host.
        """
        check_url(url, self._private, local=self._local)
        host, is_proxied = _host(url), bool(_proxy(url))
        if is_proxied and host in self._unresolved:
            return []
        try:
            async with asyncio.timeout(_RESOLVE_TIMEOUT_S if is_proxied else None):
                addresses = await self._resolve(host, url.port or _PORTS[url.scheme])
        except OSError as error:
            if is_proxied:
                self._unresolved.add(host)
                return []
            raise httpx2.ConnectError(f"no address for {host!r}") from error
        for address in addresses:
            plain = address.partition("%")[0]
            _check_address(ipaddress.ip_address(plain), host, self._private)
        return [address.partition("%")[0] for address in addresses]

    async def aclose(self) -> None:
        """Close what sends."""
        for transport in (self._inner, *self._proxies.values()):
            await transport.aclose()


@cache
def _ssl_context() -> ssl.SSLContext:
    """Return the context of all connections: to read certificates takes tens of milliseconds."""
    return httpx2.create_ssl_context(trust_env=False)


def guarded_transport(url: str, private_hosts: Iterable[str]) -> GuardedTransport:
    """Return the transport for *url*, and for all that it leads to.

    Raises:
        ConfigError: The address itself may not be used.
    """
    check_url(url, private_hosts)
    return GuardedTransport(private_hosts, local=is_local(url))


def is_local(url: str) -> bool:
    """Whether *url* names this machine."""
    return httpx2.URL(url).host in _LOOPBACK_NAMES


def check_url(url: str | httpx2.URL, private_hosts: Iterable[str], *, local: bool = True) -> None:
    """Judge *url* as it is written; nothing is resolved.

    Args:
        url: Where a request goes.
        private_hosts: As for `GuardedTransport`.
        local: As for `GuardedTransport`.

    Raises:
        ConfigError: It is refused.
    """
    try:
        parts = httpx2.URL(url)
        host = _host(parts)
        address = _literal(host)
    except (httpx2.InvalidURL, ValueError) as error:
        raise ConfigError("the address of a server cannot be used: correct its url") from error
    is_loopback, is_listed = host in _LOOPBACK_NAMES, _is_listed(host, address, private_hosts)
    if parts.scheme != "https" and not is_loopback and not is_listed:
        raise ConfigError(
            f"{host!r} may not be asked without TLS: use https, or, in a network of your own, name "
            "it in UpstreamOptions.private_hosts (options.upstream.private_hosts of mcp.json)"
        )
    if is_loopback and not local:
        raise ConfigError(f"a server elsewhere may not lead to {host!r}, which is this machine")
    if address is not None:
        _check_address(address, host, private_hosts)
    elif not is_loopback and not is_listed and _PRIVATE_DOMAIN.fullmatch(host):
        raise _private_error(host)


def _proxy(url: httpx2.URL) -> str:
    host = _host(url)
    return "" if host in _LOOPBACK_NAMES else proxy_of(url.scheme, host)


def _host(url: httpx2.URL) -> str:
    """Return the host as it is sent: in ASCII, small letters."""
    return url.raw_host.decode("ascii").casefold()


def _literal(host: str) -> _Address | None:
    """Return the address that *host* is; None if it is a name.

    Raises:
        ValueError: It is neither, or an address in another form than the plain one.
    """
    if ":" in host or _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]):
        return ipaddress.ip_address(host.partition("%")[0])
    if not _NAME.fullmatch(host):
        raise ValueError("no host")
    return None


def _check_address(address: _Address, host: str, private_hosts: Iterable[str]) -> None:
    """Refuse *address*, to which *host* resolved, if it lies in a network of the host's own.

    Raises:
        ConfigError: It is refused.
    """
    ip = _carried_address(address)
    if ip.is_loopback and host in _LOOPBACK_NAMES:
        return
    never = ip in _METADATA or ip.is_link_local or ip.is_unspecified or ip.is_multicast
    if never or not (_is_public(ip) or _is_listed(host, ip, private_hosts)):
        raise _private_error(host)


def _is_public(ip: _Address) -> bool:
    is_special = not ip.is_global or ip.is_reserved or any(ip in each for each in _SPECIAL)
    return not is_special and (ip.version == 4 or ip in _GLOBAL_UNICAST)


def _private_error(host: str) -> ConfigError:
    return ConfigError(
        f"{host!r} leads into a private network: if that is meant, name it in "
        "UpstreamOptions.private_hosts (options.upstream.private_hosts of mcp.json)"
    )


def _is_listed(host: str, address: _Address | None, private_hosts: Iterable[str]) -> bool:
    """Return whether *private_hosts* has the name *host*, or a network with *address*."""
    for entry in private_hosts:
        try:
            network = ipaddress.ip_network(entry.strip("[]"), strict=False)
        except ValueError:
            if entry.casefold().rstrip(".") == host.rstrip("."):
                return True
        else:
            if address is not None and address in network:
                return True
    return False


def _carried_address(address: _Address) -> _Address:
    """Return the IPv4 address that *address* carries, if it carries one."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address
