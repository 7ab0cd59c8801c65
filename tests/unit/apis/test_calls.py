from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from workflow_scripts.apis.calls import (
    NoAnswer,
    Transient,
    key_from,
    raise_for_status,
    redacted,
    without_keys,
)
from workflow_scripts.errors import ApiError

KEY = "sk-canary-0123456789"
MEANINGS = {
    (401, 403): (ApiError, "The key is wrong or missing"),
    (402,): (ApiError, "quota is used up"),
    (404, 405, 410): (ApiError, r"HTTP \d+ \(said\)\. There is nothing to ask"),
    (408, 429, 500, 502, 503, 504): (Transient, r"HTTP \d+"),
    (400, 413, 414, 422): (NoAnswer, "said"),
}


@pytest.mark.parametrize(("statuses", "meaning"), MEANINGS.items())
def test_a_status_ends_the_job_may_pass_or_concerns_one_request(statuses, meaning):
    for status in statuses:
        with pytest.raises(meaning[0], match=meaning[1]):
            raise_for_status(status, {}, "said", "llms.toy")


@pytest.mark.parametrize("message", ["insufficient_quota: you exceeded", "Insufficient Balance"])
def test_an_empty_quota_is_no_busy_server(message):
    with pytest.raises(ApiError, match="quota is used up"):
        raise_for_status(429, {"Retry-After": "1"}, message, "llms.toy")


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
def test_a_redirection_ends_the_job_and_shows_scheme_and_host_alone(location, shown):
    for status in (301, 302, 303, 307, 308):
        with pytest.raises(ApiError) as stopped:
            raise_for_status(status, {"Location": location}, "", "llms.toy")
        found = f"llms.toy: HTTP {status}: sent on to {shown}, where nothing is sent. Write the address that answers."
        assert str(stopped.value) == found


def test_what_a_page_says_is_shown_without_its_markup():
    page = "<!DOCTYPE html><html><style>p {color: red}</style><h1>Not found</h1>\n<p>Nothing here.</p></html>"
    assert redacted(page) == "Not found Nothing here."
    assert redacted("x" * 500).endswith("...")


def test_retry_after_is_read_as_seconds_and_as_a_date():
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    for header, wait in (("2.5", 2.5), (soon, pytest.approx(28, abs=3)), ("-3", 0), ("soon", None)):
        with pytest.raises(Transient) as failure:
            raise_for_status(429, {"Retry-After": header}, "", "llms.toy")
        assert failure.value.retry_after == wait


def test_a_key_that_a_server_echoes_is_taken_out_whatever_its_variable_is_called(monkeypatch):
    assert KEY not in redacted(f"Incorrect API key provided: {KEY}")  # it looks like one
    monkeypatch.setenv("TOY_ENTRY", " q/w+e-rty\n")
    assert without_keys("q/w+e-rty") == "q/w+e-rty"
    assert key_from("TOY_ENTRY", "llms.toy") == "q/w+e-rty"
    assert without_keys("k=q/w+e-rty, k=q%2Fw%2Be-rty, k=q%2Fw+e") == "k=[key], k=[key], k=q%2Fw+e"
    assert redacted("two\nlines with q/w+e-rty") == "two lines with [key]"
