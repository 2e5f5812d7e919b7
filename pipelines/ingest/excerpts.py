"""What is shown, and kept, of a record that could not be read: its shape and its numbers, not its texts.

A text of a record that no format has cleaned may be a key, an address or a name; position and reason tell where to look.
"""

from __future__ import annotations

import re

_QUOTED = re.compile(r""""(?:[^"\\]|\\.)*(?:"|$)(\s*:)?|'(?:[^'\\]|\\.)*(?:'|$)(\s*:)?""", re.DOTALL)
_BARE = re.compile(r"^(\s*(?:-[ \t]+|[-\s]*[\w. -]+[ \t]*:[ \t]+))(?![\d\[{\"'])\S.*$", re.MULTILINE)
"""A line of YAML, or of a log, whose value is a text without quotes."""


def masked(text: str) -> str:
    """Return *text* (JSON, damaged JSON, YAML) without its texts, names of fields aside; numbers stay."""
    return _QUOTED.sub(lambda found: found[0] if found[1] or found[2] else '"…"', _BARE.sub(r"\1…", text))
