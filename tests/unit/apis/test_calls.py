import itertools
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace

import pytest

from workflow_scripts.apis.calls import (
    Caller,
    Refused,
    Transient,
    Unusable,
    key_from,
    raise_for_status,
    redacted,
    without_keys,
)
from workflow_scripts.errors import ApiError
from workflow_scripts.settings.calls import Calls

CALLS = {
    "timeout_seconds": 5, "attempts": 3, "first_wait_seconds": 0.001, "longest_wait_seconds": 0.5, "workers": 1,
    "per_second": None, "per_day": None,
}  # fmt: skip
KEY = "sk-canary-0123456789"


def in_turn(turns):
    """A ledger that has each request wait as long as told."""
    return SimpleNamespace(turn=lambda *_provider: next(turns))


def caller(**changes):
    return Caller(Calls.parse(CALLS | changes, "calls"), "llms.toy", in_turn(itertools.repeat(0.0)))


class Script:
    """A call that fails as told, then answers 42."""

    def __init__(self, *failures):
        self.failures, self.calls = list(failures), 0

    def __call__(self):
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        return 42


def test_a_failure_that_passes_is_asked_again():
    ask = Script(Transient("HTTP 503"), Transient("ReadTimeout"))
    assert caller().call(ask) == 42
    assert ask.calls == 3


def test_attempts_are_bounded_and_the_line_says_how_many():
    ask = Script(*[Transient("HTTP 503")] * 9)
    with pytest.raises(
        ApiError, match=r"llms\.toy: HTTP 503, 3 attempts in a row\. Finished answers are kept"
    ):
        caller().call(ask)
    assert ask.calls == 3


@pytest.mark.parametrize(
    "failure",
    [Refused("too long"), Unusable("no choices"), ApiError("wrong key"), KeyError("a bug"), TimeoutError()],
)
def test_nothing_else_is_asked_again(failure):
    ask = Script(failure)
    with pytest.raises(type(failure)):
        caller().call(ask)
    assert ask.calls == 1


def test_an_answer_without_an_end_ends_the_job(monkeypatch):
    """The turn that a request waits for is not counted; the first attempt is."""
    monkeypatch.setattr(Calls, "longest_seconds", 0.2)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    limited = caller()
    never = threading.Event()
    attempts = iter([Transient("HTTP 503")])

    def ask():
        for failure in attempts:
            raise failure
        return never.wait()

    with pytest.raises(
        ApiError, match=r"llms\.toy: no whole answer within 0\.2 s, .* Finished answers are kept"
    ):
        limited.call(ask)
    never.set()


@pytest.fixture
def waits(monkeypatch):
    """How long a call would have waited, wait by wait."""
    waited = []
    monkeypatch.setattr("time.sleep", waited.append)
    return waited


def test_a_server_that_says_when_is_asked_then(waits):
    caller().call(Script(Transient("HTTP 429", retry_after=0.2)))
    assert waits == [0, 0.2, 0]


def test_a_server_that_asks_for_too_much_patience_ends_the_job():
    with pytest.raises(ApiError, match=r"asks to wait 3600 s, longer than longest_wait_seconds 0\.5"):
        caller().call(Script(Transient("HTTP 429", retry_after=3600)))


def test_every_attempt_waits_for_its_turn(waits):
    turns = iter([0.0, 0.1, 0.2])
    limited = Caller(Calls.parse(CALLS, "calls"), "llms.toy", in_turn(turns))
    limited.call(Script(Transient("HTTP 503"), Transient("HTTP 503")))
    assert waits[::2] == [0.0, 0.1, 0.2]  # between them, the waits after a failure


MEANINGS = {
    (401, 403): (ApiError, "The key is wrong or missing"),
    (402,): (ApiError, "quota is used up"),
    (404, 405, 410): (ApiError, r"HTTP \d+ \(said\)\. There is nothing to ask"),
    (408, 429, 500, 502, 503, 504): (Transient, r"HTTP \d+"),
    (400, 413, 414, 422): (Refused, "said"),
}


@pytest.mark.parametrize("status", [status for statuses in MEANINGS for status in statuses])
def test_a_status_ends_the_job_may_pass_or_concerns_one_request(status):
    (kind, message) = next(meaning for statuses, meaning in MEANINGS.items() if status in statuses)
    with pytest.raises(kind, match=message):
        raise_for_status(status, {}, "said", "llms.toy")


@pytest.mark.parametrize("message", ["insufficient_quota: you exceeded", "Insufficient Balance"])
def test_an_empty_quota_is_no_busy_server(message):
    with pytest.raises(ApiError, match="quota is used up"):
        raise_for_status(429, {"Retry-After": "1"}, message, "llms.toy")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("https://elsewhere.example/", "https://elsewhere.example"),
        (f"http://me:{KEY}@elsewhere.example:81/{KEY}?api_key={KEY}#{KEY}", "http://elsewhere.example"),
        (f"http://elsewhere.example?api_key={KEY}", "http://elsewhere.example"),
        (f"/login?api_key={KEY}", "another path"),
        (f"//elsewhere.example/{KEY}", "another path"),
        ("", "another path"),
    ],
)
def test_a_redirection_ends_the_job_and_shows_scheme_and_host_alone(status, location, shown):
    with pytest.raises(ApiError) as stopped:
        raise_for_status(status, {"Location": location}, "", "llms.toy")
    assert str(stopped.value) == (
        f"llms.toy: HTTP {status}: sent on to {shown}, where nothing is sent. Write the address that answers."
    )


def test_what_a_page_says_is_shown_without_its_markup():
    page = "<!DOCTYPE html><html><style>p {color: red}</style><h1>Not found</h1>\n<p>Nothing here.</p></html>"
    assert redacted(page) == "Not found Nothing here."
    assert redacted("x" * 500).endswith("...")


def test_retry_after_is_read_as_seconds_and_as_a_date():
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    for header, least, most in (("2.5", 2.5, 2.5), (soon, 25, 31), ("-3", 0, 0)):
        with pytest.raises(Transient) as failure:
            raise_for_status(429, {"Retry-After": header}, "", "llms.toy")
        assert least <= failure.value.retry_after <= most
    with pytest.raises(Transient) as failure:
        raise_for_status(429, {"Retry-After": "soon"}, "", "llms.toy")
    assert failure.value.retry_after is None


def test_a_key_that_a_server_echoes_is_taken_out_whatever_its_variable_is_called(monkeypatch):
    assert KEY not in redacted(f"Incorrect API key provided: {KEY}")  # it looks like one
    monkeypatch.setenv("TOY_ENTRY", " q/w+e-rty\n")
    assert without_keys("q/w+e-rty") == "q/w+e-rty"
    assert key_from("TOY_ENTRY", "llms.toy") == "q/w+e-rty"
    assert without_keys("k=q/w+e-rty, k=q%2Fw%2Be-rty, k=q%2Fw+e") == "k=[key], k=[key], k=q%2Fw+e"
    assert redacted("two\nlines with q/w+e-rty") == "two lines with [key]"


def test_a_missing_key_is_named_by_its_variable(monkeypatch):
    monkeypatch.delenv("TOY_KEY", raising=False)
    with pytest.raises(ApiError, match=r"llms\.toy: environment variable TOY_KEY is not set"):
        key_from("TOY_KEY", "llms.toy")
    assert key_from(None, "llms.toy") is None
