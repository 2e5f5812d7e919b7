"""The self-contained HTML page: what moved, how sure we are, and which upstream change comes first in the list of suspects."""
