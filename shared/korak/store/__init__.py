"""Where what was decided becomes rows: tables, queries, and the address of the database."""
