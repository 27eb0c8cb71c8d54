"""The configuration file `mcp.json`: parsing, checking and editing."""

from gateway.config.config_file import add_server as add_server
from gateway.config.config_file import backup_path as backup_path
from gateway.config.config_file import read_text as read_text
from gateway.config.config_file import server_names as server_names
from gateway.config.config_file import undo_edit as undo_edit
from gateway.config.config_file import write_text as write_text
from gateway.config.json_edit import parse as parse
from gateway.config.json_edit import with_member as with_member
from gateway.config.json_edit import without_member as without_member
from gateway.config.manifest import Manifest as Manifest
