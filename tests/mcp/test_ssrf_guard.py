"""Where HTTP may go, and where it may not."""

from __future__ import annotations

import httpx2
import pytest

from gateway.errors import ConfigError
from gateway.mcp.ssrf_guard import GuardedTransport, check_url, guarded_transport, resolve_host


class Wire(httpx2.AsyncBaseTransport):
    """Remembers where each request would have gone."""

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


def client(wire: Wire, *addresses: str, private: tuple[str, ...] = ()) -> httpx2.AsyncClient:
    """A client to which each host has *addresses*, but for ``inner.*``."""

    async def resolve(host: str, _port: int) -> list[str]:
        return ["10.0.0.7"] if host.startswith("inner") else list(addresses)

    transport = GuardedTransport(private, inner=wire, resolve=resolve)
    return httpx2.AsyncClient(transport=transport, follow_redirects=True)


async def test_a_request_goes_to_the_address_that_was_judged_under_its_own_name() -> None:
    """A name that resolves to something else a moment later changes nothing."""
    wire = Wire()
    async with client(wire, "93.184.215.14") as http:
        await http.get("https://Mcp.Example.org/mcp")

    assert [("https://93.184.215.14/mcp", "mcp.example.org", "mcp.example.org")] == wire.went
    assert wire.closed


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.1", "172.16.0.1", "192.168.1.1", "127.0.0.1", "0.0.0.1", "169.254.169.254",
        "100.64.0.1", "100.100.100.200", "224.0.0.1", "::1", "fe80::1", "fe80::1%eth0", "fc00::1",
        "fd00:ec2::254", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::", "198.18.0.1",
        "64:ff9b::a00:1", "64:ff9b:1::a00:1", "2002:a00:1::", "::10.0.0.1",
    ],
)  # fmt: skip
async def test_a_name_that_leads_into_a_private_network_is_refused(address: str) -> None:
    """Also if only one of its addresses does."""
    wire = Wire()
    async with client(wire, "93.184.215.14", address) as http:
        with pytest.raises(ConfigError, match="private_hosts"):
            await http.get("https://mcp.example.org/mcp")

    assert [] == wire.went


async def test_each_address_of_a_host_is_tried_in_turn() -> None:
    """`localhost` may be IPv6 first while its server listens on IPv4."""

    class Half(Wire):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            if ":" in request.url.host:
                raise httpx2.ConnectError("nobody there")
            return await super().handle_async_request(request)

    wire = Half()
    async with client(wire, "::1", "127.0.0.1") as http:
        await http.get("http://localhost:81/")

    assert "http://127.0.0.1:81/" == wire.went[0][0]


async def test_a_name_without_an_address_is_a_failure_to_connect() -> None:
    """Not a fault of the configuration: it may resolve tomorrow."""

    async def resolve(_host: str, _port: int) -> list[str]:
        raise OSError("no such host")

    transport = GuardedTransport((), inner=Wire(), resolve=resolve)
    async with httpx2.AsyncClient(transport=transport) as http:
        with pytest.raises(httpx2.ConnectError, match="no address"):
            await http.get("https://mcp.example.org/")


@pytest.mark.parametrize("location", ["https://inner.example.org/", "http://mcp.example.org/"])
async def test_a_redirect_is_judged_like_any_request(location: str) -> None:
    """A server may be honest at its front door only."""
    wire = Wire(redirect=location)
    async with client(wire, "93.184.215.14") as http:
        with pytest.raises(ConfigError):
            await http.get("https://mcp.example.org/mcp")

    assert 1 == len(wire.went)


@pytest.mark.parametrize("location", ["/mcp/", "https://mcp.example.org/mcp/"])
async def test_a_redirect_within_a_host_is_followed_by_its_name(location: str) -> None:
    """Many servers lead from ``/mcp`` to ``/mcp/``; a certificate is for a name."""
    wire = Wire(redirect=location)
    async with client(wire, "93.184.215.14") as http:
        response = await http.get("https://mcp.example.org/mcp")
        await http.send(response.request)

    sent = ("https://93.184.215.14/mcp/", "mcp.example.org", "mcp.example.org")
    assert [sent, sent] == wire.went[1:]
    assert "https://mcp.example.org/mcp/" == str(response.request.url)


async def test_hosts_of_the_own_network_are_allowed_by_name() -> None:
    """With plain HTTP too, but never the metadata service."""
    wire = Wire()
    async with client(wire, "10.0.0.7", private=("MCP.corp",)) as http:
        await http.get("http://mcp.corp:8080/mcp")
    async with client(wire, "169.254.169.254", private=("mcp.corp",)) as http:
        with pytest.raises(ConfigError):
            await http.get("http://mcp.corp/mcp")

    assert "http://10.0.0.7:8080/mcp" == wire.went[0][0]


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/x", "http://localhost/x", "http://[::1]/x"])
def test_this_machine_needs_no_permission(url: str) -> None:
    """Servers under development live there."""
    assert guarded_transport(url, ()) is not None


@pytest.mark.parametrize(
    "url",
    ["http://example.org/x", "https://10.0.0.1/x", "https://[fe80::1]/x", "https://169.254.169.254/",
     "https://127.0.0.2/", "https://[::ffff:127.0.0.1]/", "https://a\x00b/"],
)  # fmt: skip
def test_an_address_that_may_not_be_used_is_refused_before_anything_is_opened(url: str) -> None:
    """Whatever stands before it."""
    with pytest.raises(ConfigError):
        guarded_transport(url, ())


def test_a_proxy_of_the_environment_resolves_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """In many companies nothing else leads out."""
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)

    assert guarded_transport("https://mcp.example.org/x", ()) is None
    assert guarded_transport("http://localhost/x", ()) is not None


async def test_names_of_other_forms_are_resolved_before_they_are_judged() -> None:
    """Decimal and octal addresses are names to us, and numbers to the system."""
    assert ["127.0.0.1"] == await resolve_host("2130706433", 443)
    wire = Wire()
    async with httpx2.AsyncClient(transport=GuardedTransport((), inner=wire)) as http:
        with pytest.raises(ConfigError):
            await http.get("https://2130706433/")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
async def test_a_server_elsewhere_may_not_lead_to_this_machine(host: str) -> None:
    """It names its own authorization server: that must not be a service of ours."""
    transport = guarded_transport("https://mcp.example.org/mcp", ())
    local = guarded_transport("http://127.0.0.1:7/mcp", ())
    assert transport is not None
    assert local is not None

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
def test_where_a_proxy_resolves_names_what_stands_there_is_judged(url: str, fault: str) -> None:
    """More cannot be known."""
    with pytest.raises(ConfigError, match=fault):
        check_url(url, (), local=False)
    check_url("https://giver.example.org/token", (), local=False)
    check_url("http://10.0.0.1/token", ("10.0.0.1",), local=False)
