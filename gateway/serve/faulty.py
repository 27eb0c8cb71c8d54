"""Our errors in the form of the protocol."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from mcp import MCPError, types

from gateway.errors import CallerError, GatewayError, InvalidRequestError
from gateway.serve.client import Context, stateless
from gateway.types import JsonObject

T = TypeVar("T")


async def faulty(work: Awaitable[T], about: JsonObject, context: Context) -> T:
    """Await *work*; raise its errors in the form of the protocol.

    Args:
        work: What is asked for.
        about: What was asked for, for a client that wants to know.
        context: Whose request it is.
    """
    try:
        return await work
    except CallerError as error:
        raise refused(error, context) from error
    except InvalidRequestError as error:
        raise MCPError(types.INVALID_PARAMS, str(error), dict(about)) from error
    except GatewayError as error:
        raise MCPError(types.INTERNAL_ERROR, str(error), dict(about)) from error


def refused(error: CallerError, context: Context) -> MCPError:
    """Say that a client cannot do what a server asks for."""
    if error.needed and stateless(context):
        return incapable(str(error), error.needed)
    # Not INVALID_REQUEST, which the SDK's clients take for a lost session.
    return MCPError(types.INVALID_PARAMS, str(error))


def incapable(said: str, needed: JsonObject) -> MCPError:
    """Give the error of the protocol for a client that lacks capabilities."""
    data = {"requiredCapabilities": dict(needed)}
    return MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, said, data)
