"""Meta-tools, proxies, and all texts that a model reads."""

from gateway.discovery.meta_tools import MetaNames as MetaNames
from gateway.discovery.meta_tools import catalog_digest as catalog_digest
from gateway.discovery.meta_tools import meta_names as meta_names
from gateway.discovery.parameters import fits_strict as fits_strict
from gateway.discovery.parameters import restore_names as restore_names
from gateway.discovery.parameters import to_parameters as to_parameters
from gateway.discovery.render_results import Schemas as Schemas
from gateway.discovery.render_results import described_names_in as described_names_in
from gateway.discovery.render_results import direct_names as direct_names
from gateway.discovery.render_results import direct_names_in as direct_names_in
from gateway.discovery.render_results import next_steps_hint as next_steps_hint
from gateway.discovery.render_results import render as render
from gateway.discovery.token_counter import model_view as model_view
from gateway.discovery.tool_list import Projection as Projection
from gateway.discovery.tool_list import ToolList as ToolList
from gateway.discovery.tool_list import ToolListBuilder as ToolListBuilder
from gateway.discovery.tool_list import ToolListRequest as ToolListRequest
from gateway.discovery.tool_list import loaded_tools as loaded_tools
from gateway.discovery.window import Message as Message
from gateway.discovery.window import described_tools as described_tools
from gateway.discovery.window import proxy as proxy
from gateway.discovery.window import text_of as text_of
from gateway.discovery.window import visible_proxies as visible_proxies
from gateway.discovery.wire_formats import WireFormat as WireFormat
from gateway.discovery.wire_formats import names_of_tool as names_of_tool
from gateway.discovery.wire_formats import result_text as result_text
