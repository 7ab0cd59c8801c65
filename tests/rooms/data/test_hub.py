"""Errors of the Hub's libraries: missing, not reached, or not allowed; and reading without a network."""

import errno

import httpx2
import pytest
from huggingface_hub import constants, errors

from tests.support.fault_server import FaultServer, fault
from workflow_scripts.data import hub
from workflow_scripts.errors import DataError, MissingError, UnreachableError


def answer(kind, status):
    request = httpx2.Request("GET", "https://huggingface.co/api/datasets/team/toy")
    return kind(f"{status} for this url.\nA second line.", response=httpx2.Response(status, request=request))


def behind(error, cause):
    error.__cause__ = cause
    return error


NOT_REACHED, NOT_ALLOWED = (UnreachableError, r"\(not reached\)$"), (UnreachableError, r"\(not allowed: ask")
MEANINGS = [
    (httpx2.ConnectError("[Errno -2] Name or service not known"), *NOT_REACHED),
    (httpx2.ReadTimeout("timed out"), *NOT_REACHED),
    (errors.OfflineModeIsEnabled("offline mode is enabled"), *NOT_REACHED),
    (errors.LocalEntryNotFoundError("cannot find the file in the cache"), *NOT_REACHED),
    (behind(errors.LocalEntryNotFoundError("not cached"), answer(errors.HfHubHTTPError, 503)), *NOT_REACHED),
    (behind(errors.LocalEntryNotFoundError("not cached"), ConnectionError("No proxy")), UnreachableError, "No proxy"),
    (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), *NOT_REACHED),
    (answer(errors.HfHubHTTPError, 429), *NOT_REACHED),
    (answer(errors.RepositoryNotFoundError, 401), UnreachableError, r"\(not allowed: ask.*; or correct its name\)$"),
    (answer(errors.GatedRepoError, 403), *NOT_ALLOWED),
    (answer(errors.RepositoryNotFoundError, 404), MissingError, "404 for this url$"),
    (answer(errors.RevisionNotFoundError, 404), MissingError, "404 for this url$"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "kind", "says"), MEANINGS, ids=repr)
def test_an_error_is_missing_unreachable_or_forbidden(error, kind, says):
    with pytest.raises(kind, match=rf"^hub:team/toy: \w+: [^\n]*{says}"), hub.reaching("hub:team/toy"):
        raise error


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_a_full_disk_or_a_locked_cache_is_not_the_hubs_fault(number):
    with pytest.raises(OSError, match="cache") as found, hub.reaching("hub:team/toy"):
        raise OSError(number, "cache")
    assert not isinstance(found.value, DataError)


@pytest.mark.parametrize(("status", "answers"), [(200, True), (404, True), (503, False)])
def test_whether_the_hub_answers_at_all(monkeypatch, status, answers):
    with FaultServer(lambda asked: "", [fault(status)]) as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        assert hub.answers.__wrapped__() is answers  # each process asks once
        with monkeypatch.context() as offline:
            offline.setattr(constants, "HF_HUB_OFFLINE", True)
            assert hub.answers.__wrapped__() is False
    assert hub.answers.__wrapped__() is False  # nobody listens any more


def test_a_pinned_commit_is_read_again_offline(tmp_path, monkeypatch):
    """The client by itself would take the newest copy, after half a minute."""
    for name, value in (("HF_HUB_CACHE", str(tmp_path)), ("ENDPOINT", "http://127.0.0.1:9")):
        monkeypatch.setattr(constants, name, value)
    old, new = "0" * 40, "1" * 40
    kept = tmp_path / "datasets--team--toy/snapshots" / old
    kept.mkdir(parents=True)
    (kept / "test.jsonl").touch()
    assert hub.download("team/toy", old, "dataset") == kept
    with pytest.raises(UnreachableError, match=rf"^hub:team/toy@{new}: [^\n]*\(not reached\)$"):
        hub.download("team/toy", new, "dataset")
