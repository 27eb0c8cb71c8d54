"""Sign-in of a real browser at an identity provider on another site."""

from __future__ import annotations

from playwright.async_api import Browser

from gateway.gateway import Gateway
from tests.apps.serve.conftest import RealProvider, free_resource
from tests.apps.serve.console.conftest import Serve, check_access
from tests.apps.serve.test_account import http_options


async def test_browser_returns_to_each_page_after_sign_in_at_a_provider(
    empty_gateway: Gateway, serve_console: Serve, browser: Browser, real_provider: RealProvider
) -> None:
    """The session cookie is SameSite=Strict, but must be sent after the provider's redirect."""
    resource, port = free_resource()
    http = http_options(real_provider.url, resource=resource, port=port)
    served = await serve_console(empty_gateway, http=http)
    page = await (await browser.new_context()).new_page()

    await page.goto(f"{served.url}/console/catalog?q=pay")
    await check_access(page)
    await page.get_by_role("link", name="Sign in at localhost").click()
    await page.locator("[name=login]").fill("ada")
    await page.locator("[name=password]").fill("any")
    await page.get_by_role("button").click()
    await page.get_by_role("button", name="Continue").click()
    await page.wait_for_url(f"{served.url}/console/catalog?q=pay")
    console = await page.content()
    await page.get_by_role("button", name="Sign out").click()
    await page.wait_for_url("**/account/signed-out**")
    provider_link = await page.get_by_role("link", name="too").get_attribute("href")

    await page.goto(f"{served.url}/sign-in/srv")
    # At the second sign-in, the provider knows the browser already, and only asks for consent.
    await page.get_by_role("link", name="Sign in at localhost").click()
    await page.get_by_role("button", name="Continue").click()
    await page.wait_for_url(f"{served.url}/sign-in/srv")
    await check_access(page)
    upstream = await page.content()
    await page.get_by_role("button", name="Sign in to srv").click()
    told = page.get_by_text("no user signs in to 'srv'")

    assert "Sign out" in console
    assert f"{real_provider.url}/session/end?client_id=browser" == provider_link
    assert f"{real_provider.url}#ada" in upstream
    assert await told.is_visible()
