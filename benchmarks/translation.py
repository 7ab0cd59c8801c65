"""Translations with one worker and with sixteen, from a server that takes 50 ms per request.

The server uses LibreTranslate's protocol over loopback, in a separate process, so wall-clock time is measured. With
``--profile``: round trips of real sentences through Apertium, with the number of each outcome.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.harness import Measured, Timing, ratios
from benchmarks.material import wikipedia_sentences
from workflow_scripts.apis.ledger import Ledger, Row
from workflow_scripts.apis.translators import Direction, make_translator, translate_all
from workflow_scripts.data.round_trips import classify_trip, usable_answers
from workflow_scripts.settings.apis import TranslatorSlice
from workflow_scripts.settings.corpora import Limits

CODE = ("workflow_scripts/apis",)
CALLS = {
    "timeout_seconds": 60, "attempts": 1, "first_wait_seconds": 0, "longest_wait_seconds": 1, "workers": 1,
    "per_second": None, "per_day": None,
}  # fmt: skip
APERTIUM = {"engine": "apertium", "batch_sentences": 500, "timeout_seconds": 300}
LIMITS = Limits(shards=1, untranslated_share=0.8, shortened_ratio=0.5, refused_share=1 - 1e-9)
SERVER = """
import sys, time
from tests.support import fault_server
from tests.support.fault_server import FaultServer

def slow(asked):
    time.sleep(0.05)
    return fault_server.libretranslate(asked)

with FaultServer(slow) as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""


def measure(timing: Timing) -> Iterator[Measured]:
    """Yield the ratio of translating the same sentences with one worker and with sixteen."""
    sentences = list(dict.fromkeys(wikipedia_sentences(16 if timing.small else 200)))
    with server() as url:
        ways = {
            "one": lambda: libretranslate(url, sentences, workers=1),
            "sixteen": lambda: libretranslate(url, sentences, workers=16),
        }
        taken = timing.interleaved(ways, clock="wall")
    speedups = ratios(taken, "one", "sixteen")
    yield Measured("translate_sixteen", speedups, "times-as-fast", "sixteen-workers-against-one", "wall")


def explain(timing: Timing) -> None:
    """Print times, outcomes and size of the ledger of round trips of real sentences through Apertium."""
    if not shutil.which("apertium"):
        say("Apertium is not installed.")
        return
    sentences = wikipedia_sentences(20 if timing.small else 2000)
    for via in ("spa", "cat"):
        round_trip(sentences, via)


def libretranslate(url: str, sentences: list[str], *, workers: int) -> None:
    """Translate all sentences, with a new ledger."""
    settings: dict[str, Any] = {"engine": "libretranslate", "url": url, "key_variable": None}
    settings["calls"] = CALLS | {"workers": workers}
    block = TranslatorSlice.parse({"translator": settings}, "bench").translator
    with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder, "answers.sqlite")) as ledger:
        translator = make_translator(block, Direction(path="bench", source="en", target="es"), ledger)
        translate_all(sentences, translator, ledger, max_unanswered=len(sentences))


def round_trip(sentences: list[str], via: str) -> None:
    """Print times, outcomes and size of the ledger of round trips through Apertium."""
    block = TranslatorSlice.parse({"translator": APERTIUM}, "bench").translator
    with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder, "answers.sqlite")) as ledger:
        there = Direction(path="bench", source="eng", target=via)
        legs: list[list[Row | None]] = []
        texts: list[str | None] = list(sentences)
        began = time.perf_counter()
        for direction in (there, there.back):
            rows = translate_all(
                texts,
                make_translator(block, direction, ledger),
                ledger,
                max_unanswered=len(sentences),
            )
            legs.append(rows)
            texts = usable_answers(rows)
        took = time.perf_counter() - began
        outcomes = Counter(
            classify_trip(sentence, pivot, back, LIMITS)
            for sentence, pivot, back in zip(sentences, *legs, strict=True)
            if pivot is not None
        )
        size = Path(folder, "answers.sqlite").stat().st_size / 1e6
        shown = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
        done = f"{len(sentences)} sentences in {took:.0f} s"
        say(f"apertium, English to {via} and back: {done}; {shown}; {size:.1f} MB")
    whole = subprocess.run(
        ["apertium", "-u", f"eng-{via}"],
        input="\n".join(sentences),
        text=True,
        capture_output=True,
        check=True,
    )
    texts_of_one = [" ".join(line.split()) for line in whole.stdout.split("\n")]
    other = sum(a != b for a, b in zip(usable_answers(legs[0]), texts_of_one, strict=False) if a is not None)
    say(f"the command, all sentences as one text: {other} of {len(sentences)} translations differ")


@contextmanager
def server() -> Iterator[str]:
    """Yield the URL of a server that takes 50 ms per request."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdin
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait()


def say(line: str) -> None:
    """Print a line to standard error."""
    print(line, file=sys.stderr)
