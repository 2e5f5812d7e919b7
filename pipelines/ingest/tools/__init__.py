"""What the tools write: one module a format, its helpers beside it under the tool's name; `formats.py` one level up lists them.

Belongs here: what a record of a tool means, what of it is kept. Does not: finding, storing and mapping many records at once.
Shared by several: `fields`, `labels`, `plain_names`, `unit_blocks` (values, names and units as tools spell them), `taming` (what
may be kept), `evaluating` (scores).
"""
