"""What an error of the Hub's libraries means: not there, not reached, or a mistake of ours."""

import errno

import httpx2
import pytest
from huggingface_hub import constants, errors

from workflow_scripts.data import hub
from workflow_scripts.errors import DataError, MissingError, UnreachableError

COMMIT = "0" * 40


def answer(kind, status):
    request = httpx2.Request("GET", "https://huggingface.co/api/datasets/team/toy")
    return kind(f"{status} for this url.\nA second line.", response=httpx2.Response(status, request=request))


def not_reached():
    return httpx2.ConnectError("[Errno -2] Name or service not known")


def behind(error, cause):
    error.__cause__ = cause
    return error


UNREACHED = [
    not_reached(),
    httpx2.ReadTimeout("timed out"),
    errors.OfflineModeIsEnabled("offline mode is enabled"),
    errors.LocalEntryNotFoundError("cannot find the file in the cache"),
    behind(errors.LocalEntryNotFoundError("not cached"), answer(errors.HfHubHTTPError, 503)),
    behind(FileNotFoundError("Couldn't find any data file"), behind(ValueError("hidden"), not_reached())),
    ConnectionError("Couldn't reach 'team/toy' on the Hub (LocalEntryNotFoundError)"),
    ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
    answer(errors.HfHubHTTPError, 503),
    answer(errors.HfHubHTTPError, 429),
]
NOT_ALLOWED = [
    answer(errors.RepositoryNotFoundError, 401),
    answer(errors.GatedRepoError, 403),
    answer(errors.HfHubHTTPError, 403),
    FileNotFoundError("Dataset 'team/toy' is a gated dataset on the Hub."),
]
NOT_THERE = [
    answer(errors.RepositoryNotFoundError, 404),
    answer(errors.RevisionNotFoundError, 404),
    answer(errors.RemoteEntryNotFoundError, 404),
    FileNotFoundError("The directory at hf://datasets/team/toy doesn't contain any data files"),
]


def verdict(error):
    with pytest.raises(DataError) as found, hub.reaching("hub:team/toy"):
        raise error
    assert str(found.value).startswith(f"hub:team/toy: {type(error).__name__}: ")
    assert "\n" not in str(found.value)
    return found.value


@pytest.mark.parametrize("error", UNREACHED, ids=repr)
def test_a_hub_that_does_not_answer_says_nothing(error):
    assert isinstance(verdict(error), UnreachableError)


@pytest.mark.parametrize("error", NOT_ALLOWED, ids=repr)
def test_what_may_not_be_read_is_not_missing(error):
    found = verdict(error)
    assert isinstance(found, UnreachableError) and "not allowed" in str(found)


@pytest.mark.parametrize("error", NOT_THERE, ids=repr)
def test_what_the_hub_denies_is_missing(error):
    assert isinstance(verdict(error), MissingError)


def test_a_request_that_makes_no_sense_is_a_mistake_of_the_block():
    assert type(verdict(ValueError("Unknown split 'tset'"))) is DataError


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_a_full_disk_or_a_locked_cache_is_not_the_hubs_fault(number):
    with pytest.raises(OSError, match="cache") as found, hub.reaching("hub:team/toy"):
        raise OSError(number, "cache")
    assert not isinstance(found.value, DataError)


@pytest.mark.parametrize(("failures", "attempts"), [(1, 2), (3, 4), (9, 4)])
def test_a_download_is_tried_again_while_the_hub_is_not_reached(monkeypatch, failures, attempts):
    monkeypatch.setattr(hub, "_FIRST_WAIT_SECONDS", 0.001)
    calls = []

    def get():
        calls.append(1)
        with hub.reaching("hub:team/toy"):
            if len(calls) <= failures:
                raise not_reached()
            return "folder"

    if failures < 4:
        assert hub.persistently(get) == "folder"
    else:
        with pytest.raises(UnreachableError, match="not reached"):
            hub.persistently(get)
    assert len(calls) == attempts


def test_what_is_not_there_or_not_allowed_is_asked_for_once(monkeypatch):
    for status, kind in ((404, MissingError), (401, UnreachableError)):
        calls = []

        def get(status=status, calls=calls):
            calls.append(1)
            with hub.reaching("hub:team/toy"):
                raise answer(errors.RevisionNotFoundError if status == 404 else errors.HfHubHTTPError, status)

        with pytest.raises(kind):
            hub.persistently(get)
        assert len(calls) == 1


def test_what_lies_behind_an_error_of_the_cache_is_named():
    with (
        pytest.raises(
            UnreachableError, match=r"LocalEntryNotFoundError: .*, because of .*No space on the proxy"
        ),
        hub.reaching("hub:team/toy"),
    ):
        try:
            raise ConnectionError("No space on the proxy")
        except ConnectionError as error:
            raise errors.LocalEntryNotFoundError("not in the cache") from error


@pytest.fixture
def server():
    """A Hub on this machine that answers with one status."""
    import threading
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Handler(BaseHTTPRequestHandler):
        status = 200

        def do_HEAD(self):
            self.send_response(self.status)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(("status", "answers"), [(200, True), (404, True), (503, False)])
def test_whether_the_hub_answers_at_all(server, monkeypatch, status, answers):
    monkeypatch.setattr(server.RequestHandlerClass, "status", status)
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    assert hub.answers.__wrapped__() is answers
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert hub.answers.__wrapped__() is False


def test_a_hub_that_refuses_does_not_answer(monkeypatch):
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert hub.answers.__wrapped__() is False
