"""A small mirror that speaks the Hugging Face Hub's protocol over files.

    FOLDER/models/TEAM/NAME/COMMIT/...      files of a model at a commit
    FOLDER/datasets/TEAM/NAME/COMMIT/...    of a dataset

The Hub's own client finds it by HF_ENDPOINT. It has what downloads at a commit ask for: what a repository is, its
tree, paths, and files with their hash and commit in the headers. Every request is a line of FOLDER/requests.log.
Text files count as large, and their hash is in the tree.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

API = re.compile(
    r"/api/(?P<kind>models|datasets)/(?P<repository>[^/]+/[^/]+)"
    r"(?:/(?P<what>revision|tree)(?:/(?P<revision>[^/]+)(?:/(?P<path>.+))?)?)?"
)
FILE = re.compile(
    r"/(?P<kind>datasets/)?(?P<repository>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)"
)


def commit(name: str) -> str:
    """What stands for a commit of the mirror: 40 digits."""
    return hashlib.sha1(name.encode()).hexdigest()


@cache
def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    root: Path

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if path == "/":
            self._send(b"a mirror", "text/plain")
        elif asked := API.fullmatch(path):
            self._api(asked)
        elif asked := FILE.fullmatch(path):
            self._file(asked)
        else:
            self._missing("EntryNotFound")

    do_HEAD = do_GET

    def log_message(self, _format: str, *_arguments: object) -> None:
        with (self.root / "requests.log").open("a") as file:
            file.write(f"{self.command} {self.path}\n")

    def _folder(self, kind: str, repository: str, revision: str | None) -> Path | None:
        """Files of a repository at a commit, the newest one for a branch; None after a definite no."""
        folder = self.root / kind / repository
        commits = sorted(folder.iterdir(), key=lambda one: one.stat().st_mtime) if folder.is_dir() else []
        if not commits:
            self._missing("RepoNotFound")
            return None
        if revision in (None, "main", "HEAD"):
            return commits[-1]
        if (folder / revision).is_dir():
            return folder / revision
        self._missing("RevisionNotFound")
        return None

    def _api(self, asked: re.Match[str]) -> None:
        folder = self._folder(asked["kind"], asked["repository"], asked["revision"])
        if folder is None:
            return
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        below = f"{asked['path']}/" if asked["path"] else ""
        entries = [self._entry(folder, file) for file in files]
        found: object = [entry for entry in entries if str(entry["path"]).startswith(below)]
        if asked["what"] != "tree":
            found = {
                "_id": commit(asked["repository"])[:24],
                "id": asked["repository"],
                "sha": folder.name,
                "siblings": [{"rfilename": entry["path"]} for entry in entries],
                "private": False, "gated": False, "disabled": False, "tags": [], "downloads": 0, "likes": 0,
                "lastModified": "2024-01-01T00:00:00.000Z", "createdAt": "2024-01-01T00:00:00.000Z",
            }  # fmt: skip
        self._send(json.dumps(found).encode(), "application/json")

    @staticmethod
    def _entry(folder: Path, file: Path) -> dict[str, object]:
        path = file.relative_to(folder).as_posix()
        size, sha256 = file.stat().st_size, _sha256(file)
        large = {"lfs": {"oid": sha256, "size": size, "pointerSize": 134}} if path.endswith(".txt") else {}
        return {"type": "file", "path": path, "size": size, "oid": sha256[:40], **large}

    def _file(self, asked: re.Match[str]) -> None:
        kind = "datasets" if asked["kind"] else "models"
        folder = self._folder(kind, asked["repository"], asked["revision"])
        if folder is None:
            return
        file = folder / asked["path"]
        if not file.is_file() or not file.resolve().is_file():
            self._missing("EntryNotFound")
            return
        headers = {"X-Repo-Commit": folder.name, "ETag": f'"{_sha256(file)}"'}
        self._send(file.read_bytes(), "application/octet-stream", **headers)

    def _missing(self, code: str) -> None:
        self._send(b"{}", "application/json", status=404, **{"X-Error-Code": code})

    def _send(self, content: bytes, kind: str, *, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


@contextmanager
def mirror(folder: Path) -> Iterator[str]:
    """A mirror of a folder that answers inside the block; gives its address, for HF_ENDPOINT."""
    handler = type("Handler", (_Handler,), {"root": folder})
    running = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=running.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{running.server_address[1]}"
    finally:
        running.shutdown()
        running.server_close()
        thread.join()
