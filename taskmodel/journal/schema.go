package journal

// migrations lead from one schema to the next; the number of a file's schema
// (user_version) is how many of them it has seen. What stands here is never
// changed, only added to.
//
// Times are microseconds since 1970, 0 for none. role is 0 for tasks that we
// asked for and 1 for those that a server asked of us. change is the number of
// the transaction that wrote the row last, for those who follow.
var migrations = []string{`
CREATE TABLE writers (
	id      INTEGER PRIMARY KEY AUTOINCREMENT,
	pid     INTEGER NOT NULL,
	host    TEXT NOT NULL,
	node    TEXT NOT NULL,     -- host and process name space: where pid means something
	what    TEXT NOT NULL,
	started INTEGER NOT NULL,
	ended   INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE counter (
	one   INTEGER PRIMARY KEY CHECK (one = 1),
	n     INTEGER NOT NULL,       -- the last change
	bytes INTEGER NOT NULL        -- of all results kept
) STRICT;
INSERT INTO counter VALUES (1, 0, 0);

CREATE TABLE servers (
	id     INTEGER PRIMARY KEY,
	target TEXT NOT NULL UNIQUE,
	label  TEXT NOT NULL
) STRICT;

CREATE TABLE tasks (
	server    INTEGER NOT NULL REFERENCES servers (id),
	role      INTEGER NOT NULL,
	task      TEXT NOT NULL,
	change    INTEGER NOT NULL,
	writer    INTEGER NOT NULL REFERENCES writers (id),
	status    TEXT NOT NULL,
	created   INTEGER NOT NULL,
	heard     INTEGER NOT NULL,
	ended     INTEGER NOT NULL,
	lost      INTEGER NOT NULL,     -- gone or expired
	forgotten INTEGER NOT NULL DEFAULT 0,
	doc       BLOB NOT NULL,
	PRIMARY KEY (server, role, task)
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_change ON tasks (server, change);

CREATE TABLE questions (
	server INTEGER NOT NULL REFERENCES servers (id),
	qid    TEXT NOT NULL,
	role   INTEGER NOT NULL,
	task   TEXT NOT NULL,
	change INTEGER NOT NULL,
	writer INTEGER NOT NULL REFERENCES writers (id),
	state  TEXT NOT NULL,
	asked  INTEGER NOT NULL,
	doc    TEXT NOT NULL,
	PRIMARY KEY (server, qid)
) STRICT, WITHOUT ROWID;
CREATE INDEX questions_change ON questions (server, change);
CREATE INDEX questions_task ON questions (server, role, task);

CREATE TABLE answers (
	server    INTEGER NOT NULL REFERENCES servers (id),
	qid       TEXT NOT NULL,
	action    TEXT NOT NULL,
	content   BLOB,               -- NULL once the server took it
	at        INTEGER NOT NULL,
	delivered INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (server, qid)
) STRICT, WITHOUT ROWID;

CREATE TABLE results (
	server  INTEGER NOT NULL REFERENCES servers (id),
	role    INTEGER NOT NULL,
	task    TEXT NOT NULL,
	fetched INTEGER NOT NULL,
	bytes   INTEGER NOT NULL,     -- kept here
	large   INTEGER NOT NULL,     -- > 0: too many to be kept
	note    TEXT NOT NULL,
	error   TEXT NOT NULL,
	payload BLOB,
	PRIMARY KEY (server, role, task)
) STRICT;
CREATE TRIGGER results_in AFTER INSERT ON results BEGIN
	UPDATE counter SET bytes = bytes + new.bytes;
END;
CREATE TRIGGER results_out AFTER DELETE ON results BEGIN
	UPDATE counter SET bytes = bytes - old.bytes;
END;
CREATE TRIGGER results_other AFTER UPDATE OF bytes ON results BEGIN
	UPDATE counter SET bytes = bytes - old.bytes + new.bytes;
END;
CREATE INDEX results_state ON results (server, role, task, fetched, bytes, large);

CREATE TABLE events (
	id     INTEGER PRIMARY KEY AUTOINCREMENT,
	at     INTEGER NOT NULL,
	server INTEGER NOT NULL REFERENCES servers (id),
	role   INTEGER NOT NULL,
	task   TEXT NOT NULL,
	event  TEXT NOT NULL,
	status TEXT NOT NULL,
	words  TEXT NOT NULL,
	detail TEXT NOT NULL
) STRICT;
CREATE INDEX events_task ON events (server, task, at);

CREATE TABLE sessions (
	server   INTEGER PRIMARY KEY REFERENCES servers (id),
	sid      TEXT NOT NULL,
	version  TEXT NOT NULL,
	init     TEXT NOT NULL,
	identity TEXT NOT NULL,
	at       INTEGER NOT NULL
) STRICT;

CREATE TABLE leases (
	server  INTEGER NOT NULL REFERENCES servers (id),
	session TEXT NOT NULL,
	writer  INTEGER NOT NULL REFERENCES writers (id),
	renewed INTEGER NOT NULL,
	PRIMARY KEY (server, session)
) STRICT, WITHOUT ROWID;

CREATE TABLE intents (
	id      INTEGER PRIMARY KEY AUTOINCREMENT,
	server  INTEGER NOT NULL REFERENCES servers (id),
	session TEXT NOT NULL,
	role    INTEGER NOT NULL,
	task    TEXT NOT NULL,
	kind    TEXT NOT NULL,
	payload TEXT NOT NULL,
	at      INTEGER NOT NULL,
	sender  INTEGER NOT NULL REFERENCES writers (id),
	claimed INTEGER REFERENCES writers (id),
	done    INTEGER NOT NULL DEFAULT 0,
	error   TEXT NOT NULL DEFAULT '',
	detail  TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX intents_open ON intents (server, session) WHERE claimed IS NULL;

CREATE TABLE acts (
	server INTEGER NOT NULL REFERENCES servers (id),
	act    TEXT NOT NULL,
	writer INTEGER NOT NULL REFERENCES writers (id),
	at     INTEGER NOT NULL,
	PRIMARY KEY (server, act)
) STRICT, WITHOUT ROWID;
`, `
CREATE TABLE taps (
	server  INTEGER NOT NULL REFERENCES servers (id),
	session TEXT NOT NULL,        -- of its lease
	pid     INTEGER NOT NULL,
	host    TEXT NOT NULL,
	started INTEGER NOT NULL,
	ended   INTEGER NOT NULL,     -- 0: not that it said so
	doc     TEXT NOT NULL,
	PRIMARY KEY (server, session)
) STRICT, WITHOUT ROWID;
`}

// applicationID marks the file as ours ("mcpt").
const applicationID = 0x6d637074
