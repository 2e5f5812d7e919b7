"""Where heavy work runs: the same function over the same parts, here, on several processes, or on a Ray cluster.

contract   what every kind of workers does, and what it asks of functions and parts
registry   from the text of `--workers` to workers
order      results in the order of parts, with few parts in flight
serial     in this process
processes  on several processes of this machine
cluster    on Ray
parcels    frames on their way between processes

Nothing here knows what a part is: splitting work and putting results together belongs to the fold and to detection.
"""
