"""Entities of the catalog, their ids and names, and the entries that a host adds."""

from gateway.catalog.approvals import COMMAND_LINE_PIN as COMMAND_LINE_PIN
from gateway.catalog.approvals import apply_policies as apply_policies
from gateway.catalog.approvals import is_hidden as is_hidden
from gateway.catalog.catalog import Catalog as Catalog
from gateway.catalog.catalog import Entries as Entries
from gateway.catalog.entries import MAX_CHARS as MAX_CHARS
from gateway.catalog.entries import MAX_VALUES as MAX_VALUES
from gateway.catalog.entries import Entry as Entry
from gateway.catalog.entries import clean_entry as clean_entry
from gateway.catalog.entries import decode_entries as decode_entries
from gateway.catalog.entries import encode_entry as encode_entry
from gateway.catalog.entries import entry_from_json as entry_from_json
from gateway.catalog.entries import entry_to_json as entry_to_json
from gateway.catalog.entries import flatten as flatten
from gateway.catalog.entries import project as project
from gateway.catalog.entries import to_entity as to_entity
from gateway.catalog.identity import definition_digest as definition_digest
from gateway.catalog.identity import entity_id as entity_id
from gateway.catalog.identity import expose_names as expose_names
from gateway.catalog.identity import from_gateway_uri as from_gateway_uri
from gateway.catalog.identity import similar_names as similar_names
from gateway.catalog.identity import to_gateway_uri as to_gateway_uri
from gateway.catalog.selection import Page as Page
from gateway.catalog.selection import Selection as Selection
from gateway.catalog.selection import select as select
from gateway.catalog.visibility import EVERYTHING_VISIBLE as EVERYTHING_VISIBLE
