CREATE SCHEMA written;
CREATE FUNCTION written.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN
    RAISE EXCEPTION 'rows of % are never changed', TG_TABLE_NAME; END $$;
CREATE FUNCTION written.tell_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN
    PERFORM pg_notify('tool_gateway', json_build_array(
        current_setting('gateway.origin', true), TG_TABLE_SCHEMA, TG_TABLE_NAME)::text);
    RETURN NULL; END $$;
CREATE FUNCTION written.tell_listing() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN
    PERFORM pg_notify('tool_gateway', json_build_array(
        current_setting('gateway.origin', true), TG_TABLE_SCHEMA,
        TG_TABLE_NAME || '/' || NEW.server)::text);
    RETURN NULL; END $$;
CREATE TABLE written.audit (
    id bigint NOT NULL,
    at double precision NOT NULL,
    "row" text NOT NULL
);
ALTER TABLE written.audit ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME written.audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE written.calls (
    id bigint NOT NULL,
    at double precision NOT NULL,
    tenant text NOT NULL,
    task text NOT NULL,
    tool text NOT NULL COLLATE pg_catalog."C",
    shape text NOT NULL,
    seconds double precision NOT NULL,
    outcome text NOT NULL
);
ALTER TABLE written.calls ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME written.calls_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE written.entries (
    id text NOT NULL COLLATE pg_catalog."C",
    entry text NOT NULL
);
CREATE TABLE written.failures (
    fingerprint text NOT NULL COLLATE pg_catalog."C",
    failed_at double precision NOT NULL,
    detail text NOT NULL
);
CREATE TABLE written.first_seen (
    owner text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C",
    at double precision NOT NULL
);
CREATE TABLE written.former (
    digest text NOT NULL COLLATE pg_catalog."C",
    definition text NOT NULL
);
CREATE TABLE written.found (
    day integer NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    tool text NOT NULL COLLATE pg_catalog."C",
    times integer NOT NULL
);
CREATE TABLE written.listings (
    fingerprint text NOT NULL COLLATE pg_catalog."C",
    server text NOT NULL,
    listed_at double precision NOT NULL,
    used_at double precision NOT NULL,
    listing text NOT NULL
);
CREATE TABLE written.pins (
    owner text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    approved text NOT NULL,
    seen text NOT NULL
);
CREATE TABLE written.programs (
    key text NOT NULL COLLATE pg_catalog."C",
    at double precision NOT NULL,
    "row" text NOT NULL
);
CREATE TABLE written.queries (
    id bigint NOT NULL,
    at double precision NOT NULL,
    tenant text NOT NULL,
    task text NOT NULL,
    text text NOT NULL,
    found text NOT NULL
);
ALTER TABLE written.queries ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME written.queries_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE written.rules (
    pattern text NOT NULL COLLATE pg_catalog."C",
    rule text NOT NULL
);
CREATE TABLE written.searches (
    day integer NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    searches integer NOT NULL,
    no_match integer NOT NULL,
    low_confidence integer NOT NULL
);
CREATE TABLE written.sign_ins (
    key text NOT NULL COLLATE pg_catalog."C",
    sealed bytea NOT NULL
);
CREATE TABLE written.spent (
    key text NOT NULL COLLATE pg_catalog."C",
    step bigint NOT NULL,
    amount double precision NOT NULL
);
CREATE TABLE written.vectors (
    model_id text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    dimensions integer NOT NULL,
    "row" bytea NOT NULL
);
ALTER TABLE ONLY written.vectors ALTER COLUMN "row" SET STORAGE EXTERNAL;
CREATE TABLE written.version (
    steps integer NOT NULL
);
INSERT INTO written.audit OVERRIDING SYSTEM VALUE VALUES (1, 1728000100, '{"at": 1728000100.0, "action": "call", "decision": "allowed", "user": "ada", "tenant": "acme", "entity": "srv/pay"}');
INSERT INTO written.calls OVERRIDING SYSTEM VALUE VALUES (1, 1728000100, '822b33ad87c148a0a20a5ba7cd5ebcaa', '6b86b273ff34fce19d6b804eff5a3f57', 'srv/pay', '{"to": "string"}', 0.5, 'ok');
INSERT INTO written.calls OVERRIDING SYSTEM VALUE VALUES (2, 1728000100, '', '', 'srv/look', '{}', 0, 'failed');
INSERT INTO written.entries VALUES ('agent:catalog/planner', '{"kind": "agent", "name": "planner", "description": "Plans é."}');
INSERT INTO written.failures VALUES ('g', 1728000100, 'refused');
INSERT INTO written.first_seen VALUES ('o', 'd1', 1728000100);
INSERT INTO written.first_seen VALUES ('o', 'd2', 1728000100);
INSERT INTO written.first_seen VALUES ('o', 'd3', 1728000100);
INSERT INTO written.former VALUES ('d1', '{"definitions": 1, "digest": "ddc969245243d5a26e8f873641761f763d9174d6", "instructions": "", "notes": [], "digests": {}, "suspicions": {}}
[["pay", "", "Pay \u00e9.", {"type": "object"}, null, "tool", {}, null, null, null, null]]');
INSERT INTO written.found VALUES (20000, '822b33ad87c148a0a20a5ba7cd5ebcaa', 'srv/look', 1);
INSERT INTO written.found VALUES (20000, '822b33ad87c148a0a20a5ba7cd5ebcaa', 'srv/pay', 1);
INSERT INTO written.listings VALUES ('f', 'srv', 1728000100, 1728000100, '{"definitions": 1, "digest": "f12f71068756795f31fc8f05834986fa9a612cc3", "instructions": "", "notes": [], "digests": {"pay": "d3"}, "suspicions": {}}
[["pay", "", "Pay twice.", {"type": "object"}, null, "tool", {}, null, null, null, null]]');
INSERT INTO written.pins VALUES ('o', 'look', 'd2', 'd2');
INSERT INTO written.pins VALUES ('o', 'pay', 'd1', 'd3');
INSERT INTO written.programs VALUES ('ada.1', 1728000100, 'é');
INSERT INTO written.queries OVERRIDING SYSTEM VALUE VALUES (1, 1728000100, '822b33ad87c148a0a20a5ba7cd5ebcaa', '6b86b273ff34fce19d6b804eff5a3f57', 'pay é', '["srv/pay", "srv/look"]');
INSERT INTO written.rules VALUES ('mail/send', '{"enabled": false}');
INSERT INTO written.searches VALUES (20000, '822b33ad87c148a0a20a5ba7cd5ebcaa', 1, 0, 0);
INSERT INTO written.sign_ins VALUES ('ada', '\xc3edc521a098de1fba0002f64e0213668bd7dd5d91c9712a384db78930b2d26c85c5651e5d');
INSERT INTO written.spent VALUES ('k', 28800001, 3);
INSERT INTO written.vectors VALUES ('m', 'a', 3, '\xcdcccc3d000000c000004040');
INSERT INTO written.vectors VALUES ('m', 'b', 1, '\x0000803f');
INSERT INTO written.version VALUES (5);
SELECT pg_catalog.setval('written.audit_id_seq', 1, true);
SELECT pg_catalog.setval('written.calls_id_seq', 2, true);
SELECT pg_catalog.setval('written.queries_id_seq', 1, true);
ALTER TABLE ONLY written.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (id);
ALTER TABLE ONLY written.calls
    ADD CONSTRAINT calls_pkey PRIMARY KEY (id);
ALTER TABLE ONLY written.entries
    ADD CONSTRAINT entries_pkey PRIMARY KEY (id);
ALTER TABLE ONLY written.failures
    ADD CONSTRAINT failures_pkey PRIMARY KEY (fingerprint);
ALTER TABLE ONLY written.first_seen
    ADD CONSTRAINT first_seen_pkey PRIMARY KEY (owner, value);
ALTER TABLE ONLY written.former
    ADD CONSTRAINT former_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY written.found
    ADD CONSTRAINT found_pkey PRIMARY KEY (day, tenant, tool);
ALTER TABLE ONLY written.listings
    ADD CONSTRAINT listings_pkey PRIMARY KEY (fingerprint);
ALTER TABLE ONLY written.pins
    ADD CONSTRAINT pins_pkey PRIMARY KEY (owner, name);
ALTER TABLE ONLY written.programs
    ADD CONSTRAINT programs_pkey PRIMARY KEY (key);
ALTER TABLE ONLY written.queries
    ADD CONSTRAINT queries_pkey PRIMARY KEY (id);
ALTER TABLE ONLY written.rules
    ADD CONSTRAINT rules_pkey PRIMARY KEY (pattern);
ALTER TABLE ONLY written.searches
    ADD CONSTRAINT searches_pkey PRIMARY KEY (day, tenant);
ALTER TABLE ONLY written.sign_ins
    ADD CONSTRAINT sign_ins_pkey PRIMARY KEY (key);
ALTER TABLE ONLY written.spent
    ADD CONSTRAINT spent_pkey PRIMARY KEY (key, step);
ALTER TABLE ONLY written.vectors
    ADD CONSTRAINT vectors_pkey PRIMARY KEY (model_id, key);
CREATE INDEX audit_by_time ON written.audit USING btree (at);
CREATE INDEX calls_of_tools ON written.calls USING btree (tool, tenant);
CREATE INDEX queries_by_age ON written.queries USING btree (at);
CREATE TRIGGER append_only BEFORE UPDATE ON written.audit FOR EACH ROW EXECUTE FUNCTION written.refuse_change();
CREATE TRIGGER tell AFTER INSERT OR DELETE OR UPDATE ON written.entries FOR EACH STATEMENT EXECUTE FUNCTION written.tell_change();
CREATE TRIGGER tell AFTER UPDATE OF approved ON written.pins FOR EACH STATEMENT EXECUTE FUNCTION written.tell_change();
CREATE TRIGGER tell AFTER INSERT OR DELETE OR UPDATE ON written.rules FOR EACH STATEMENT EXECUTE FUNCTION written.tell_change();
CREATE TRIGGER tell_changed AFTER UPDATE ON written.listings FOR EACH ROW WHEN ((old.listing IS DISTINCT FROM new.listing)) EXECUTE FUNCTION written.tell_listing();
CREATE TRIGGER tell_new AFTER INSERT ON written.listings FOR EACH ROW EXECUTE FUNCTION written.tell_listing();
