"""The tables of a `PostgresStore`, as the steps that make them, oldest first.

A schema of version n has had the first n steps. A step is never changed once it was released, and
keeps what users put in. Texts that are sorted compare by their characters, as Python's do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString

from gateway.storage.database import Schema

_TABLES: Sequence[LiteralString] = (
    # Numbers of vectors hardly compress: they are not tried.
    """CREATE TABLE vectors (model_id text COLLATE "C", key text COLLATE "C",
    dimensions integer NOT NULL, row bytea STORAGE EXTERNAL NOT NULL,
    PRIMARY KEY (model_id, key))""",
    'CREATE TABLE entries (id text COLLATE "C" PRIMARY KEY, entry text NOT NULL)',
    'CREATE TABLE rules (pattern text COLLATE "C" PRIMARY KEY, rule text NOT NULL)',
    """CREATE TABLE listings (fingerprint text COLLATE "C" PRIMARY KEY, server text NOT NULL,
    listed_at double precision NOT NULL, used_at double precision NOT NULL,
    listing text NOT NULL)""",
    'CREATE TABLE former (digest text COLLATE "C" PRIMARY KEY, definition text NOT NULL)',
    """CREATE TABLE failures (fingerprint text COLLATE "C" PRIMARY KEY,
    failed_at double precision NOT NULL, detail text NOT NULL)""",
    """CREATE TABLE pins (owner text COLLATE "C", name text COLLATE "C", approved text NOT NULL,
    seen text NOT NULL, PRIMARY KEY (owner, name))""",
    """CREATE TABLE first_seen (owner text COLLATE "C", value text COLLATE "C",
    at double precision NOT NULL, PRIMARY KEY (owner, value))""",
    """CREATE TABLE calls (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at double precision NOT NULL, tenant text NOT NULL, task text NOT NULL,
    tool text COLLATE "C" NOT NULL, shape text NOT NULL, seconds double precision NOT NULL,
    outcome text NOT NULL)""",
    "CREATE INDEX calls_of_tools ON calls (tool, tenant)",
    """CREATE TABLE searches (day integer, tenant text COLLATE "C", searches integer NOT NULL,
    no_match integer NOT NULL, low_confidence integer NOT NULL, PRIMARY KEY (day, tenant))""",
    """CREATE TABLE found (day integer, tenant text COLLATE "C", tool text COLLATE "C",
    times integer NOT NULL, PRIMARY KEY (day, tenant, tool))""",
    """CREATE TABLE queries (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at double precision NOT NULL, tenant text NOT NULL, task text NOT NULL, text text NOT NULL,
    found text NOT NULL)""",
    "CREATE INDEX queries_by_age ON queries (at)",
)
_NOTIFICATIONS: Sequence[LiteralString] = (
    """CREATE FUNCTION tell_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_notify('tool_gateway', json_build_array(
        current_setting('gateway.origin', true), TG_TABLE_SCHEMA, TG_TABLE_NAME)::text);
    RETURN NULL; END $$""",
    """CREATE FUNCTION tell_listing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_notify('tool_gateway', json_build_array(
        current_setting('gateway.origin', true), TG_TABLE_SCHEMA,
        TG_TABLE_NAME || '/' || NEW.server)::text);
    RETURN NULL; END $$""",
    """CREATE TRIGGER tell AFTER INSERT OR DELETE OR UPDATE ON entries
    FOR EACH STATEMENT EXECUTE FUNCTION tell_change()""",
    """CREATE TRIGGER tell AFTER INSERT OR DELETE OR UPDATE ON rules
    FOR EACH STATEMENT EXECUTE FUNCTION tell_change()""",
    """CREATE TRIGGER tell_new AFTER INSERT ON listings
    FOR EACH ROW EXECUTE FUNCTION tell_listing()""",
    """CREATE TRIGGER tell_changed AFTER UPDATE ON listings
    FOR EACH ROW WHEN (OLD.listing IS DISTINCT FROM NEW.listing)
    EXECUTE FUNCTION tell_listing()""",
    """CREATE TRIGGER tell AFTER UPDATE OF approved ON pins
    FOR EACH STATEMENT EXECUTE FUNCTION tell_change()""",
)
ENTITY_ROWS: Sequence[LiteralString] = (
    # Days of use change apart from the rows, which are large and in an index.
    """CREATE TABLE IF NOT EXISTS entity_keys (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model text COLLATE "C" NOT NULL, key bytea NOT NULL UNIQUE, used date NOT NULL)
    WITH (fillfactor = 80)""",
    """CREATE TABLE IF NOT EXISTS entity_rows (id bigint PRIMARY KEY,
    model text COLLATE "C" NOT NULL, numbers halfvec STORAGE PLAIN NOT NULL)""",
)
"""Made only where rows are kept there: they need the extension ``vector``."""
REST = Schema(what="", postgres={1: _TABLES, 2: _NOTIFICATIONS})
