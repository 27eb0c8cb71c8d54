BEGIN TRANSACTION;
CREATE TABLE accesses (
    tool TEXT NOT NULL,
    day INTEGER NOT NULL,
    count INTEGER NOT NULL,
    last REAL NOT NULL,
    PRIMARY KEY (tool, day)
) WITHOUT ROWID;
INSERT INTO "accesses" VALUES('a',0,1,100.0);
INSERT INTO "accesses" VALUES('b',0,1,100.0);
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
CREATE TABLE pairs (
    one TEXT NOT NULL,
    other TEXT NOT NULL,
    count INTEGER NOT NULL,
    last REAL NOT NULL,
    PRIMARY KEY (one, other)
) WITHOUT ROWID;
INSERT INTO "pairs" VALUES('a','b',1,100.0);
CREATE INDEX calls_of_tools ON calls (tool, tenant);
COMMIT;
PRAGMA user_version = 1;
PRAGMA journal_mode = WAL;
