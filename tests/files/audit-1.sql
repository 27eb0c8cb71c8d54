BEGIN TRANSACTION;
CREATE TABLE audit (id INTEGER PRIMARY KEY AUTOINCREMENT,
            at REAL NOT NULL, row TEXT NOT NULL);
INSERT INTO "audit" VALUES(1,1728000100.0,'{"at": 1728000100.0, "action": "call", "decision": "allowed", "user": "ada", "tenant": "acme", "entity": "srv/pay"}');
CREATE INDEX audit_by_time ON audit (at);
CREATE TRIGGER append_only BEFORE UPDATE ON audit
            BEGIN SELECT RAISE(ABORT, 'rows of audit are never changed'); END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('audit',1);
COMMIT;
PRAGMA user_version = 1;
