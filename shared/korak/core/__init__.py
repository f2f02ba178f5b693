"""What happens when: pure functions from a snapshot and a fact to the changes that follow.

Read `decide` first. It names every fact there is and the one verb that answers it:

    started, claimed, finished, lost, handed back   ->  claiming, recording, failing
    delivered, deadline passed                      ->  delivering, commanding
    cancel, pause, resume and retry asked           ->  commanding

Nothing here reads a clock, a table or a message; `korak.store` loads the snapshot and applies the changes.
"""
