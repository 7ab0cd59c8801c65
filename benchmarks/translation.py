"""Sentences a second of translators and of the ledger, and a real round trip: python -m benchmarks.translation.

Apertium is the real one: a round trip of sentences of Wikipedia, with the number of each outcome. LibreTranslate is
asked over loopback of a server that takes 50 ms, in a process of its own: by one worker, by sixteen, and by sixteen
with lists. The ratios are those of the workers, and of the ledger to asking.
Prints: bench translate_workers RATIO times-as-fast sixteen-workers-against-one, and so on
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.material import wikipedia_sentences
from workflow_scripts.apis.ledger import Ledger, Row
from workflow_scripts.apis.translators import Direction, TranslatorSlice, translate_all, translator_of
from workflow_scripts.data.round_trip_settings import Limits
from workflow_scripts.data.round_trips import outcome_of, usable_answers

CALLS = {
    "timeout_seconds": 60, "attempts": 1, "first_wait_seconds": 0, "longest_wait_seconds": 1, "workers": 1,
    "per_second": None, "per_day": None,
}  # fmt: skip
APERTIUM = {"engine": "apertium", "batch_sentences": 500, "timeout_seconds": 300}
LIMITS = Limits(shards=1, untranslated_share=0.8, shortened_ratio=0.5, refused_share=1 - 1e-9)
SERVER = """
import sys, time
from tests import fault_server
from tests.fault_server import FaultServer

def slow(asked):
    time.sleep(0.05)
    return fault_server.libretranslate(asked)

with FaultServer(slow) as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""


def main() -> None:
    """Time asking and finding, then translate with Apertium there and back."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=2000, help="sentences of the real round trip")
    parser.add_argument("--requests", type=int, default=800, help="requests to the server that takes 50 ms")
    arguments = parser.parse_args()
    sentences = wikipedia_sentences(max(arguments.sentences, arguments.requests))
    with server() as url:
        asked = sentences[: arguments.requests]
        alone, kept = libretranslate(url, asked, workers=1)
        together, _ = libretranslate(url, asked, workers=16)
        listed, _ = libretranslate(url, asked, workers=16, batch=16)
    count = len(asked)
    say(
        f"{count} requests of 50 ms: {alone:.1f} s by one worker, {together:.1f} s by 16, {listed:.1f} s with lists"
    )
    say(f"{count} kept answers: {kept:.3f} s")
    print(f"bench translate_workers {alone / together:.1f} times-as-fast sixteen-workers-against-one")
    print(f"bench translate_lists {alone / listed:.1f} times-as-fast sixteen-workers-with-lists-against-one")
    print(f"bench translate_kept {alone / kept:.0f} times-as-fast answers-kept-against-asked")
    if shutil.which("apertium"):
        for via in ("spa", "cat"):
            round_trip(sentences[: arguments.sentences], via)


def libretranslate(url: str, sentences: list[str], *, workers: int, batch: int = 1) -> tuple[float, float]:
    """Seconds of asking for all sentences, and of finding their answers in the ledger."""
    settings: dict[str, Any] = {"engine": "libretranslate", "url": url, "key_variable": None}
    settings |= {"batch_sentences": batch, "calls": CALLS | {"workers": workers}}
    block = TranslatorSlice.parse({"translator": settings}, "bench").translator
    with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder, "answers.sqlite")) as ledger:
        translator = translator_of(block, Direction(place="bench", source="en", target="es"), ledger)

        def translate() -> None:
            translate_all(sentences, translator, ledger, offline=False, most_without=len(sentences))

        return seconds(translate), seconds(translate)


def round_trip(sentences: list[str], via: str) -> None:
    """Translate by Apertium there and back; print times, outcomes and size of the ledger."""
    block = TranslatorSlice.parse({"translator": APERTIUM}, "bench").translator
    with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder, "answers.sqlite")) as ledger:
        there = Direction(place="bench", source="eng", target=via)
        legs: list[list[Row | None]] = []
        texts: list[str | None] = list(sentences)
        began = time.perf_counter()
        for direction in (there, there.back):
            rows = translate_all(
                texts,
                translator_of(block, direction, ledger),
                ledger,
                offline=False,
                most_without=len(sentences),
            )
            legs.append(rows)
            texts = usable_answers(rows)
        took = time.perf_counter() - began
        outcomes = Counter(
            outcome_of(sentence, pivot, back, LIMITS)
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
    """The URL of a server that takes 50 ms a request."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout and process.stdin
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait()


def seconds(work: Callable[[], None]) -> float:
    """How long ``work`` takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def say(line: str) -> None:
    """Print one line for people."""
    print(line, file=sys.stderr)


if __name__ == "__main__":
    main()
