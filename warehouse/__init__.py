"""What was measured and decided, kept for good: events, log, tables, vocabulary, image grammar, queries, upkeep.

Imports nothing of ours. Heavy libraries are imported by the modules that need them, so that `shiftlog --help` stays quick.
"""
