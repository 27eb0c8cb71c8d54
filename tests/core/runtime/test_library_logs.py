"""Log records of libraries, without secrets."""

from __future__ import annotations

import asyncio
import logging

import pytest

from gateway.runtime.library_logs import quiet_libraries


def test_logged_addresses_contain_only_the_host(caplog: pytest.LogCaptureFixture) -> None:
    """Records from outside a `quiet_libraries` block do not change."""
    caplog.set_level(logging.DEBUG)
    logging.getLogger("httpx2").info("HTTP Request: GET https://host/")
    with quiet_libraries("srv"):
        logger = logging.getLogger("mcp.client.streamable_http")
        logger.warning("redirect to https://me:pw@host:7/path?key=1 not followed")
        logger.debug("a whole message")

    ours = "srv: redirect to https://host:7 not followed"
    assert ["HTTP Request: GET https://host/", ours] == caplog.messages


@pytest.mark.parametrize("name", ["httpcore2.http11", "mcp.made.later", "openai._base_client"])
async def test_records_below_warning_are_dropped_in_the_block_and_its_tasks(
    caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """The levels of the loggers do not matter. Loggers created after the first block are
    filtered too.
    """
    caplog.set_level(1)
    with quiet_libraries("srv"):
        pass
    logger = logging.getLogger(name)
    logger.setLevel(1)

    async def work() -> None:
        logger.debug("Authorization: s3cret")
        await asyncio.to_thread(logger.info, "session s3cret")
        logger.warning("for %s", "https://me@host/s3cret")

    with quiet_libraries(""):
        await asyncio.create_task(work())
    logger.debug("of the host")

    records = [record for record in caplog.records if record.name == name]
    assert ["for https://host", "of the host"] == [record.getMessage() for record in records]
