"""Sentences a second of every translator and of the store of answers: python -m benchmarks.translation.

Apertium is the real one. Google and LibreTranslate are asked over loopback of a server that answers at once, so
that what is measured is the client: the most that one job can ask. The ratio is that of one batch of Apertium to
a start of the command a sentence, which is what a user without this client would write.
Prints: bench translate_batch RATIO times-as-fast batches-against-a-command-a-sentence
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter

from benchmarks.material import wikipedia_sentences
from tests import fault_server
from tests.fault_server import FaultServer
from workflow_scripts.apis.store import AnswerStore
from workflow_scripts.apis.translators import Translator, TranslatorSlice, Web, translate_all, translator_of

CALLS = {
    "timeout_seconds": 60, "attempts": 1, "first_wait_seconds": 0, "longest_wait_seconds": 1, "per_second": None,
}  # fmt: skip
APERTIUM = {"engine": "apertium", "batch_sentences": 1000, "timeout_seconds": 300}


class _ToLoopback(HTTPAdapter):
    """Sends what is meant for Google to a server here."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url.rstrip("/")

    def send(self, request: requests.PreparedRequest, **settings: object) -> requests.Response:  # type: ignore[override]
        """Replace scheme and host."""
        request.url = self._url + urlsplit(str(request.url))._replace(scheme="", netloc="").geturl()
        return super().send(request, **settings)


def main() -> None:
    """Time each engine cold, the store warm, and the command a sentence."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=2000, help="sentences that Apertium translates")
    count = parser.parse_args().sentences
    sentences = wikipedia_sentences(count)
    if shutil.which("apertium"):
        block = TranslatorSlice.parse({"translator": APERTIUM}, "apertium").translator
        asked, kept = rates(translator_of(block, "apertium", "eng", "spa"), sentences)
        report("apertium", asked)
        report("kept answers", kept)
        one_by_one = rate(lambda: [command(sentence) for sentence in sentences[:20]], 20)
        report("apertium, a command a sentence", one_by_one)
        print(
            f"bench translate_batch {asked / one_by_one:.0f} times-as-fast batches-against-a-command-a-sentence"
        )
    with FaultServer(fault_server.libretranslate) as server:
        libre = {"engine": "libretranslate", "url": server.url, "key_variable": None, "calls": CALLS}
        block = TranslatorSlice.parse({"translator": libre}, "libretranslate").translator
        report(
            "libretranslate client",
            rates(translator_of(block, "libretranslate", "en", "es"), sentences[:500])[0],
        )
    with FaultServer(fault_server.google) as server:
        block = TranslatorSlice.parse(
            {"translator": {"engine": "google", "calls": CALLS}}, "google"
        ).translator
        translator = translator_of(block, "google", "en", "es")
        assert isinstance(translator, Web)
        translator.session.mount("https://translate.google.com/", _ToLoopback(server.url))
        report("google client", rates(translator, sentences[:500])[0])


def rates(translator: Translator, sentences: list[str]) -> tuple[float, float]:
    """Sentences a second, asked and found in the store."""
    with tempfile.TemporaryDirectory() as folder, AnswerStore(Path(folder, "answers.sqlite")) as store:

        def translate() -> None:
            translate_all(sentences, translator, store, place="bench", offline=False, refusals=0)

        return rate(translate, len(sentences)), rate(translate, len(sentences))


def rate(work: object, count: int) -> float:
    """How often a second ``work`` does what it does ``count`` times."""
    started = time.perf_counter()
    work()  # type: ignore[operator]
    return count / (time.perf_counter() - started)


def command(sentence: str) -> None:
    """Translate one sentence by a command of its own."""
    subprocess.run(["apertium", "-u", "eng-spa"], input=sentence.encode(), check=True, capture_output=True)


def report(name: str, sentences_per_second: float) -> None:
    """Print one line for people."""
    print(f"{name}: {sentences_per_second:,.0f} sentences/s", file=sys.stderr)


if __name__ == "__main__":
    main()
