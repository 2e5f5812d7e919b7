"""An object store on loopback for the tests: moto's S3 server in a process of its own, which checks keys and keeps a request log.

Belongs here: the server and what it was asked. Does not: any command of shiftlog.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 60.0
"""Seconds after which a server that has not said where it listens counts as broken."""
BUCKET = "bucket"
REGION = "us-east-1"
_ADDRESS = re.compile(r"Running on (http://127\.0\.0\.1:\d+)")
_REQUEST = re.compile(r'"(?:\x1b\[\d+m)*(GET|PUT|POST|HEAD|DELETE) (\S+) HTTP')
UNSET = ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_ENDPOINT", "AWS_ENDPOINT_URL_S3")
"""What would send a client elsewhere."""


@dataclass(frozen=True)
class ObjectStore:
    """A running server, the keys that open it, and the file of its requests."""

    url: str
    key: str
    secret: str
    requests_file: Path

    @property
    def environment(self) -> dict[str, str]:
        """All that a client needs to know."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_REGION": REGION,
        }

    def requests(self) -> list[str]:
        """Return method and path of every request so far."""
        return [f"{method} {path}" for method, path in _REQUEST.findall(self.requests_file.read_text("utf-8", "replace"))]


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Start a server with one empty bucket; from then on it refuses whoever has not the right keys."""
    with tempfile.TemporaryDirectory(prefix="object-store-") as folder:
        log = Path(folder) / "requests"
        with log.open("wb") as output:
            line = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
            process = subprocess.Popen(line, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            url = _address(process, log)
            yield ObjectStore(url, *_locked(url), log)
        finally:
            process.kill()
            process.wait()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        if found := _ADDRESS.search(log.read_text("utf-8", "replace")):
            return found[1]
        time.sleep(0.05)
    raise RuntimeError(f"moto's server does not listen: {log.read_text('utf-8', 'replace')[-500:]}")


def _locked(url: str) -> tuple[str, str]:
    """Make the bucket and a user for it, lock the server; return the user's keys."""
    import boto3

    session = boto3.Session(aws_access_key_id="first", aws_secret_access_key="first", region_name=REGION)
    session.client("s3", endpoint_url=url).create_bucket(Bucket=BUCKET)
    users = session.client("iam", endpoint_url=url)
    users.create_user(UserName="writer")
    policy = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}'
    users.put_user_policy(UserName="writer", PolicyName="all", PolicyDocument=policy)
    keys = users.create_access_key(UserName="writer")["AccessKey"]
    lock = urllib.request.Request(f"{url}/moto-api/reset-auth", data=b"0", headers={"Content-Type": "text/plain"})
    with urllib.request.urlopen(lock):
        return keys["AccessKeyId"], keys["SecretAccessKey"]
