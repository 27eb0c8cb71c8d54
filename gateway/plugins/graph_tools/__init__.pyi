# For type checkers: the names and modules of `__init__.py`.

from gateway.plugins.graph_tools.edge_proposals import BATCH as BATCH
from gateway.plugins.graph_tools.edge_proposals import MAX_EDGES as MAX_EDGES
from gateway.plugins.graph_tools.edge_proposals import batches as batches
from gateway.plugins.graph_tools.edge_proposals import plan_edit as plan_edit
from gateway.plugins.graph_tools.graph_view import MAX_PATH_EDGES as MAX_PATH_EDGES
from gateway.plugins.graph_tools.graph_view import GraphEdge as GraphEdge
from gateway.plugins.graph_tools.graph_view import GraphView as GraphView
from gateway.plugins.graph_tools.openai import PROPOSALS as PROPOSALS
from gateway.plugins.graph_tools.openai import OpenAIProposer as OpenAIProposer
from gateway.plugins.graph_tools.openai import connected as connected
