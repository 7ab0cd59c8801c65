"""Validate an RO-Crate without a network: FOLDER OUT.json, run by the Python that has roc-validator.

The validator fetches two JSON-LD contexts. Both are laid into its cache first: that of RO-Crate 1.1 is shipped
inside rocrate 0.15, that of workflow runs is a list of terms, of which crates of this project use these.
"""

import importlib.util
import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import requests_cache
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse

RO_CRATE = "https://w3id.org/ro/crate/1.1/context"
RUNS = "https://w3id.org/ro/terms/workflow-run/context"
TERMS = (
    "sha256",
    "md5",
    "environment",
    "containerImage",
    "resourceUsage",
    "sourceParameter",
    "targetParameter",
)


class Local(HTTPAdapter):
    """Answers with one text, whatever is asked."""

    def __init__(self, text):
        super().__init__()
        self.text = text

    def send(self, request, **_):
        headers = {"Content-Type": "application/ld+json"}
        body = io.BytesIO(self.text.encode())
        answer = HTTPResponse(body, headers, status=200, preload_content=False, request_url=request.url)
        return self.build_response(request, answer)


def fill(cache: Path) -> None:
    """Write what the validator would fetch."""
    package = Path(importlib.util.find_spec("rocrate").origin).parent
    terms = {name: f"https://w3id.org/ro/terms/workflow-run#{name}" for name in TERMS}
    texts = {RO_CRATE: (package / "data/ro-crate.jsonld").read_text(), RUNS: json.dumps({"@context": terms})}
    session = requests_cache.CachedSession(str(cache), backend="sqlite", expire_after=-1)
    for address, text in texts.items():
        session.mount(address, Local(text))
        session.get(address)


def main() -> int:
    """Fill the cache, then validate with the network forbidden."""
    folder, out, level = sys.argv[1:]
    with tempfile.TemporaryDirectory() as place:
        cache = Path(place) / "cache"
        fill(cache)
        command = [Path(sys.executable).parent / "rocrate-validator", "-y", "validate", folder, "-l", level]
        command += [
            "-p",
            "provenance-run-crate-0.5",
            "-f",
            "json",
            "-o",
            out,
            "--offline",
            "--cache-path",
            cache,
        ]
        return subprocess.run(list(map(str, command)), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
