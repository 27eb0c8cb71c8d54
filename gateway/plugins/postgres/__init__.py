"""Store and vector search in PostgreSQL."""

from gateway.runtime.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "database": "PostgresDatabase",
        "pgvector": "PgvectorEngine",
        "store": "PostgresStore PostgresVectorStore TABLES",
    },
)
