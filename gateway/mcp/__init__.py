"""MCP client: servers, sessions, transports, and checks of listings."""

from gateway.mcp.servers import HttpServer as HttpServer
from gateway.mcp.servers import OAuth as OAuth
from gateway.mcp.servers import StdioServer as StdioServer
from gateway.mcp.servers import TokenExchange as TokenExchange
from gateway.mcp.servers import TokenStore as TokenStore
from gateway.mcp.servers import TokenStoreKind as TokenStoreKind
from gateway.mcp.servers import api_server as api_server
from gateway.mcp.skills import EXTENSION as EXTENSION
from gateway.mcp.skills import file_of as file_of
from gateway.mcp.skills import is_as_listed as is_as_listed
from gateway.mcp.supervisor import Supervisor as Supervisor
from gateway.mcp.traffic import Bucket as Bucket
from gateway.mcp.traffic import Traffic as Traffic
from gateway.mcp.traffic import ValueCounter as ValueCounter
from gateway.mcp.traffic import has_too_many_values as has_too_many_values
