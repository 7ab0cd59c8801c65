"""Errors for HTTP statuses, and messages without keys."""

import re

import pytest

from workflow_scripts.apis.asking import (
    NoAnswer,
    Server,
    Transient,
    key_from,
    raise_for_status,
    redacted,
    without_keys,
)
from workflow_scripts.errors import ApiError

KEY = "sk-canary-0123456789"
SENT_ON = f"http://me:{KEY}@elsewhere.example:81/{KEY}?api_key={KEY}#{KEY}"
SHOWN = r"http://me:\[key\]@elsewhere\.example:81/\[key\]\?api_key=\[key\]#\[key\]"
"""An address that a server redirects to, and what is shown of it."""
SERVER = Server("llms.toy", "http://127.0.0.1", ("base_url", "model"), "TOY_KEY")
MEANINGS = [
    ((401, 403), {}, "said", ApiError, "The key is wrong or missing"),
    ((402,), {}, "said", ApiError, "quota is exhausted"),
    ((404, 405, 410), {}, "said", ApiError, r"HTTP \d+ \(said\)\. The server has no such address"),
    ((408, 429, 500, 502, 503, 504), {}, "said", Transient, r"HTTP \d+"),
    ((400, 413, 414, 422), {}, "said", NoAnswer, "said"),
    ((429,), {"Retry-After": "1"}, "insufficient_quota: you exceeded", ApiError, "quota is exhausted"),
    ((429,), {"Retry-After": "1"}, "Insufficient Balance", ApiError, "quota is exhausted"),
    ((301, 302, 303, 307, 308), {"Location": SENT_ON}, "", ApiError,
     rf"^llms\.toy: HTTP \d+: redirected to {SHOWN}, which is not followed\. Set the address to the one that answers\.$"),
]  # fmt: skip


@pytest.mark.parametrize(("statuses", "headers", "message", "kind", "found"), MEANINGS)
def test_a_status_ends_the_job_or_is_retried(statuses, headers, message, kind, found):
    """A status ends the job, is retried or concerns one request."""
    for status in statuses:
        with pytest.raises(kind, match=found):
            raise_for_status(status, headers, message, SERVER)


@pytest.mark.parametrize(
    ("status", "message", "changes", "found"),
    [
        (401, "no", {}, "The key is wrong or missing. Correct its environment variable TOY_KEY."),
        (403, "Too many request limits violations", {}, "The server limits requests. Reduce per_second"),
        (403, "Too many requests", {"key_variable": None}, "The server limits requests. Reduce per_second"),
        (403, "Get a key", {"key_variable": None}, "The server refuses requests without a key. Set key_variable"),
        (403, "", {"key_variable": None, "address_keys": ()}, "refuses requests from this machine. Run again later"),
        (404, "", {}, "no such address or model: check base_url and model."),
        (404, "", {"address_keys": ("url",)}, "no such address: check url."),
        (404, "", {"address_keys": ()}, "no such address: use another engine."),
    ],
)  # fmt: skip
def test_a_message_names_the_settings_of_its_engine(status, message, changes, found):
    with pytest.raises(ApiError, match=re.escape(found)) as stopped:
        raise_for_status(status, {}, message, SERVER._replace(**changes))
    assert str(stopped.value).startswith(f"llms.toy: HTTP {status}")


DATES = {"Date": "Sun, 06 Nov 1994 08:49:37 GMT"}
WAITS = [
    ({"Retry-After": "2.5"}, 2.5), ({"Retry-After": " 3"}, 3), ({"Retry-After": "-3"}, None), ({"Retry-After": "soon"}, None), ({}, None),
    (DATES | {"Retry-After": "Sun, 06 Nov 1994 08:50:00 GMT"}, 23), (DATES | {"Retry-After": "Sun Nov  6 08:50:00 1994"}, 23),
    (DATES | {"Retry-After": "Sunday, 06-Nov-94 08:50:00 GMT"}, 23), (DATES | {"Retry-After": "Sun, 06 Nov 1994 08:00:00 GMT"}, 0),
    ({"Date": "none", "Retry-After": "Sun, 06 Nov 1994 08:00:00 GMT"}, 0),
]  # fmt: skip


@pytest.mark.parametrize(("headers", "wait"), WAITS)
def test_retry_after_is_read_as_seconds_or_as_a_date(headers, wait):
    with pytest.raises(Transient) as failure:
        raise_for_status(429, headers, "", SERVER)
    assert failure.value.retry_after == wait


def test_a_key_is_removed_whatever_its_variable_is_called(monkeypatch):
    """Look-alikes of keys are removed from messages; in an answer they may be words (key differences), and stay."""
    assert KEY not in redacted(f"Incorrect API key provided: {KEY}")
    monkeypatch.setenv("TOY_ENTRY", " q/w+e-rty\n")
    assert without_keys("q/w+e-rty") == "q/w+e-rty"
    assert key_from("TOY_ENTRY", "llms.toy") == "q/w+e-rty"
    said = "key differences: q/w+e-rty, q%2Fw%2Be-rty, q%2Fw+e"
    assert without_keys(said) == "key differences: [key], [key], q%2Fw+e"
    assert redacted("two\nlines with q/w+e-rty") == "two lines with [key]"
