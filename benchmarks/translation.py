"""Apertium asked in batches through the store of answers, against a start of the command a sentence.

That command is what a user without this client would write. Google and LibreTranslate are asked over loopback of a
server that answers at once, so that the sentences a second which are printed for them are the client's: the most that
one job can ask. Skips where there is no Apertium. The time that passes counts, since Apertium is several processes.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter

from benchmarks.harness import Measured, Timing, ratios, run
from benchmarks.material import wikipedia_sentences
from tests import fault_server
from tests.fault_server import FaultServer
from workflow_scripts.apis.store import AnswerStore
from workflow_scripts.apis.translators import Translator, TranslatorSlice, Web, translate_all, translator_of

CODE = ("workflow_scripts/apis",)
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


def measure(timing: Timing) -> Iterator[Measured]:
    """Translate with every engine, and the first sentences by commands."""
    sentences = wikipedia_sentences(50 if timing.small else 2000)
    few = sentences[:5] if timing.small else sentences[:20]
    ask_over_loopback(sentences[:500], timing)
    if not shutil.which("apertium"):
        print("# translation skipped: there is no Apertium here.", file=sys.stderr)
        return
    block = TranslatorSlice.parse({"translator": APERTIUM}, "apertium").translator
    apertium = translator_of(block, "apertium", "eng", "spa")
    ways = {
        "batches": lambda: translate(apertium, sentences),
        "commands": lambda: [command(sentence) for sentence in few],
    }
    seconds = timing.interleaved(ways, clock="wall")
    faster = [ratio * len(sentences) / len(few) for ratio in ratios(seconds, "commands", "batches")]
    yield Measured("translate_batch", faster, "times-as-fast", "batches-against-a-command-a-sentence", "wall")


def ask_over_loopback(sentences: list[str], timing: Timing) -> None:
    """Print how many sentences a second the clients ask for."""
    with FaultServer(fault_server.libretranslate) as libre_server, FaultServer(fault_server.google) as server:
        libre = {"engine": "libretranslate", "url": libre_server.url, "key_variable": None, "calls": CALLS}
        block = TranslatorSlice.parse({"translator": libre}, "libretranslate").translator
        client = translator_of(block, "libretranslate", "en", "es")
        block = TranslatorSlice.parse(
            {"translator": {"engine": "google", "calls": CALLS}}, "google"
        ).translator
        google = translator_of(block, "google", "en", "es")
        assert isinstance(google, Web)
        google.session.mount("https://translate.google.com/", _ToLoopback(server.url))
        ways = {
            f"{len(sentences)} of libretranslate": lambda: translate(client, sentences),
            f"{len(sentences)} of google": lambda: translate(google, sentences),
        }
        timing.interleaved(ways, clock="wall")


def translate(translator: Translator, sentences: list[str]) -> None:
    """Translate with nothing in the store."""
    with tempfile.TemporaryDirectory() as folder, AnswerStore(Path(folder, "answers.sqlite")) as store:
        translate_all(sentences, translator, store, place="bench", offline=False, refusals=0)


def command(sentence: str) -> None:
    """Translate one sentence by a command of its own."""
    subprocess.run(["apertium", "-u", "eng-spa"], input=sentence.encode(), check=True, capture_output=True)


if __name__ == "__main__":
    run(__doc__, measure)
