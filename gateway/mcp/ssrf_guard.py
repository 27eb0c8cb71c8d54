"""Guard of HTTP requests: no plain HTTP over a network, and no access to private networks.

A URL in a configuration, or a redirect, may lead to a service that trusts its whole network
(server-side request forgery; CVE-2026-26118).

* A host name is resolved once, and the connection goes to a checked address, so that a later
  change of the address has no effect.
* With a proxy, the same checks apply if this machine can resolve the name. The proxy gets the name.
* IP addresses are accepted only in their usual form, because programs interpret others differently.
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
"""Returns the IP addresses of a host and port."""
_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_PORTS = {"https": 443, "http": 80}
_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""Pattern of a number. A host whose last label is a number is an IP address (WHATWG URL, 3.5)."""
_PRIVATE_DOMAIN = re.compile(r"([^.]+|.*\.(localhost|local|internal|home\.arpa))\.?")
"""Pattern of host names that only a private network resolves (RFC 6761, 6762, 8375, and ICANN's
.internal)."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
"""Network of all IPv6 addresses that are assigned on the Internet."""
_SPECIAL_NETWORKS = [
    ipaddress.ip_network(network)
    for network in (
        *("192.0.0.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24"),
        *("192.175.48.0/24", "2001::/23", "2002::/16", "2620:4f:8000::/48", "3fff::/20"),
    )
]
"""Special-purpose networks (IANA) that `ipaddress` calls global in some versions of Python."""
_METADATA_ADDRESSES = [
    ipaddress.ip_address(address)
    for address in (
        *("168.63.129.16", "192.0.0.192", "100.100.100.200", "fd00:ec2::254", "fd20:ce::254"),
    )
]
"""Addresses of cloud metadata services, which give out credentials. Link-local addresses are not
listed, because all of them are refused."""
_RESOLVE_TIMEOUT_S = 2.0
"""Maximum time to resolve a host name that a proxy also resolves, in seconds."""


async def resolve_host(host: str, port: int) -> list[str]:
    """Return the IP addresses of *host*, resolved by the operating system."""
    loop = asyncio.get_running_loop()
    entries = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in entries]


class GuardedTransport(httpx2.AsyncBaseTransport):
    """HTTP transport that checks the target of each request, including redirects.

    Requests go through the proxy of the environment, if any.

    Args:
        private_hosts: See `UpstreamOptions.private_hosts`.
        local: True if this machine is an allowed target. Must be False if another machine chose the
            URL.
        inner: Transport for requests without a proxy.
        resolve: Resolves host names.
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
        """Host names that this machine cannot resolve, because only the proxy knows them."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send *request* to a checked address.

        Raises:
            ConfigError: If the target is not allowed.
        """
        addresses = await self.resolve_url(request.url)
        if proxy := _proxy_of(request.url):
            if proxy not in self._proxies:
                self._proxies[proxy] = httpx2.AsyncHTTPTransport(proxy=httpx2.Proxy(proxy))
            return await self._proxies[proxy].handle_async_request(request)
        *others, last = addresses
        for address in others:
            with suppress(httpx2.ConnectError):
                return await self._send(request, address)
        return await self._send(request, last)

    async def _send(self, request: httpx2.Request, address: str) -> httpx2.Response:
        # Copied, because redirects and retries need the host name of the original request.
        addressed = httpx2.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": _host_of(request.url)},
        )
        return await self._inner.handle_async_request(addressed)

    async def resolve_url(self, url: httpx2.URL) -> list[str]:
        """Check all IP addresses of the host of *url*, and return them.

        The list is empty only if a proxy is used and this machine cannot resolve the host.

        Raises:
            ConfigError: If the URL or an address of its host is not allowed.
            httpx2.ConnectError: If the host cannot be resolved, and no proxy is used.
        """
        check_url(url, self._private, local=self._local)
        host, is_proxied = _host_of(url), bool(_proxy_of(url))
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
        """Close all inner transports."""
        for transport in (self._inner, *self._proxies.values()):
            await transport.aclose()


@cache
def _ssl_context() -> ssl.SSLContext:
    """Return the shared TLS context, because creating one takes tens of milliseconds."""
    return httpx2.create_ssl_context(trust_env=False)


def guarded_transport(url: str, private_hosts: Iterable[str]) -> GuardedTransport:
    """Return a transport for *url* and its redirects.

    Raises:
        ConfigError: If *url* is not allowed.
    """
    check_url(url, private_hosts)
    return GuardedTransport(private_hosts, local=is_local(url))


def is_local(url: str) -> bool:
    """Return whether the host of *url* is this machine."""
    return httpx2.URL(url).host in _LOOPBACK_NAMES


def check_url(url: str | httpx2.URL, private_hosts: Iterable[str], *, local: bool = True) -> None:
    """Check *url* as written, without resolving its host. *local* allows this machine.

    Raises:
        ConfigError: If the URL is not allowed.
    """
    try:
        parts = httpx2.URL(url)
        host = _host_of(parts)
        address = _parse_address(host)
    except (httpx2.InvalidURL, ValueError) as error:
        raise ConfigError("the address of a server cannot be used: correct its url") from error
    is_loopback, is_listed = host in _LOOPBACK_NAMES, _is_listed(host, address, private_hosts)
    if parts.scheme != "https" and not is_loopback and not is_listed:
        raise ConfigError(
            f"{host!r} may not be used without TLS: use https, or, in a private network, add "
            "it to UpstreamOptions.private_hosts (options.upstream.private_hosts of mcp.json)"
        )
    if is_loopback and not local:
        raise ConfigError(f"a remote server may not lead to {host!r}, which is this machine")
    if address is not None:
        _check_address(address, host, private_hosts)
    elif not is_loopback and not is_listed and _PRIVATE_DOMAIN.fullmatch(host):
        raise _private_error(host)


def _proxy_of(url: httpx2.URL) -> str:
    host = _host_of(url)
    return "" if host in _LOOPBACK_NAMES else proxy_of(url.scheme, host)


def _host_of(url: httpx2.URL) -> str:
    """Return the host in the form used in requests: ASCII, lower case."""
    return url.raw_host.decode("ascii").casefold()


def _parse_address(host: str) -> _Address | None:
    """Parse *host* as an IP address; return None if it is a name.

    Raises:
        ValueError: If *host* is neither a name nor an IP address in its usual form.
    """
    if ":" in host or _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]):
        return ipaddress.ip_address(host.partition("%")[0])
    if not _NAME.fullmatch(host):
        raise ValueError("no host")
    return None


def _check_address(address: _Address, host: str, private_hosts: Iterable[str]) -> None:
    """Check *address*, which is *host* itself or was resolved from it.

    A loopback address of a loopback name is allowed. Link-local, multicast, unspecified and cloud
    metadata addresses are never allowed.

    Raises:
        ConfigError: If another address is neither public nor in *private_hosts*, or is never
            allowed.
    """
    ip = _embedded_ipv4(address)
    if ip.is_loopback and host in _LOOPBACK_NAMES:
        return
    never = ip in _METADATA_ADDRESSES or ip.is_link_local or ip.is_unspecified or ip.is_multicast
    if never or not (_is_public(ip) or _is_listed(host, ip, private_hosts)):
        raise _private_error(host)


def _is_public(ip: _Address) -> bool:
    is_special = (
        not ip.is_global or ip.is_reserved or any(ip in network for network in _SPECIAL_NETWORKS)
    )
    return not is_special and (ip.version == 4 or ip in _GLOBAL_UNICAST)


def _private_error(host: str) -> ConfigError:
    return ConfigError(
        f"{host!r} is in a private network: if this is intended, add it to "
        "UpstreamOptions.private_hosts (options.upstream.private_hosts of mcp.json)"
    )


def _is_listed(host: str, address: _Address | None, private_hosts: Iterable[str]) -> bool:
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


def _embedded_ipv4(address: _Address) -> _Address:
    """Return the IPv4 address that *address* embeds, else *address*."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address
