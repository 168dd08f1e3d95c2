"""SQLite tables of a report file: insert and select of every record.

Each module has `insert_x(connection, ...)` beside `select_x(connection)` for the
same tables, so that writing and reading cannot drift apart.
"""
