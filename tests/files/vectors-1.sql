BEGIN TRANSACTION;
CREATE TABLE vectors (
    model_id TEXT NOT NULL,
    key TEXT NOT NULL,
    dimensions INTEGER NOT NULL,
    row BLOB NOT NULL,
    PRIMARY KEY (model_id, key)
) WITHOUT ROWID
;
INSERT INTO "vectors" VALUES('m','a',3,X'CDCCCC3D000000C000004040');
INSERT INTO "vectors" VALUES('m','b',1,X'95BFD633');
INSERT INTO "vectors" VALUES('n','a',1,X'00008040');
COMMIT;
PRAGMA user_version = 1;
PRAGMA journal_mode = WAL;
