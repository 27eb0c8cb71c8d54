"""Our errors as errors of the protocol."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mcp import MCPError, types

from gateway.errors import CallerError, GatewayError, InvalidRequestError
from gateway.serve.client import Context, is_stateless
from gateway.types import JsonObject


@contextmanager
def raise_as_mcp_error(subject: JsonObject, context: Context) -> Iterator[None]:
    """Raise the errors of the block as errors of the protocol.

    Args:
        subject: What the request is about, for the data of the error.
        context: The request.
    """
    try:
        yield
    except CallerError as error:
        if error.needed and is_stateless(context):
            raise missing_capability(str(error), error.needed) from error
        # Not INVALID_REQUEST, which the SDK's clients take for a lost session.
        raise MCPError(types.INVALID_PARAMS, str(error)) from error
    except InvalidRequestError as error:
        raise MCPError(types.INVALID_PARAMS, str(error), dict(subject)) from error
    except GatewayError as error:
        raise MCPError(types.INTERNAL_ERROR, str(error), dict(subject)) from error


def missing_capability(message: str, needed: JsonObject) -> MCPError:
    """Return the error for a client that lacks the capabilities *needed*."""
    data = {"requiredCapabilities": dict(needed)}
    return MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, message, data)
