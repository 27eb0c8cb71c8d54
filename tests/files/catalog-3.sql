BEGIN TRANSACTION;
CREATE TABLE approved (
                owner TEXT PRIMARY KEY,
                tools TEXT NOT NULL,
                launch TEXT NOT NULL
            ) WITHOUT ROWID;
INSERT INTO "approved" VALUES('o','','');
INSERT INTO "approved" VALUES('p','e336432082f970493aa1003b4ac8e98fb7f98082','a828801e6a379a86036624951801f9ec23f36fc6');
CREATE TABLE entries (
                id TEXT PRIMARY KEY,
                entry TEXT NOT NULL
            ) WITHOUT ROWID;
INSERT INTO "entries" VALUES('agent:catalog/planner','{"description": "Plans é.", "hints": {"tags": ["travel"]}, "kind": "agent", "metadata": {"a": [1]}, "name": "planner", "scopes": ["staff"]}');
CREATE TABLE heads (
                fingerprint TEXT PRIMARY KEY,
                head TEXT NOT NULL,
                digests TEXT NOT NULL
            );
INSERT INTO "heads" VALUES('f','{"count": 1, "digest": "3c4faa0e62f230b81ece1d16ed7fe037a2fc9a65", "things": [{"name": "a://b", "title": "B", "description": "", "input": {}, "output": null, "hints": [null, null, null], "kind": "resource", "details": {"mimeType": "text/plain"}}], "instructions": "", "notes": [["tool_quarantined", "''x'': no"]], "suspicions": {"pay": ["hidden text"]}, "pins": 1, "seen": "4e024a6e99888a73339dd52883d91e6ad66de5da"}','{"pay": "d1"}');
CREATE TABLE listings (
    fingerprint TEXT PRIMARY KEY,
    server TEXT NOT NULL,
    listed_at REAL NOT NULL,
    used_at REAL NOT NULL,
    listing TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "listings" VALUES('f','srv',100.0,100.0,'{"count": 1, "digest": "3c4faa0e62f230b81ece1d16ed7fe037a2fc9a65", "things": [{"name": "a://b", "title": "B", "description": "", "input": {}, "output": null, "hints": [null, null, null], "kind": "resource", "details": {"mimeType": "text/plain"}}], "instructions": "", "notes": [["tool_quarantined", "''x'': no"]], "digests": {"pay": "d1"}, "suspicions": {"pay": ["hidden text"]}}
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
INSERT INTO "pins" VALUES('p','','run','run');
INSERT INTO "pins" VALUES('p','x','1','1');
CREATE TRIGGER listing_made AFTER INSERT ON listings
                BEGIN DELETE FROM heads WHERE fingerprint = NEW.fingerprint; END;
CREATE TRIGGER listing_changed AFTER UPDATE OF listing ON listings
                BEGIN DELETE FROM heads WHERE fingerprint = NEW.fingerprint; END;
CREATE TRIGGER listing_gone AFTER DELETE ON listings
                BEGIN DELETE FROM heads WHERE fingerprint = OLD.fingerprint; END;
CREATE TRIGGER pin_made AFTER INSERT ON pins
                BEGIN DELETE FROM approved WHERE owner = NEW.owner; END;
CREATE TRIGGER pin_changed AFTER UPDATE ON pins
                BEGIN DELETE FROM approved WHERE owner = NEW.owner; END;
CREATE TRIGGER pin_gone AFTER DELETE ON pins
                BEGIN DELETE FROM approved WHERE owner = OLD.owner; END;
COMMIT;
PRAGMA user_version = 3;
PRAGMA journal_mode = WAL;
