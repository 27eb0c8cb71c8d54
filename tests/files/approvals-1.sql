BEGIN TRANSACTION;
CREATE TABLE pins (owner TEXT NOT NULL, name TEXT NOT NULL,
            approved TEXT NOT NULL, PRIMARY KEY (owner, name)) WITHOUT ROWID;
INSERT INTO "pins" VALUES('o','look','d2');
INSERT INTO "pins" VALUES('o','pay','d1');
COMMIT;
PRAGMA user_version = 1;
