"""Guard of HTTP requests: allowed and refused targets."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.errors import ConfigError
from gateway.mcp.ssrf_guard import GuardedTransport, check_url, guarded_transport, resolve_host


class RecordingTransport(httpx2.AsyncBaseTransport):
    """An HTTP transport that records the target of each request and sends nothing."""

    def __init__(self, *, redirect: str = "") -> None:
        self.went: list[tuple[str, str, object]] = []
        self.redirect = redirect
        self.closed = False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        sni = request.extensions.get("sni_hostname")
        self.went.append((str(request.url), request.headers["host"], sni))
        if self.redirect and len(self.went) == 1:
            return httpx2.Response(307, headers={"location": self.redirect})
        return httpx2.Response(200)

    async def aclose(self) -> None:
        self.closed = True


def client(
    transport_log: RecordingTransport, *addresses: str, private: tuple[str, ...] = ()
) -> httpx2.AsyncClient:
    """Return a guarded client. Every host name resolves to *addresses*, except for ``inner.*``."""

    async def resolve(host: str, _port: int) -> list[str]:
        return ["10.0.0.7"] if host.startswith("inner") else list(addresses)

    transport = GuardedTransport(private, inner=transport_log, resolve=resolve)
    return httpx2.AsyncClient(transport=transport, follow_redirects=True)


async def test_request_goes_to_the_checked_address_with_its_own_host_name() -> None:
    """If the name resolved to another address after the check, the request would not go there."""
    transport_log = RecordingTransport()
    async with client(transport_log, "93.184.215.14") as http:
        await http.get("https://Mcp.Example.org/mcp")

    assert [
        ("https://93.184.215.14/mcp", "mcp.example.org", "mcp.example.org")
    ] == transport_log.went
    assert transport_log.closed


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.1", "172.16.0.1", "192.168.1.1", "127.0.0.1", "0.0.0.1", "169.254.169.254",
        "100.64.0.1", "100.100.100.200", "224.0.0.1", "::1", "fe80::1", "fe80::1%eth0", "fc00::1",
        "fd00:ec2::254", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::", "198.18.0.1",
        "64:ff9b::a00:1", "64:ff9b:1::a00:1", "2002:a00:1::", "::10.0.0.1",
    ],
)  # fmt: skip
async def test_name_that_resolves_to_a_private_address_is_refused(address: str) -> None:
    """It is refused even if its other addresses are public."""
    transport_log = RecordingTransport()
    async with client(transport_log, "93.184.215.14", address) as http:
        with pytest.raises(ConfigError, match="private_hosts"):
            await http.get("https://mcp.example.org/mcp")

    assert [] == transport_log.went


async def test_next_address_of_a_host_is_tried_after_a_failed_connection() -> None:
    """`localhost` may be IPv6 first while its server listens on IPv4."""

    class Half(RecordingTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            if ":" in request.url.host:
                raise httpx2.ConnectError("nobody there")
            return await super().handle_async_request(request)

    transport_log = Half()
    async with client(transport_log, "::1", "127.0.0.1") as http:
        await http.get("http://localhost:81/")

    assert "http://127.0.0.1:81/" == transport_log.went[0][0]


async def test_unknown_host_is_a_connection_error() -> None:
    """An unknown host is not an error of the configuration, because the name may resolve later."""

    async def resolve(_host: str, _port: int) -> list[str]:
        raise OSError("no such host")

    transport = GuardedTransport((), inner=RecordingTransport(), resolve=resolve)
    async with httpx2.AsyncClient(transport=transport) as http:
        with pytest.raises(httpx2.ConnectError, match="no address"):
            await http.get("https://mcp.example.org/")


@pytest.mark.parametrize("location", ["https://inner.example.org/", "http://mcp.example.org/"])
async def test_redirect_is_checked_like_any_request(location: str) -> None:
    transport_log = RecordingTransport(redirect=location)
    async with client(transport_log, "93.184.215.14") as http:
        with pytest.raises(ConfigError):
            await http.get("https://mcp.example.org/mcp")

    assert 1 == len(transport_log.went)


@pytest.mark.parametrize("location", ["/mcp/", "https://mcp.example.org/mcp/"])
async def test_redirect_within_a_host_keeps_the_host_name(location: str) -> None:
    """Many servers redirect from ``/mcp`` to ``/mcp/``. Their certificates are valid only for the
    name.
    """
    transport_log = RecordingTransport(redirect=location)
    async with client(transport_log, "93.184.215.14") as http:
        response = await http.get("https://mcp.example.org/mcp")
        await http.send(response.request)

    sent = ("https://93.184.215.14/mcp/", "mcp.example.org", "mcp.example.org")
    assert [sent, sent] == transport_log.went[1:]
    assert "https://mcp.example.org/mcp/" == str(response.request.url)


async def test_request_to_a_private_host_is_allowed_if_its_name_is_listed() -> None:
    """Plain HTTP is then allowed too. Requests to the metadata service stay refused."""
    transport_log = RecordingTransport()
    async with client(transport_log, "10.0.0.7", private=("MCP.corp",)) as http:
        await http.get("http://mcp.corp:8080/mcp")
    async with client(transport_log, "169.254.169.254", private=("mcp.corp",)) as http:
        with pytest.raises(ConfigError):
            await http.get("http://mcp.corp/mcp")

    assert "http://10.0.0.7:8080/mcp" == transport_log.went[0][0]


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/x", "http://localhost/x", "http://[::1]/x"])
def test_request_to_this_machine_is_allowed_by_default(url: str) -> None:
    """Servers under development run on this machine."""
    assert guarded_transport(url, ()) is not None


@pytest.mark.parametrize(
    "url",
    ["http://example.org/x", "https://10.0.0.1/x", "https://[fe80::1]/x", "https://169.254.169.254/",
     "https://127.0.0.2/", "https://[::ffff:127.0.0.1]/", "https://a\x00b/"],
)  # fmt: skip
def test_url_that_is_not_allowed_is_refused_before_a_connection(url: str) -> None:
    with pytest.raises(ConfigError):
        guarded_transport(url, ())


@asynccontextmanager
async def proxied(
    monkeypatch: pytest.MonkeyPatch, *answers: str
) -> AsyncIterator[list[tuple[str, str]]]:
    """Set a proxy for all requests; yield the requests that it receives.

    The proxy redirects to each of *answers* in turn. Empty and further answers have status 200.
    """
    requests: list[tuple[str, str]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, target, _ = request.partition("\r\n")[0].split(" ")
        location = answers[len(requests)] if len(requests) < len(answers) else ""
        requests.append((method, target))
        status = f"302 Found\r\nLocation: {location}" if location else "200 OK"
        writer.write(
            f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
        )
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        for name in ("http_proxy", "https_proxy"):
            address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            monkeypatch.setenv(name, address)
            monkeypatch.setenv(name.upper(), address)
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        yield requests


async def resolves_nothing(_host: str, _port: int) -> list[str]:
    """Fail like the resolver of a machine without DNS, which needs a proxy for all requests."""
    raise OSError("no such host")


async def test_proxy_of_the_environment_gets_the_host_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests to this machine do not use the proxy."""
    direct = RecordingTransport()
    async with proxied(monkeypatch) as requests:
        transport = GuardedTransport(("tool.corp",), inner=direct, resolve=resolves_nothing)
        async with httpx2.AsyncClient(transport=transport) as http:
            await http.get("http://tool.corp/mcp")
            await http.get("http://tool.corp/mcp")
            with pytest.raises(httpx2.ConnectError):
                await http.get("http://localhost/x")

    assert [("GET", "http://tool.corp/mcp")] * 2 == requests
    assert [] == direct.went


async def test_name_behind_a_proxy_that_resolves_to_a_private_address_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The check works if this machine can resolve the name too."""

    async def resolve(_host: str, _port: int) -> list[str]:
        return ["93.184.215.14", "10.0.0.7"]

    async with (
        proxied(monkeypatch) as requests,
        httpx2.AsyncClient(transport=GuardedTransport((), resolve=resolve)) as http,
    ):
        with pytest.raises(ConfigError, match="private network"):
            await http.get("https://mcp.example.org/mcp")

    assert [] == requests


LEADING = (
    "http://169.254.169.254/latest/meta-data/", "https://169.254.169.254/", "https://169.254.169.254./",
    "https://[fd00:ec2::254]/latest/", "https://[::ffff:a9fe:a9fe]/", "https://[64:ff9b::a9fe:a9fe]/",
    "https://[2002:a9fe:a9fe::1]/", "https://2852039166/", "https://0xa9fea9fe/", "https://0251.254.169.254/",
    "https://0xa9.0xfe.0xa9.0xfe/", "https://169.254.43518/", "https://192.0.0.192/", "https://192.88.99.1/",
    "https://[::ffff:7f00:1]/", "https://127.1/", "https://localhost/", "https://localhost./",
    "https://x.localhost/", "https://metadata.google.internal/", "https://printer.local/", "https://vault/",
    "https://168.63.129.16/", "https://169。254。169。254/", "https://%31%36%39.254.169.254/",
)  # fmt: skip


SPECIAL_V4 = (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24",
    "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
    "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32",
)  # fmt: skip
SPECIAL_V6 = (
    "::/128", "::1/128", "::/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64",
    "2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20", "5f00::/16",
    "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8", "4000::/3",
)  # fmt: skip
"""Special-purpose addresses (IANA registries), and unassigned ones."""
WIDE = str.maketrans("0123456789.", "０１２３４５６７８９．")  # noqa: RUF001  (the point)
CIRCLED = str.maketrans("123456789", "①②③④⑤⑥⑦⑧⑨")


def spellings(ip: ipaddress.IPv4Address) -> Iterator[str]:
    """Yield all texts that a program may read as the address *ip*."""
    text, number, parts = str(ip), int(ip), ip.packed
    low, high = number & 0xFFFF, number >> 16
    yield from (text, f"{text}.", text.translate(WIDE), text.translate(CIRCLED))
    yield from (text.replace(".", "。"), text.replace(".", "%2e"), text.replace("1", "%31"))
    yield from (f"{number}", f"{number:#x}", f"{number:#X}", f"0{number:o}", f"{number}.")
    yield from (f"{parts[0]}.{number & 0xFFFFFF}", f"{parts[0]}.{parts[1]}.{low}")
    yield from (".".join(map("{:#x}".format, parts)), ".".join(map("0{:o}".format, parts)))
    yield f"{parts[0]:#x}.0{parts[1]:o}.{low}"
    yield from (
        f"[::ffff:{text}]",
        f"[::FFFF:{high:x}:{low:x}]",
        f"[0:0:0:0:0:ffff:{high:x}:{low:x}]",
    )
    yield from (f"[64:ff9b::{text}]", f"[64:ff9b::{high:x}:{low:x}]", f"[2002:{high:x}:{low:x}::1]")
    yield from (
        f"[::{text}]",
        f"[::ffff:0:{text}]",
        f"user@{text}",
        f"[64:ff9b:1::{high:x}:{low:x}]",
    )


def address_in(networks: tuple[str, ...]) -> st.SearchStrategy[ipaddress.IPv4Address]:
    """Return a strategy for addresses in *networks*."""

    def draw(network: str) -> st.SearchStrategy[Any]:
        whole = ipaddress.ip_network(network)
        return st.integers(0, whole.num_addresses - 1).map(lambda at: whole[at])

    return st.sampled_from(networks).flatmap(draw)


@given(address_in(SPECIAL_V4))
@example(ipaddress.ip_address("127.0.0.1"))
def test_every_spelling_of_a_special_address_is_refused(ip: ipaddress.IPv4Address) -> None:
    for spelling in spellings(ip):
        # The host may use the usual name of this machine; an IDNA full stop makes no difference.
        if spelling.rpartition("@")[2].replace("。", ".") != "127.0.0.1":
            with pytest.raises(ConfigError):
                check_url(f"https://{spelling}/x", ())
        with pytest.raises(ConfigError):
            check_url(f"https://{spelling}:8443/x", (), local=False)


@given(address_in(SPECIAL_V6))
def test_special_ipv6_addresses_are_refused(ip: object) -> None:
    """Only ::1 is allowed, because it is this machine."""
    with pytest.raises(ConfigError):
        check_url(f"https://[{ip}]/x", (), local=False)


@pytest.mark.parametrize(
    "host",
    ["93.184.215.14", "[2606:2800:21f:cb07:6820:80da:af6b:8b2c]", "[64:ff9b::5db8:d70e]",
     "[::ffff:93.184.215.14]", "example.org.", "a_b.example.org", "1.2.3.4.example.org",
     "müller.example", "0x.example"],
)  # fmt: skip
def test_public_addresses_and_names_are_allowed(host: str) -> None:
    """NAT64 addresses are allowed, because networks with only IPv6 reach IPv4 hosts through
    them.
    """
    check_url(f"https://{host}/x", (), local=False)


async def test_request_to_a_private_network_is_allowed_if_the_network_is_listed() -> None:
    """Plain HTTP is then allowed to an address of the network, but not to a name that resolves to
    it. Requests to metadata services stay refused.
    """
    transport_log, networks = (
        RecordingTransport(),
        ("10.0.0.0/8", "fd00::/8", "169.254.0.0/16", "100.64.0.0/10"),
    )
    async with client(transport_log, "10.1.2.3", private=networks) as http:
        await http.get("http://10.9.9.9:8080/mcp")
        await http.get("https://tool.example.org/mcp")
        for url in (
            "http://tool.example.org/mcp", "https://192.168.0.1/", "https://169.254.169.254/",
            "https://[fd00:ec2::254]/", "https://100.100.100.200/", "https://vault/",
        ):  # fmt: skip
            with pytest.raises(ConfigError):
                await http.get(url)

    assert ["10.1.2.3", "10.1.2.3"] == [httpx2.URL(url).host for url, *_ in transport_log.went]


async def test_ip_address_written_as_one_number_is_resolved_before_the_check() -> None:
    """Such an address looks like a name, but the operating system reads it as an address."""
    assert ["127.0.0.1"] == await resolve_host("2130706433", 443)
    transport_log = RecordingTransport()
    async with httpx2.AsyncClient(transport=GuardedTransport((), inner=transport_log)) as http:
        with pytest.raises(ConfigError):
            await http.get("https://2130706433/")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
async def test_url_from_a_remote_server_may_not_point_to_this_machine(host: str) -> None:
    """For example, a server names the URL of its authorization server."""
    transport = guarded_transport("https://mcp.example.org/mcp", ())
    local = guarded_transport("http://127.0.0.1:7/mcp", ())

    with pytest.raises(ConfigError, match="which is this machine"):
        await transport.resolve_url(httpx2.URL(f"https://{host}:1/token"))
    assert await local.resolve_url(httpx2.URL(f"http://{host}:1/token"))


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("https://localhost/token", "this machine"),
        ("http://giver.example.org/token", "without TLS"),
        ("https://169.254.169.254/token", "private network"),
        ("https://10.0.0.1/token", "private network"),
    ],
)
def test_url_is_checked_as_written_if_a_proxy_resolves_names(url: str, fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        check_url(url, (), local=False)
    check_url("https://giver.example.org/token", (), local=False)
    check_url("http://10.0.0.1/token", ("10.0.0.1",), local=False)
