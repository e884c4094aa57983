#!/usr/bin/env python3
"""The extension for SQLite beside an index and a table in memory: nanoseconds of
processor time a row, the best of three rounds, one after the other in each.

    bench/sqlite.py EXTENSION [ROWS]        EXTENSION: build/calyx_sqlite.so
"""
import os
import sqlite3
import sys
import tempfile
import time

EXTENSION = os.path.abspath(sys.argv[1])
ROWS = int(float(sys.argv[2])) if len(sys.argv) > 2 else 1_000_000
ROUNDS = 3


def connect(path):
    db = sqlite3.connect(path)
    db.enable_load_extension(True)
    db.load_extension(EXTENSION)
    return db


def fill(db, path):
    """As many keys as rows to look up; one row in 200 is a key, and the others fall
    between keys."""
    db.executescript(f"""
        CREATE TABLE keys (key TEXT PRIMARY KEY) WITHOUT ROWID;
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {ROWS})
            INSERT INTO keys SELECT 'https://example.org/user/' || (2 * i) FROM n;
        CREATE TABLE rows (key TEXT);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {ROWS})
            INSERT INTO rows SELECT 'https://example.org/user/' ||
                (2 * (1 + i * 7919 % {ROWS}) + (i % 200 > 0)) FROM n;
        CREATE TEMP TABLE copy AS SELECT key FROM keys;
        CREATE UNIQUE INDEX temp.copied ON copy (key);
    """)
    with open(path, "wb") as file:
        file.write(db.execute(
            "SELECT calyx_build(key, 0.003) FROM keys").fetchone()[0])


def statements_with(path):
    """By name; each counts rows."""
    return {
        "no look-up": "SELECT sum(length(key) > 0) FROM rows",
        "calyx_has of a file":
            f"SELECT sum(calyx_has('{path}', key)) FROM rows",
        "index in memory":
            "SELECT count(*) FROM rows CROSS JOIN temp.copy USING (key)",
        "index":
            "SELECT count(*) FROM rows CROSS JOIN keys USING (key)",
        "calyx_has, then index":
            "SELECT count(*) FROM rows CROSS JOIN keys USING (key) "
            f"WHERE calyx_has('{path}', rows.key)",
    }


def clocked(db, statement):
    start = time.process_time()
    count = db.execute(statement).fetchone()[0]
    return 1e9 * (time.process_time() - start) / ROWS, count


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "keys.calyx")
        db = connect(os.path.join(folder, "bench.db"))
        fill(db, path)
        statements = statements_with(path)
        rounds = [{name: clocked(db, text) for name, text in statements.items()}
                  for _ in range(ROUNDS)]
        counts = {name: found for name, (_, found) in rounds[0].items()}
        if counts["calyx_has, then index"] != counts["index"] or \
                counts["calyx_has of a file"] < counts["index"]:
            sys.exit(f"rows were lost: {counts}")
        build = min(clocked(db, "SELECT length(calyx_build(key, 0.003)) FROM keys")[0]
                    for _ in range(ROUNDS))
        print(f"{ROWS} rows against {ROWS} keys of about 30 bytes, "
              f"{os.path.getsize(path)} bytes of filter; "
              f"calyx_build {build:.0f} ns a key\n\n| | ns a row |\n|---|---|")
        for name in statements:
            print(f"| {name} | {min(r[name][0] for r in rounds):.0f} |")
        db.close()


if __name__ == "__main__":
    main()
