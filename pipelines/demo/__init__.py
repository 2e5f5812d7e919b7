"""The sample fleet: sixty invented days of benchmarks with planted shifts, as raw files for the ordinary ingest.

Belongs here: generating the sample, and comparing what was planted with what was found. Does not: reading, detecting,
linking or drawing; nothing of the sample takes a way of its own. No number here was measured on any real engine.
"""
