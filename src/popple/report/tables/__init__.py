"""How records lie in the tables of a report file.

Each module has `insert_x(connection, ...)` beside `select_x(connection)` for the
same tables, so that writing and reading cannot drift apart.
"""
