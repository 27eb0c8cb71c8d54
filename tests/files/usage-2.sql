BEGIN TRANSACTION;
CREATE TABLE calls (
    id INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    tenant TEXT NOT NULL,
    task TEXT NOT NULL,
    tool TEXT NOT NULL,
    shape TEXT NOT NULL,
    seconds REAL NOT NULL,
    outcome TEXT NOT NULL
);
INSERT INTO "calls" VALUES(1,100.0,'822b33ad87c148a0a20a5ba7cd5ebcaa','e3b98a4da31a127d4bde6e43033f66ba','srv/pay','{"to": "string"}',0.5,'ok');
INSERT INTO "calls" VALUES(2,100.0,'','','srv/look','{}',0.0,'failed');
CREATE INDEX calls_of_tools ON calls (tool, tenant);
COMMIT;
PRAGMA user_version = 2;
PRAGMA journal_mode = WAL;
