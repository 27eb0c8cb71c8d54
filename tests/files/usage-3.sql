BEGIN TRANSACTION;
CREATE TABLE calls (id INTEGER PRIMARY KEY, at REAL NOT NULL,
            tenant TEXT NOT NULL, task TEXT NOT NULL, tool TEXT NOT NULL, shape TEXT NOT NULL,
            seconds REAL NOT NULL, outcome TEXT NOT NULL);
INSERT INTO "calls" VALUES(1,1728000100.0,'822b33ad87c148a0a20a5ba7cd5ebcaa','6b86b273ff34fce19d6b804eff5a3f57','srv/pay','{"to": "string"}',0.5,'ok');
INSERT INTO "calls" VALUES(2,1728000100.0,'','','srv/look','{}',0.0,'failed');
CREATE TABLE found (day INTEGER NOT NULL, tenant TEXT NOT NULL,
            tool TEXT NOT NULL, times INTEGER NOT NULL, PRIMARY KEY (day, tenant, tool));
INSERT INTO "found" VALUES(20000,'822b33ad87c148a0a20a5ba7cd5ebcaa','srv/pay',1);
INSERT INTO "found" VALUES(20000,'822b33ad87c148a0a20a5ba7cd5ebcaa','srv/look',1);
CREATE TABLE queries (id INTEGER PRIMARY KEY, at REAL NOT NULL,
            tenant TEXT NOT NULL, task TEXT NOT NULL, text TEXT NOT NULL, found TEXT NOT NULL);
INSERT INTO "queries" VALUES(1,1728000100.0,'822b33ad87c148a0a20a5ba7cd5ebcaa','6b86b273ff34fce19d6b804eff5a3f57','pay é','["srv/pay", "srv/look"]');
CREATE TABLE searches (day INTEGER NOT NULL, tenant TEXT NOT NULL,
            searches INTEGER NOT NULL, no_match INTEGER NOT NULL, low_confidence INTEGER NOT NULL,
            PRIMARY KEY (day, tenant));
INSERT INTO "searches" VALUES(20000,'822b33ad87c148a0a20a5ba7cd5ebcaa',1,0,0);
CREATE INDEX calls_of_tools ON calls (tool, tenant);
CREATE INDEX queries_by_age ON queries (at);
COMMIT;
PRAGMA user_version = 3;
