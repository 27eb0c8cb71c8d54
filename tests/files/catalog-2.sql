BEGIN TRANSACTION;
CREATE TABLE entries (
                id TEXT PRIMARY KEY,
                entry TEXT NOT NULL
            ) WITHOUT ROWID;
INSERT INTO "entries" VALUES('agent:catalog/planner','{"description": "Plans é.", "hints": {"tags": ["travel"]}, "kind": "agent", "metadata": {"a": [1]}, "name": "planner", "scopes": ["staff"]}');
CREATE TABLE listings (
    fingerprint TEXT PRIMARY KEY,
    server TEXT NOT NULL,
    listed_at REAL NOT NULL,
    used_at REAL NOT NULL,
    listing TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "listings" VALUES('f','srv',100.0,100.0,'{"count": 1, "digest": "3c4faa0e62f230b81ece1d16ed7fe037a2fc9a65", "things": [{"name": "a://b", "title": "B", "description": "", "input": {}, "output": null, "hints": [null, null, null], "kind": "resource", "details": {"mimeType": "text/plain"}}], "notes": [["tool_quarantined", "''x'': no"]], "digests": {"pay": "d1"}, "suspicions": {"pay": ["hidden text"]}}
[{"name": "pay", "title": "Pay", "description": "Pay \u00e9.", "input": {"type": "object", "properties": {"to": {"type": "string"}}}, "output": {"type": "object"}, "hints": [false, true, null]}]');
CREATE TABLE pins (
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    approved TEXT NOT NULL,
    seen TEXT NOT NULL,
    PRIMARY KEY (owner, name)
) WITHOUT ROWID;
INSERT INTO "pins" VALUES('o','a','1','2');
INSERT INTO "pins" VALUES('o','b','1','1');
COMMIT;
PRAGMA user_version = 2;
PRAGMA journal_mode = WAL;
