"""What happens when: pure functions from a snapshot and a fact to the changes that follow.

Read `decide` first. It names every fact there is and the one verb that answers it:

    started                                          ->  walking
    claimed                                          ->  claiming
    finished, lost, handed back, freed               ->  recording, failing, retries
    delivered                                        ->  delivering
    deadline passed; cancel, pause, resume, retry    ->  commanding
    rewind, fork                                     ->  rewinding, forking
    refused, broken                                  ->  failing

What follows from a fact, by the question that brings you here:

    a step completes          walking (the next node), budgets (what it costs), jumping (its output names the next)
    it fails                  failing, then retries
    it waits                  waiting; for its children nesting, for other runs depending, and tallying counts them
    it has bodies             containers; counters tell whether it is done, scopes are its bodies, merging adds them up
    others hold the room      limiting asks for room under the keys of its `flow`; rooms gives it
    the run is to be undone   undoing, newest first, from its stack; hooks makes the steps that clean up
    it concerns other runs    telling: commands to children, its end to its parent

How it begins: `opening` makes a new instance, `identity` says what a start under a known id comes to, `starting` begins
an attempt. What goes back (`rewinding`, `forking`) asks `states` and `past` where the run stood. `exporting` and
`importing` carry a run to another installation.

Everything is decided on a `draft`, the working copy of a `snapshot` of `rows`, and comes out as `changes`; a status
changes by an arrow of `transitions` or not at all. Nothing here reads a clock, a table or a message; `korak.store`
loads the snapshot and applies the changes.
"""
