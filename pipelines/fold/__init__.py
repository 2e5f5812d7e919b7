"""From the log to the tables `runs`, `points`, `builds` and `quarantine`: all of it, or what is new.

runs        which report of a run holds, what was retracted
records     recorded results to mapped rows, a part of the log at a time
reuse       which of several equal records was measured
points      the rows of `points`
builds      the software that they were measured on
faults      what could not be read
table       `points` brought forward, or made from nothing
small       the other three after it
code        which code made a table

Every function is pure but those of `table`, `small` and `records`, which read the log; the first two commit. Making a table at
once or step by step gives the same rows.
"""
