"""The tables of the journal, as the migrations from one version of its file to the next.

`packed` is a function that migrations may call (`journal_record`).
"""

from __future__ import annotations

MIGRATIONS = (
    """
    CREATE TABLE runs (
        id TEXT PRIMARY KEY,
        created REAL NOT NULL,
        status TEXT NOT NULL,
        owner TEXT,
        title TEXT NOT NULL,
        plan TEXT NOT NULL,
        record TEXT
    );
    CREATE TABLE calls (
        id INTEGER PRIMARY KEY,
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        key TEXT NOT NULL,
        sample TEXT NOT NULL,
        path TEXT NOT NULL,
        worker TEXT NOT NULL,
        status TEXT NOT NULL,
        started REAL NOT NULL,
        finished REAL,
        call TEXT NOT NULL,
        reply TEXT,
        error TEXT NOT NULL DEFAULT '',
        calls INTEGER NOT NULL,
        tokens INTEGER NOT NULL,
        usd REAL NOT NULL
    );
    CREATE INDEX calls_of_run ON calls (run);
    CREATE INDEX replies ON calls (key, sample) WHERE status = 'finished';
    """,
    # What a run was asked has its options in one table. Quotes inside of JSON strings are escaped, so a key can be
    # replaced as text.
    """
    ALTER TABLE runs RENAME COLUMN plan TO request;
    UPDATE runs SET request = json_object(
        'workflow', json_extract(request, '$.workflow'),
        'question', json_extract(request, '$.question'),
        'config', json_object(
            'seed', json_extract(request, '$.seed'),
            'question_for', json_extract(request, '$.question_for'),
            'run_dead_steps', json(iif(json_extract(request, '$.run_dead_steps'), 'true', 'false')),
            'max_depth', json_extract(request, '$.max_depth')
        ),
        'budget', json_object(
            'calls', json_extract(request, '$.budget.calls'),
            'tokens', json_extract(request, '$.budget.tokens'),
            'usd', json_extract(request, '$.budget.usd'),
            'seconds', json_extract(request, '$.budget.wall_s')
        ),
        'names', json_extract(request, '$.names'),
        'previous', json_extract(request, '$.previous'),
        'pool', json_extract(request, '$.pool'),
        'sample_id', json_extract(request, '$.sample'),
        'origin', json_extract(request, '$.origin')
    ), record = replace(record, '"outcome": ', '"result": ');
    """,
    # Runs have numbers in the order in which they began, which calls refer to. A record repeats no text, and what a
    # call was shown follows from the request and the replies before it.
    """
    CREATE TABLE numbered (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        created REAL NOT NULL,
        status TEXT NOT NULL,
        owner TEXT,
        title TEXT NOT NULL,
        request TEXT NOT NULL,
        record TEXT
    );
    INSERT INTO numbered (id, created, status, owner, title, request, record)
        SELECT id, created, status, owner, title, request, packed(record, request, (
            SELECT json_group_array(json_array(calls.id, reply)) FROM calls
            WHERE calls.run = runs.id AND calls.status = 'finished'
        ))
        FROM runs ORDER BY created, runs.rowid;
    CREATE TABLE attempts (
        id INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES numbered (number) ON DELETE CASCADE,
        key TEXT NOT NULL,
        sample TEXT NOT NULL,
        path TEXT NOT NULL,
        worker TEXT NOT NULL,
        status TEXT NOT NULL,
        started REAL NOT NULL,
        finished REAL,
        reply TEXT,
        error TEXT NOT NULL DEFAULT '',
        calls INTEGER NOT NULL,
        tokens INTEGER NOT NULL,
        usd REAL NOT NULL
    );
    INSERT INTO attempts
        SELECT calls.id, number, substr(key, 1, 32), sample, path, worker, calls.status, started, finished, reply,
            error, calls, tokens, usd
        FROM calls JOIN numbered ON numbered.id = calls.run;
    DROP TABLE calls;
    DROP TABLE runs;
    ALTER TABLE numbered RENAME TO runs;
    ALTER TABLE attempts RENAME TO calls;
    CREATE INDEX calls_of_run ON calls (run);
    CREATE INDEX replies ON calls (key, sample) WHERE status = 'finished';
    """,
    # Tools that workers have called: their key is the tool call's id, their worker the tool, their reply its result.
    """
    CREATE INDEX tool_calls ON calls (key) WHERE status IN ('called', 'answered');
    """,
    # Responses of a server, as JSON.
    """
    CREATE TABLE responses (
        id TEXT PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
        content TEXT NOT NULL
    );
    CREATE INDEX responses_of_run ON responses (run);
    """,
)
"""Migration i takes a file from version i to i + 1. `calls`, `tokens` and `usd` are what the call is charged: its
upper bound while it is `started` or `lost`, then the true amount. Migrations that were once released never change.
"""
VERSION = len(MIGRATIONS)
"""What this wfdsl writes; older files are brought up to it when they are opened."""
