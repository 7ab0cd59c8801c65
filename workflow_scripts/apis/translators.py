"""Translators with a common interface: Apertium on this machine, Google and LibreTranslate on servers.

The classes of deep_translator call Google and LibreTranslate, through the client of ``asking``.
"""

import hashlib
import re
import shutil
import subprocess
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import deep_translator.constants
import deep_translator.exceptions
import deep_translator.google
import deep_translator.libre
import httpx2

from workflow_scripts.apis.answer_checks import error_text, repaired, repeated, translation_fault
from workflow_scripts.apis.asking import (
    REPEATED,
    CircuitBreaker,
    Client,
    Engine,
    NoAnswer,
    Server,
    collect_answers,
    key_from,
    redacted,
)
from workflow_scripts.apis.ledger import ApiRequest, Ledger, Row
from workflow_scripts.errors import ApiError
from workflow_scripts.progress import progress
from workflow_scripts.settings.apis import (
    ApertiumBlock,
    Calls,
    GoogleBlock,
    LibreTranslateBlock,
    TranslatorBlock,
)


class Direction(NamedTuple):
    """Source and target language of a translation, and the block of its translator."""

    path: str
    """Dotted path of the block of settings, for messages; requests of all its jobs are counted together."""
    source: str
    """Language to translate from, by the engine's code."""
    target: str
    """Language to translate into, by the engine's code."""

    @property
    def back(self) -> "Direction":
        """Return the opposite direction."""
        return Direction(self.path, self.target, self.source)


class Translator(Engine):
    """A translator: one engine and one direction."""

    name = ""
    """Name of the engine in requests."""
    model = ""
    """Hash of the engine's data, which determine answers; empty if they are unknown."""

    def __init__(self, direction: Direction) -> None:
        self.direction = direction
        self.path = direction.path

    def request(self, text: str) -> ApiRequest:
        """Return the request for the translation of a text."""
        _, source, target = self.direction
        return ApiRequest(self.name, self.model, source, target, text)

    def fault(self, row: Row) -> str | None:
        """Return the fault of a translation; None if it is usable."""
        _, _, source, target, text, _ = row.request
        return translation_fault(text, row.answer or "", source, target)


def make_translator(
    block: TranslatorBlock,
    direction: Direction,
    ledger: Ledger,
) -> Translator:
    """Return the translator of a block of the configuration.

    Args:
        block: One block of ``translators``.
        direction: The languages, and the block's name.
        ledger: Ledger that counts requests.

    Raises:
        ApiError: if the engine or the languages are missing.
    """
    engines: dict[str, Any] = {"apertium": Apertium, "google": Google, "libretranslate": LibreTranslate}
    translator: Translator = engines[block.engine](block, direction, ledger)
    return translator


# Apertium


MODES = Path("/usr/share/apertium/modes")
_DATA_FILE = re.compile(r"'(/[^']+)'")
_MARKS = re.compile(r"([\[\]{}^$@\\/<>])")  # special characters of Apertium's stream format
_ESCAPE = r"\\\1"
_ESCAPED = re.compile(r"\\(.)")
_END = "[\n]"
_FLUSHES = re.compile(r"^((?:lt|apertium|cg|lsx|lrx|rtx|hfst)-\S+)")


class Apertium(Translator):
    """The programs of one of Apertium's modes, run on batches of sentences that do not influence each other.

    The command ``apertium`` passes all lines to its programs as one text. Its statistical tagger adds untrained kinds
    of ambiguity to its model while it runs: in another order, ten of 1,000 sentences are translated differently, even
    if null characters separate them. Therefore null characters, which reset all other programs, separate the sentences
    of a batch, and the tagger is started for each sentence: 170 sentences a second and direction, instead of 1,100.
    """

    name = "apertium"

    def __init__(self, block: ApertiumBlock, direction: Direction, _ledger: Ledger) -> None:
        """Prepare the translator; the arguments are those of ``make_translator``."""
        super().__init__(direction)
        self._pair = f"{direction.source}-{direction.target}"
        self.at_once = block.batch_sentences
        self.calls = Calls(
            timeout_seconds=block.timeout_seconds,
            attempts=1,
            first_wait_seconds=0,
            longest_wait_seconds=1,
            workers=1,
            per_second=None,
            per_day=None,
        )
        file = MODES / f"{self._pair}.mode"
        if not shutil.which("apertium") or not file.exists():
            advice = "Install both; Debian's packages: apt-cache search apertium"
            raise ApiError(
                f"{self.path}: Apertium with the direction {self._pair} is not installed. {advice}."
            )
        mode = file.read_text("utf-8")
        self._command = _pipeline(mode)
        rules = b"".join(Path(name).read_bytes() for name in _DATA_FILE.findall(mode))
        # Files of one version of a package may differ, so the hash identifies the data.
        self.model = hashlib.sha256(mode.encode() + rules).hexdigest()[:16]

    def ask(self, requests: Sequence[ApiRequest]) -> list[Row]:
        """Return translations with normalised white space: a dropped pronoun leaves a space before its verb."""
        lines = (" ".join(request.text.replace("\0", " ").split()) for request in requests)
        texts = self._run("".join(f"{_MARKS.sub(_ESCAPE, line)}{_END}\0" for line in lines)).split("\0")
        texts, rest = texts[: len(requests)], texts[len(requests) :]  # some programs append empty texts
        if any(rest) or len(texts) < len(requests) or not all(text.endswith(_END) for text in texts):
            problem = f"returned {len(texts)} texts for {len(requests)}, or incomplete ones"
            raise ApiError(f"{self.path}: apertium {self._pair} {problem}. Install it again.")
        answers = [" ".join(_ESCAPED.sub(r"\1", text.removesuffix(_END)).split()) for text in texts]
        pairs = zip(requests, answers, strict=True)
        return [self.row(request, repaired(answer, request.text), {}) for request, answer in pairs]

    def _run(self, text: str) -> str:
        command = ["bash", "-o", "pipefail", "-c", self._command]
        seconds = self.calls.timeout_seconds
        try:
            run = subprocess.run(
                command, input=text.encode(), capture_output=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            advice = "Increase timeout_seconds, or reduce batch_sentences."
            raise ApiError(f"{self.path}: a batch took more than {seconds:g} s. {advice}") from None
        if run.returncode:
            message = redacted(run.stderr.decode("utf-8", "replace")) or "no message"
            raise ApiError(
                f"{self.path}: apertium {self._pair} ended with code {run.returncode} ({message})."
            )
        return run.stdout.decode("utf-8", "replace")


_EACH = "while IFS= read -r -d '' text; do printf %s \"$text\" | {} || exit $?; printf '\\0'; done"
"""Shell code that runs a command for each text of a null-terminated stream."""


def _pipeline(mode: str) -> str:
    """Return the programs of a mode as one pipeline for null-terminated texts.

    ``$1`` is the option not to mark unknown words, ``$2`` an unneeded option of the tagger. A perceptron tagger
    (``-x``) does not change while it runs.
    """
    programs = []
    for part in mode.replace("$1", "-n").replace("$2", "").strip().split("|"):
        program = part.strip()
        if program.startswith("apertium-tagger") and "x" not in program.split()[1]:
            programs.append(_EACH.format(program))
        else:
            programs.append(_FLUSHES.sub(r"\1 -z", program))  # -z: texts are null-terminated
    return " | ".join(programs)


# Over the network


class _Requests(threading.local):
    """A replacement of the package ``requests`` in deep_translator by the client of ``asking``; one state per thread.

    deep_translator sets no timeout, follows redirections, hides the header Retry-After, and puts LibreTranslate's key
    and text into the URL, where servers log them; here they are sent as the body.
    """

    http: httpx2.Client
    last = httpx2.Response(200)  # empty, before the first

    def get(self, url: str, params: dict[str, str], proxies: None) -> httpx2.Response:
        """Send a GET request."""
        self.last = self.http.get(url, params=params)
        return self.last

    def post(self, url: str, params: dict[str, str]) -> httpx2.Response:
        """Send a POST request."""
        self.last = self.http.post(url, json=params)
        return self.last


_REQUESTS = _Requests()


class _Web(Translator):
    """An engine of deep_translator, one sentence per request."""

    metadata: dict[str, Any] = {}  # noqa: RUF012  (never changed)

    def __init__(self, calls: Calls, server: Server, direction: Direction, ledger: Ledger) -> None:
        super().__init__(direction)
        self.calls = calls
        self.client: Client = Client(calls, server, ledger)
        deep_translator.google.requests = deep_translator.libre.requests = _REQUESTS

    def answer(self, request: ApiRequest) -> Row:
        """Return the row of a request with the translation of its text."""
        return self.row(request, self.client.call(partial(self._translated, request.text)), self.metadata)

    def _translated(self, text: str) -> str:
        _REQUESTS.http = self.client
        try:
            answer = self._translator().translate(self._sent(text))
        except deep_translator.exceptions.NotValidLength:
            raise NoAnswer("refused", "too long for this engine") from None
        except (deep_translator.exceptions.BaseError, ValueError, LookupError, TypeError, RecursionError):
            raise NoAnswer("failed", "no translation", _REQUESTS.last.text) from None
        # Google's class returns None for unchanged text.
        if answer is None and not any(map(str.isalnum, text)):
            return text.strip()
        if not isinstance(answer, str):
            raise NoAnswer("failed", "no translation", str(answer))
        if fault := self._page_fault(_REQUESTS.last.text):
            raise NoAnswer("failed", fault, answer)
        bare = repaired(answer, text)
        if fault := error_text(bare, text):
            raise NoAnswer("failed", fault, bare)
        return bare

    def _sent(self, text: str) -> str:
        """Return a text as the engine needs it."""
        return text

    def _page_fault(self, body: str) -> str | None:
        """Return the fault of a response around its translation; None if it has none: broken JSON is no answer."""
        return None

    def _translator(self) -> Any:
        """Return an object of deep_translator for one request; it stores the text, so threads must not share it."""
        raise NotImplementedError


_ELEMENT = re.compile(r"<div[^>]*class=.(?:t0|result-container)\b")  # read by deep_translator
_CLOSED = re.compile(_ELEMENT.pattern + r"[^>]*>(.*?)</div>", re.DOTALL)


class Google(_Web):
    """Google Translate's page for mobile phones."""

    name = "google"

    def __init__(self, block: GoogleBlock, direction: Direction, ledger: Ledger) -> None:
        """Prepare the translator; the arguments are those of ``make_translator``."""
        url = deep_translator.constants.BASE_URLS["GOOGLE_TRANSLATE"]
        super().__init__(block.calls, Server(direction.path, url), direction, ledger)
        try:
            self._translator()
        except deep_translator.exceptions.LanguageNotSupportedException:
            problem = f"{direction.source} to {direction.target}: Google lacks one of these languages"
            raise ApiError(f"{self.path}: {problem}. Choose languages that it supports.") from None

    def _sent(self, text: str) -> str:
        """Return a text with single spaces: the page has a tag for each line end, without which words are joined."""
        return " ".join(text.split())

    def _page_fault(self, body: str) -> str | None:
        """Return the fault of a page: its translation breaks off, or contains tags, at which words would be joined.

        An HTML parser closes the element of the translation at the page's end.
        """
        if _ELEMENT.search(body) is None:
            return None
        element = _CLOSED.search(body)
        if element is None:
            return "broken off"
        return "markup" if "<" in element[1] else None

    def _translator(self) -> Any:
        return deep_translator.GoogleTranslator(self.direction.source, self.direction.target)


class LibreTranslate(_Web):
    """A LibreTranslate server."""

    name = "libretranslate"

    def __init__(self, block: LibreTranslateBlock, direction: Direction, ledger: Ledger) -> None:
        """Prepare the translator; the arguments are those of ``make_translator``."""
        server = Server(direction.path, block.url, ("url",), block.key_variable)
        super().__init__(block.calls, server, direction, ledger)
        self._key_variable = block.key_variable
        self._url = block.url.rstrip("/")
        self.metadata = {"endpoint": self._url}

    def _translator(self) -> Any:
        translator = deep_translator.LibreTranslator(api_key="none", custom_url=f"{self._url}/")
        translator.api_key = key_from(self._key_variable, self.path)
        # Not passed to __init__, which accepts only 17 languages.
        translator.source, translator.target = self.direction[1:]
        return translator


# With the ledger


def translate_all(
    sentences: Sequence[str | None],
    translator: Translator,
    ledger: Ledger,
    max_unanswered: int,
) -> list[Row | None]:
    """Return the translations of ``sentences``; only requests that are not in the ledger are sent.

    When all answers have arrived, those that several different sentences share are rejected.

    Args:
        sentences: Texts; equal ones are translated once; None, for a text without a translation, stays None.
        translator: Engine and direction.
        ledger: Stored rows; if it is read-only, only these are used.
        max_unanswered: Maximum number of sentences without a usable answer.

    Returns:
        Rows in order.

    Raises:
        ApiError: if the engine is at fault, or the ledger is read-only and answers are missing.
    """
    requests = [None if text is None else translator.request(text) for text in sentences]
    distinct = {request.key: request for request in requests if request is not None}
    watch = CircuitBreaker(translator.path, max_unanswered)
    with progress(len(distinct), " to ".join(translator.direction[1:]), "sentence") as bar:
        rows = collect_answers(distinct.values(), ledger, translator, watch, bar.update)
    usable = [row for row in rows.values() if row.status == "usable"]
    shared = repeated((row.request.text, row.answer or "") for row in usable)
    late = [row._replace(status="rejected", reason=REPEATED) for row in usable if row.answer in shared]
    rows |= {row.request.key: row for row in late}
    if late and not ledger.read_only:
        ledger.save(late)
    unanswered = len(late) + len(rows) - len(usable)
    if late and unanswered > max_unanswered:
        problem = (
            f"{unanswered} of {len(rows)} sentences have no usable answer, {len(late)} of them the same one"
        )
        advice = "Usable answers are stored; those stay rejected."
        raise ApiError(f"{translator.path}: {problem}: {late[0].answer!r}. {advice}")
    return [None if request is None else rows[request.key] for request in requests]
