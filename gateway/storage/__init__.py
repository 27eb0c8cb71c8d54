"""Protocols of stores and databases, and their SQLite implementation."""

from gateway.storage.catalog import CATALOG as CATALOG
from gateway.storage.catalog import SqlCatalog as SqlCatalog
from gateway.storage.database import Database as Database
from gateway.storage.database import Schema as Schema
from gateway.storage.database import Session as Session
from gateway.storage.host_key import approval_key as approval_key
from gateway.storage.host_key import host_keys as host_keys
from gateway.storage.host_key import key_in as key_in
from gateway.storage.oauth_tokens import FileTokens as FileTokens
from gateway.storage.oauth_tokens import OpenTokens as OpenTokens
from gateway.storage.oauth_tokens import open_tokens as open_tokens
from gateway.storage.oauth_tokens import with_token_store as with_token_store
from gateway.storage.protocol import SqliteStore as SqliteStore
from gateway.storage.protocol import Store as Store
from gateway.storage.protocol import WatchedStore as WatchedStore
from gateway.storage.sqlite import SqliteDatabase as SqliteDatabase
from gateway.storage.sqlite import SqliteVectorStore as SqliteVectorStore
from gateway.storage.vectors import VECTORS as VECTORS
from gateway.storage.vectors import SqlVectorStore as SqlVectorStore
