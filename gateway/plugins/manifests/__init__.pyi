# For type checkers: the names and modules of `__init__.py`.

from gateway.plugins.manifests.agent_cards import MAX_EXAMPLES as MAX_EXAMPLES
from gateway.plugins.manifests.agent_cards import read_card as read_card
from gateway.plugins.manifests.agent_cards import write_card as write_card
from gateway.plugins.manifests.client_files import client_snippets as client_snippets
from gateway.plugins.manifests.client_files import is_this_gateway as is_this_gateway
from gateway.plugins.manifests.exporter import export_servers as export_servers
from gateway.plugins.manifests.exporter import export_virtual_server as export_virtual_server
from gateway.plugins.manifests.exporter import servers_of as servers_of
from gateway.plugins.manifests.files import MAX_SKILL_BYTES as MAX_SKILL_BYTES
from gateway.plugins.manifests.files import bundle as bundle
from gateway.plugins.manifests.files import files_of as files_of
from gateway.plugins.manifests.files import read_bundle as read_bundle
from gateway.plugins.manifests.files import read_file as read_file
from gateway.plugins.manifests.files import read_manifests as read_manifests
from gateway.plugins.manifests.files import write_bundle as write_bundle
from gateway.plugins.manifests.skills import read_skill as read_skill
from gateway.plugins.manifests.skills import write_skill as write_skill
