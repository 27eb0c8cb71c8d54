BEGIN TRANSACTION;
CREATE TABLE entries (id TEXT PRIMARY KEY, entry TEXT NOT NULL)
            WITHOUT ROWID;
INSERT INTO "entries" VALUES('agent:catalog/planner','{"kind": "agent", "name": "planner", "description": "Plans é."}');
CREATE TABLE failures (fingerprint TEXT PRIMARY KEY,
            failed_at REAL NOT NULL, detail TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "failures" VALUES('g',1728000100.0,'refused');
CREATE TABLE first_seen (owner TEXT NOT NULL, value TEXT NOT NULL,
            at REAL NOT NULL, PRIMARY KEY (owner, value)) WITHOUT ROWID;
INSERT INTO "first_seen" VALUES('o','d1',1728000100.0);
INSERT INTO "first_seen" VALUES('o','d2',1728000100.0);
INSERT INTO "first_seen" VALUES('o','d3',1728000100.0);
CREATE TABLE former (digest TEXT PRIMARY KEY,
            definition TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "former" VALUES('d1','{"definitions": 1, "digest": "ddc969245243d5a26e8f873641761f763d9174d6", "instructions": "", "notes": [], "digests": {}, "suspicions": {}}
[["pay", "", "Pay \u00e9.", {"type": "object"}, null, "tool", {}, null, null, null, null]]');
CREATE TABLE listings (fingerprint TEXT PRIMARY KEY,
            server TEXT NOT NULL, listed_at REAL NOT NULL, used_at REAL NOT NULL,
            listing TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "listings" VALUES('f','srv',1728000100.0,1728000100.0,'{"definitions": 1, "digest": "f12f71068756795f31fc8f05834986fa9a612cc3", "instructions": "", "notes": [], "digests": {"pay": "d3"}, "suspicions": {}}
[["pay", "", "Pay twice.", {"type": "object"}, null, "tool", {}, null, null, null, null]]');
CREATE TABLE pins (owner TEXT NOT NULL, name TEXT NOT NULL,
            approved TEXT NOT NULL, seen TEXT NOT NULL,
            PRIMARY KEY (owner, name)) WITHOUT ROWID;
INSERT INTO "pins" VALUES('o','look','d2','d2');
INSERT INTO "pins" VALUES('o','pay','d1','d3');
CREATE TABLE rules (pattern TEXT PRIMARY KEY, rule TEXT NOT NULL)
            WITHOUT ROWID;
INSERT INTO "rules" VALUES('mail/send','{"enabled": false}');
COMMIT;
PRAGMA user_version = 8;
