"""A page as headless Chromium shows it: what a script found there, which is put into a copy of the page.

Nothing but Chromium itself is needed: it prints the page as its scripts leave it (``--dump-dom``).
"""

import hashlib
import html
import json
import os
import re
import shutil
import subprocess
from base64 import b64encode
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WHY_NOT = "no Chromium on this machine; Debian's package is chromium"
QUIET = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
QUIET += ["--disable-component-update", "--disable-sync", "--hide-scrollbars", "--virtual-time-budget=2000"]
SCHEMES = {
    "light": "--blink-settings=preferredColorScheme=1",
    "dark": "--blink-settings=preferredColorScheme=0",
}

_FRAME = """<!doctype html><meta name="color-scheme" content="light dark">
<iframe src="examined.html" style="border: 0; width: {width}px; height: 900px"></iframe>
<script>addEventListener("message", (found) => document.body.append(Object.assign(document.createElement("pre"),
{{ id: "findings", textContent: found.data }})));</script>
"""  # a window cannot be as narrow as a telephone
FIND = (Path(__file__).parent / "chromium.js").read_text("utf-8")


def dom_of(page: Path, folder: Path, *arguments: str) -> tuple[str, list[str]]:
    """The page after a browser has run whatever runs in it, and what went to its console."""
    command = [str(CHROMIUM), "--headless", "--no-sandbox", *QUIET, f"--user-data-dir={folder}/profile"]
    shown = subprocess.run(
        [*command, "--enable-logging=stderr", *arguments, "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, "HOME": str(folder)},
    )
    return shown.stdout, [line for line in shown.stderr.splitlines() if "CONSOLE" in line]


def examine(page: Path, folder: Path, width: int, scheme: str) -> dict[str, Any]:
    """Findings of ``chromium.js`` in a page of this width and colour scheme."""
    text = page.read_text("utf-8")
    digest = b64encode(hashlib.sha256(FIND.encode()).digest()).decode()
    policy = text.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    assert policy != text, "the page has no policy for scripts"
    before, closing, after = policy.rpartition("</body>")
    copy = folder / "examined.html"
    copy.write_text(f"{before}<script>{FIND}</script>{closing}{after}", "utf-8")
    frame = folder / "frame.html"
    frame.write_text(_FRAME.format(width=width), "utf-8")
    dom, console = dom_of(frame, folder, "--window-size=1400,1000", SCHEMES[scheme])
    (found,) = re.findall(r'<pre id="findings">(.*?)</pre>', dom, re.DOTALL)
    findings: dict[str, Any] = json.loads(html.unescape(found))
    return findings | {"console": console}
