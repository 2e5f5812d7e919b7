"""What moved, and whether it is real: pure functions over frames, deterministic.

health        is one point fit for comparison
observations  points of one curve, run and build side by side
baseline      which earlier points an observation is compared with
comparison    the numbers of one pair: log-ratios, coherence, halves
noise         how far a metric moves when nothing changed
changes       what differs between the two sides, and whom that allows us to name
decision      effect gates, p, false-discovery control
contradiction do other runs of one of the two images contradict a shift
lifecycle     suspected, confirmed, recovered; a claim that a repeat contradicts is withdrawn
night         all of it in order
"""
