"""Fixtures of engines: clients of servers on loopback, proper answers, and a function that asks."""

import sqlite3

import pytest
from deep_translator.constants import BASE_URLS

from tests.support import fault_server, toys
from tests.support.api_jobs import CALLS
from workflow_scripts.apis.asking import CircuitBreaker, collect_answers
from workflow_scripts.apis.ledger import Ledger
from workflow_scripts.apis.llm import Llm
from workflow_scripts.apis.translators import Direction, make_translator
from workflow_scripts.settings.apis import LlmBlock, TranslatorSlice

KEY = "sk-canary-8899aabbccdd"
HTML = "<html><body>Please log in to the network.</body></html>"
TEXTS = toys.sentences(8)
WELL = [fault_server.foreign(text, "es") for text in TEXTS]
PRICE = {"input_usd_per_million": 1, "output_usd_per_million": 2, "as_of": "2026-01-01"}
MODEL = {
    "model": "deepseek-chat", "model_ids": None, "key_variable": "TOY_KEY", "temperature": 1.0, "seed": 7,
    "max_completion_tokens": 64, "response_format": "text", "tokens_parameter": "max_tokens",
    "price": PRICE,
}  # fmt: skip
PROPER = {
    "libretranslate": fault_server.libretranslate,
    "google": fault_server.google,
    "model": fault_server.chat(lambda asked: fault_server.foreign(asked["messages"][0]["content"], "es")),
}


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "answers.sqlite") as opened:
        yield opened


@pytest.fixture
def make(ledger, monkeypatch):
    """A function that makes an engine's client of a server: a translator's, or that of a model itself."""
    monkeypatch.setenv("TOY_KEY", KEY)

    def client(name, server=None, languages=("en", "es"), sentences=1, **changes):
        url = server.url if server else "http://absent.example/"
        monkeypatch.setitem(BASE_URLS, "GOOGLE_TRANSLATE", url)
        calls = CALLS | {one: changes.pop(one) for one in CALLS.keys() & changes.keys()}
        if name == "model":
            here = {"base_url": f"{url}v1", "calls": calls}
            return Llm(LlmBlock.parse(MODEL | here | changes, "llms.toy"), "llms.toy", ledger, sentences)
        libre = {"url": url, "key_variable": "TOY_KEY", "calls": calls}
        blocks = {
            "apertium": {"batch_sentences": 100, "timeout_seconds": calls["timeout_seconds"]} | changes,
            "google": {"calls": calls},
            "libretranslate": libre | changes,
        }
        block = TranslatorSlice.parse({"translator": {"engine": name} | blocks[name]}, "x").translator
        return make_translator(block, Direction("llms.toy", *languages), ledger)

    return client


@pytest.fixture
def ask(ledger):
    """A function that gives the row of each text, asking an engine for what the ledger lacks."""

    def rows(engine, texts=TEXTS, *, offline=False):
        requests = [engine.request(text) for text in texts]
        ledger.read_only = offline
        found = collect_answers(requests, ledger, engine, CircuitBreaker(engine.path, 1000))
        return [found[request.key] for request in requests]

    return rows


def statuses(ledger):
    """The statuses of all rows."""
    with sqlite3.connect(ledger.path) as database:
        return [status for (status,) in database.execute("SELECT status FROM requests")]


def forget(ledger, which="1"):
    """Take rows out, by a condition of SQL."""
    with sqlite3.connect(ledger.path) as database:
        database.execute(f"DELETE FROM requests WHERE {which}")


def answers(rows):
    """The answers of usable rows, and the status of others."""
    return [row.answer if row.status == "usable" else row.status for row in rows]
