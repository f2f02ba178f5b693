"""Where what was decided becomes rows: tables, queries, and the address of the database.

The order of locks, which every transaction keeps:

1. Instances, by id, `for no key update` (a stronger lock would hold up `once()` and whoever names the instance). A
   batch leaves those that others hold (`skip locked`); only who wants a single one waits for it, and for no second.
   The statement that locks reads `workflow_instances` and nothing else; all that stands below is read by later
   statements, whose snapshots are younger than the lock.
2. What stands below them (step runs, waits, deliveries), by whoever holds the instance. Who has no lock on it (a waker,
   whoever releases, whoever matches an event) takes these rows by id with `skip locked` and never waits for one.
3. Inserts that a unique key may refuse, since they wait for whoever has inserted the same: in the order of that key
   (deliveries by instance and wait, start keys by key, shapes of events, new rows of `flow_keys`).
4. Rows that instances share (`flow_keys`), by id. A start, whose instances nobody sees yet, takes them first.

So nobody who holds an instance waits for one who waits for an instance. An engine's row is locked in transactions of
its own.
"""
