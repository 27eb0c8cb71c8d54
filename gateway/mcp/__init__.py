"""MCP client: servers, sessions, transports, and checks of listings."""

from gateway.mcp.collector import DefinitionCollector as DefinitionCollector
from gateway.mcp.definitions import MAX_DEPTH as MAX_DEPTH
from gateway.mcp.definitions import PROMPTS as PROMPTS
from gateway.mcp.definitions import RESOURCES as RESOURCES
from gateway.mcp.definitions import SKILLS as SKILLS
from gateway.mcp.definitions import TEMPLATES as TEMPLATES
from gateway.mcp.definitions import TOOLS as TOOLS
from gateway.mcp.definitions import ListMethod as ListMethod
from gateway.mcp.definitions import digest_definition as digest_definition
from gateway.mcp.definitions import find_fault as find_fault
from gateway.mcp.injection_scanner import scan_definition as scan_definition
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
