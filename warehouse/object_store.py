"""What differs where the tables lie on an object store: addresses, how long to try, and its errors in plain words.

Belongs here: what the user has to know of such a store. Does not: reading or committing (`warehouse.store`). Credentials come
from the environment alone, so nothing here keeps or shows them.
"""

from __future__ import annotations

import re

from warehouse.errors import InputError

SCHEMES = ("s3", "s3a", "gs", "az", "abfs", "abfss")
ADDRESS = re.compile(r"[a-z0-9]+://[A-Za-z0-9][A-Za-z0-9._@-]*(/[A-Za-z0-9._=+@~-]+)*")
"""Addresses that every reader of the tables spells alike: what must be percent-encoded, polars encodes twice."""
OPTIONS = {"connect_timeout": "5s", "timeout": "30s", "retry_timeout": "30s"}
"""One request may take `timeout`; after `retry_timeout` a failed one is not sent again (delta-rs: 180 s, as long as a hang).

polars is handed them with the table and takes these; a `max_retries` it refuses, because it wants a number and delta-rs a text.
"""
_WORDS = (
    (r"NoSuchBucket|ContainerNotFound|specified bucket does not exist", "there is no such bucket"),
    (
        r"169\.254\.169\.254|metadata\.google\.internal",
        "no credentials in the environment (for s3: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)",
    ),
    (
        r"\b40[13]\b|AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|necessary privileges|PermissionError",
        "the object store refuses the credentials of the environment",
    ),
    (r"URL scheme is not allowed", "the endpoint is not https; set AWS_ALLOW_HTTP=true if that is meant"),
    (
        r"error sending request|tcp connect|dns error|timed out|timeout|connection closed|after \d+ retries",
        "the object store does not answer; is the endpoint right (for s3: AWS_ENDPOINT_URL), and is it up?",
    ),
)


def check_address(uri: str) -> None:
    """Raise InputError for an address that cannot be used. It is not repeated: it may hold what nobody should read."""
    if uri.partition("://")[0] not in SCHEMES:
        raise InputError(f"--warehouse: a folder, or an address that begins with {', '.join(f'{name}://' for name in SCHEMES)}")
    if not ADDRESS.fullmatch(uri):
        raise InputError(
            "--warehouse: write scheme://bucket/prefix in letters, digits and . _ - = + @ ~; keys go into the environment"
        )


def in_words(text: str) -> str | None:
    """Return what an error of an object store means to the user; None where that is not known."""
    return next((words for pattern, words in _WORDS if re.search(pattern, text)), None)
