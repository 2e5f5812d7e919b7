"""What moved, and whether it is real: pure functions over frames, deterministic.

health        is one point fit for comparison; fitness: is a curve, a run
observations  points of one curve, run and build side by side
baseline      which earlier points an observation is compared with
comparison    the numbers of one pair: log-ratios, coherence, halves
noise         how far a metric moves when nothing changed; public: on other fleets
recipes       what the benchmark's own log says was changed in between
changes       what differs between the two sides, and whom that allows us to name
decision      effect gates, p, false-discovery control
contradiction do other runs of one of the two images contradict a shift
days          the whole history of a curve (series, partition, drift, replay): step, blip, drift
lifecycle     suspected, confirmed, recovered (states); a claim that a repeat contradicts is withdrawn
notices       which shifts are one notice
rare          series of one cell: MLPerf rounds and the like
frontier      throughput at fixed interactivity
scores        evaluations (evaluations, proportions, score_witnesses), and the speed-up that they fell with (score_links)
night         all of it in order; spans: in parts, from stored points
"""
