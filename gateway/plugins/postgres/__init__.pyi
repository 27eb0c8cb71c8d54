# For type checkers: the names and modules of `__init__.py`.

from gateway.plugins.postgres.database import PostgresDatabase as PostgresDatabase
from gateway.plugins.postgres.pgvector import PgvectorEngine as PgvectorEngine
from gateway.plugins.postgres.store import TABLES as TABLES
from gateway.plugins.postgres.store import PostgresStore as PostgresStore
from gateway.plugins.postgres.store import PostgresVectorStore as PostgresVectorStore
