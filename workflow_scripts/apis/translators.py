"""Translators with a common interface: Apertium on this machine, Google, LibreTranslate, language models on servers.

The classes of deep_translator ask Google and LibreTranslate, through this project's client (``calls``).
"""

import hashlib
import json
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

from workflow_scripts.apis.asking import OF_ANOTHER, OF_SEVERAL, Engine, Watch, settled
from workflow_scripts.apis.calls import Client, NoAnswer, key_from, redacted, without_keys
from workflow_scripts.apis.door import (
    broken_off,
    completion_fault,
    error_text,
    of_another,
    repeated,
    text_fault,
    translation_fault,
)
from workflow_scripts.apis.ledger import Ledger, Request, Row, row_of
from workflow_scripts.apis.llm import Llm, filled
from workflow_scripts.apis.wrappers import unwrapped
from workflow_scripts.errors import ApiError
from workflow_scripts.progress import Progress
from workflow_scripts.settings.apis import (
    ApertiumBlock,
    Calls,
    GoogleBlock,
    LibreTranslateBlock,
    LlmBlock,
    LlmTranslatorBlock,
    TranslatorBlock,
)


class Direction(NamedTuple):
    """What a translation is asked for, and by whom."""

    place: str
    """Block of the configuration, for messages; requests of all its jobs are counted together."""
    source: str
    """Language to translate from, as the engine writes it."""
    target: str
    """Language to translate into."""

    @property
    def back(self) -> "Direction":
        """The other direction."""
        return Direction(self.place, self.target, self.source)


class Translator(Engine):
    """One engine and one direction."""

    name = ""
    """The engine's, in requests."""
    model = ""
    """The engine's model or data, which decide an answer, where it names them."""
    settings = "{}"

    def __init__(self, direction: Direction) -> None:
        self.direction = direction
        self.place = direction.place

    def request(self, text: str) -> Request:
        """The request for the translation of ``text``."""
        _, source, target = self.direction
        return Request(self.name, self.model, source, target, text, self.settings)

    def row(self, request: Request, answer: str, noted: dict[str, Any]) -> Row:
        """A row with an answer, as it passes the door or not."""
        return self.judged(row_of(request, answer, text_fault(answer, request.text), noted))

    def fault(self, row: Row) -> str | None:
        """What is wrong with a translation."""
        asked = row.request
        return translation_fault(
            asked.text, unwrapped(row.answer or "", asked.text), asked.source, asked.target
        )

    def used(self, row: Row) -> Row:
        """A row with the bare translation."""
        bare = row.status == "usable" and unwrapped(row.answer or "", row.request.text)
        return row._replace(answer=bare) if bare else row


def translator_of(
    block: TranslatorBlock,
    direction: Direction,
    ledger: Ledger,
    *,
    llm: LlmBlock | None = None,
    prompt: str | None = None,
) -> Translator:
    """The translator that a block of the configuration describes.

    Args:
        block: One block of ``translators``.
        direction: The languages, and the block's name.
        ledger: It counts requests.
        llm: The block of ``llms`` that a block of engine ``llm`` names.
        prompt: Its prompt, with ``$source``, ``$target`` and ``$text``.

    Raises:
        ApiError: if the engine or the languages are missing.
    """
    if isinstance(block, LlmTranslatorBlock):
        assert llm is not None and prompt is not None
        return LlmTranslator(Llm(llm, f"llms.{block.llm}", ledger), prompt, direction)
    engines: dict[str, Any] = {"apertium": Apertium, "google": Google, "libretranslate": LibreTranslate}
    translator: Translator = engines[block.engine](block, direction, ledger)
    return translator


# Apertium


MODES = Path("/usr/share/apertium/modes")
_DATA_FILE = re.compile(r"'(/[^']+)'")
_MARKS = re.compile(r"([\[\]{}^$@\\/<>])")  # that have a meaning in Apertium's stream format
_ESCAPE = r"\\\1"
_ESCAPED = re.compile(r"\\(.)")
_END = "[\n]"
_FLUSHES = re.compile(r"^((?:lt|apertium|cg|lsx|lrx|rtx|hfst)-\S+)")


class Apertium(Translator):
    """The programs of one of Apertium's modes, a batch of sentences at a time, each with a context of its own.

    The command ``apertium`` gives all lines to its programs as one text. Its statistical tagger, as it goes, adds kinds
    of ambiguity to its model that it was not trained on: ten of 1,000 sentences are translated otherwise in another
    order, also where they are set off by null characters. So the programs before and after it are given the sentences
    of a batch set off by null characters, after which they start anew, and the tagger is started for each sentence:
    170 sentences a second and direction, instead of 1,100.
    """

    name = "apertium"

    def __init__(self, block: ApertiumBlock, direction: Direction, _ledger: Ledger) -> None:
        """Arguments as in ``translator_of``."""
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
            raise ApiError(f"{self.place}: Apertium with the direction {self._pair} is not here. {advice}.")
        mode = file.read_text("utf-8")
        self._command = _command_of(mode)
        rules = b"".join(Path(name).read_bytes() for name in _DATA_FILE.findall(mode))
        self.model = hashlib.sha256(mode.encode() + rules).hexdigest()[
            :16
        ]  # a package's version does not tell

    def ask(self, requests: Sequence[Request]) -> list[Row]:
        """Translations with white space normalised: a dropped pronoun leaves a space before its verb."""
        lines = (" ".join(request.text.replace("\0", " ").split()) for request in requests)
        found = self._run("".join(f"{_MARKS.sub(_ESCAPE, line)}{_END}\0" for line in lines)).split("\0")
        found, more = found[: len(requests)], found[len(requests) :]  # some programs end with empty ones
        if any(more) or len(found) < len(requests) or not all(text.endswith(_END) for text in found):
            said = f"returned {len(found)} texts for {len(requests)}, or some without their ends"
            raise ApiError(f"{self.place}: apertium {self._pair} {said}. Is it whole? Install it again.")
        answers = [" ".join(_ESCAPED.sub(r"\1", text.removesuffix(_END)).split()) for text in found]
        pairs = zip(requests, answers, strict=True)
        return [self.row(request, answer, {}) for request, answer in pairs]

    def _run(self, text: str) -> str:
        command = ["bash", "-o", "pipefail", "-c", self._command]
        seconds = self.calls.timeout_seconds
        try:
            run = subprocess.run(
                command, input=text.encode(), capture_output=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            advice = "Raise timeout_seconds, or lower batch_sentences."
            raise ApiError(f"{self.place}: a batch took more than {seconds:g} s. {advice}") from None
        if run.returncode:
            said = redacted(run.stderr.decode("utf-8", "replace")) or "no message"
            raise ApiError(f"{self.place}: apertium {self._pair} ended with code {run.returncode} ({said}).")
        return run.stdout.decode("utf-8", "replace")


_EACH = "while IFS= read -r -d '' text; do printf %s \"$text\" | {} || exit $?; printf '\\0'; done"
"""A command, started for each of several texts that null characters end."""


def _command_of(mode: str) -> str:
    """The programs of a mode as one pipe of texts that null characters end.

    ``$1`` is the option not to mark unknown words, ``$2`` one of the tagger that is not needed. A perceptron tagger
    (``-x``) does not change while it works.
    """
    programs = []
    for part in mode.replace("$1", "-n").replace("$2", "").strip().split("|"):
        program = part.strip()
        if program.startswith("apertium-tagger") and "x" not in program.split()[1]:
            programs.append(_EACH.format(program))
        else:
            programs.append(_FLUSHES.sub(r"\1 -z", program))  # -z: null characters end a text
    return " | ".join(programs)


# Over the network


class _Requests(threading.local):
    """Stands in for the package ``requests`` in deep_translator, over this project's client; a state per thread.

    deep_translator sets no timeout, follows redirections, hides the header Retry-After, and puts LibreTranslate's key
    and text into the URL, where servers log them; here they are sent as the body.
    """

    http: httpx2.Client
    said = ""
    """The last answer."""

    def get(self, url: str, params: dict[str, str], proxies: None) -> httpx2.Response:
        """An answer to a GET request."""
        return self._noted(self.http.get(url, params=params))

    def post(self, url: str, params: dict[str, str]) -> httpx2.Response:
        """An answer to a POST request."""
        return self._noted(self.http.post(url, json=params))

    def _noted(self, response: httpx2.Response) -> httpx2.Response:
        self.said = response.text
        return response


_REQUESTS = _Requests()


class _Web(Translator):
    """An engine of deep_translator's, one sentence per request."""

    tries = 2
    noted: dict[str, Any] = {}  # noqa: RUF012  (nobody adds to it)

    def __init__(self, calls: Calls, url: str, direction: Direction, ledger: Ledger) -> None:
        super().__init__(direction)
        self.calls = calls
        self.client = Client(calls, direction.place, url, ledger)
        deep_translator.google.requests = deep_translator.libre.requests = _REQUESTS

    def ask(self, requests: Sequence[Request]) -> list[Row]:
        """What came of each request."""
        return [self._row(request) for request in requests]

    def _row(self, request: Request) -> Row:
        try:
            answer = self.client.call(partial(self._answer, self._translator(), request.text))
        except NoAnswer as error:
            return error.row(request)
        fault = error_text(answer, request.text) if isinstance(answer, str) else "no translation"
        if fault:
            return Row(request, redacted(str(answer)), "failed", fault)
        return self.row(request, without_keys(str(answer)), self.noted)

    def _answer(self, translator: Any, text: str) -> object:
        """What the server gives for a text; Google's class returns None where a text without letters stays the same."""
        _REQUESTS.http = self.client.http
        try:
            found = translator.translate(text)
            return text.strip() if found is None and not any(map(str.isalnum, text)) else found
        except deep_translator.exceptions.NotValidLength:
            raise NoAnswer("refused", "too long for this engine") from None
        except (deep_translator.exceptions.BaseError, ValueError, LookupError, TypeError, RecursionError):
            raise NoAnswer("failed", "no translation", _REQUESTS.said) from None

    def _translator(self) -> Any:
        """deep_translator's object for one request: it keeps the text, which threads must not share."""
        raise NotImplementedError


class Google(_Web):
    """Google Translate's page for mobile phones."""

    name = "google"

    def __init__(self, block: GoogleBlock, direction: Direction, ledger: Ledger) -> None:
        """Arguments as in ``translator_of``."""
        super().__init__(
            block.calls, deep_translator.constants.BASE_URLS["GOOGLE_TRANSLATE"], direction, ledger
        )
        self.tries = block.calls.attempts  # nobody pays for them
        try:
            self._translator()
        except deep_translator.exceptions.LanguageNotSupportedException:
            found = f"{direction.source} to {direction.target}: one of them is not a language of Google's"
            raise ApiError(f"{self.place}: {found}. Name languages it supports.") from None

    def _translator(self) -> Any:
        return deep_translator.GoogleTranslator(self.direction.source, self.direction.target)


class LibreTranslate(_Web):
    """A LibreTranslate server."""

    name = "libretranslate"

    def __init__(self, block: LibreTranslateBlock, direction: Direction, ledger: Ledger) -> None:
        """Arguments as in ``translator_of``."""
        super().__init__(block.calls, block.url, direction, ledger)
        self._key_variable = block.key_variable
        self._url = block.url.rstrip("/")
        self.noted = {"endpoint": self._url}

    def _translator(self) -> Any:
        found = deep_translator.LibreTranslator(api_key="none", custom_url=f"{self._url}/")
        found.api_key = key_from(self._key_variable, self.place)
        found.source, found.target = self.direction[1:]  # any language: the package knows 17
        return found


class LlmTranslator(Translator):
    """A language model, one sentence per request."""

    name = "llm"

    def __init__(self, llm: Llm, prompt: str, direction: Direction) -> None:
        """``prompt`` is as in ``translator_of``.

        Raises:
            ConfigError: if it has an unknown placeholder, or none for the text.
        """
        super().__init__(direction)
        self._llm = llm
        self.calls, self.client, self.tries, self.model = llm.calls, llm.client, llm.tries, llm.model
        values = {"source": direction.source, "target": direction.target, "text": "$text"}
        self._prompt = filled(prompt, values, "text", f"{self.place}: prompt")
        self.settings = json.dumps(json.loads(llm.settings) | {"prompt": self._prompt}, sort_keys=True)

    def ask(self, requests: Sequence[Request]) -> list[Row]:
        """What came of each request."""
        return [self._row(request) for request in requests]

    def _row(self, request: Request) -> Row:
        return self.judged(self._llm.answer(request, self._filled(request.text)))

    def fault(self, row: Row) -> str | None:
        """What is wrong with a completion that is to be a translation."""
        ended = row.noted.get("finish_reason", "unknown")
        fault = completion_fault(row.answer or "", ended, self._filled(row.request.text))
        return fault or ("cut off" if broken_off(ended) else super().fault(row))

    def _filled(self, text: str) -> str:
        return self._prompt.replace("$text", text)


# With the ledger


def translate_all(
    sentences: Sequence[str | None],
    translator: Translator,
    ledger: Ledger,
    *,
    offline: bool,
    most_without: int,
) -> list[Row | None]:
    """Translate ``sentences``, asking only for what is not in the ledger.

    Answers that were given to several different sentences are rejected when all have come.

    Args:
        sentences: Texts, equal ones translated once; None, for a text without a translation so far, stays None.
        translator: Engine and direction.
        ledger: Rows so far.
        offline: Use only what is in the ledger.
        most_without: Stop when more sentences than this have no usable answer.

    Returns:
        Rows in order.

    Raises:
        ApiError: if the engine is at fault, or the study is offline and answers are missing.
    """
    requests = [None if text is None else translator.request(text) for text in sentences]
    asked = {request.key: request for request in requests if request is not None}
    watch = Watch(translator.place, most_without)
    with Progress(len(asked), " to ".join(translator.direction[1:]), "sentence") as progress:
        rows = settled(asked.values(), ledger, translator, watch, offline=offline, tell=progress.update)
    usable = [row for row in rows.values() if row.status == "usable"]
    same = repeated((row.request.text, row.answer or "") for row in usable)
    late = [row for row in usable if row.answer in same]
    rows |= {row.request.key: row for row in _rejected(late, OF_SEVERAL, ledger)}
    without = len(late) + len(rows) - len(usable)
    if late and without > most_without:
        found = f"{without} of {len(rows)} sentences have no usable answer, {len(late)} of them the same one"
        advice = "Usable answers are kept; those stay rejected."
        raise ApiError(f"{translator.place}: {found}: {late[0].answer!r}. {advice}")
    return [None if request is None else rows[request.key] for request in requests]


def _rejected(rows: Sequence[Row], reason: str, ledger: Ledger) -> list[Row]:
    """Rows that turn out to be no answers after all, here and in the ledger."""
    rejected = [row._replace(status="rejected", reason=reason) for row in rows]
    return rejected if ledger.read_only else ledger.settle(rejected, even_usable=True)


def without_others(
    sentences: Sequence[str],
    pivots: Sequence[Row | None],
    backs: Sequence[Row | None],
    translator: Translator,
    ledger: Ledger,
    *,
    most_without: int,
) -> tuple[list[Row | None], list[Row | None]]:
    """Round trips without those that are of another sentence, which are rejected here and in the ledger.

    Either of two translations may have gone astray, so both are rejected. Where most are of others, the rest is like
    its own sentence by chance, and rejected too.

    Args:
        sentences: What was translated, in order.
        pivots: Their translations.
        backs: The translations of these.
        translator: Of the sentences, for messages.
        ledger: Rows so far.
        most_without: Stop when more sentences than this have no usable round trip.

    Returns:
        Pivots, the rejected ones marked as such, and backs without theirs.

    Raises:
        ApiError: if the engine is at fault.
    """
    astray = _astray(sentences, pivots, backs)
    if not any(astray):
        return list(pivots), list(backs)
    kept = [None if is_astray else row for row, is_astray in zip(backs, astray, strict=True)]
    own = {row.request.key for row in kept if row}
    late = [row for rows in (pivots, backs) for row, gone in zip(rows, astray, strict=True) if row and gone]
    usable = [row for row in late if row.status == "usable" and row.request.key not in own]
    _rejected(usable, OF_ANOTHER, ledger)
    found = f"{sum(astray)} of {len(sentences)} sentences came back as others"
    if sum(row is None or row.status != "usable" for row in kept) > most_without:
        first = astray.index(True)
        shown = f"{sentences[first]!r} as {getattr(backs[first], 'answer', None)!r}"
        raise ApiError(
            f"{translator.place}: {found}, such as {shown}. Look at the engine; they stay rejected."
        )
    print(f"{translator.place}: {found}; both translations, perhaps paid, are not used")  # noqa: T201
    rejected = [
        row._replace(status="rejected", reason=OF_ANOTHER) if row and is_astray else row
        for row, is_astray in zip(pivots, astray, strict=True)
    ]
    return rejected, kept


def _astray(
    sentences: Sequence[str], pivots: Sequence[Row | None], backs: Sequence[Row | None]
) -> list[bool]:
    """Which round trips are of another sentence: all, where most are; equal sentences alike."""
    returned = [row.answer if row and row.status == "usable" else None for row in backs]
    scored = [text is not None for text in returned]
    others = of_another(sentences, returned)
    refused = scored if sum(others) > sum(scored) / 2 else others
    keys = {row.request.key for row, gone in zip(pivots, refused, strict=True) if row and gone}
    return [row is not None and row.request.key in keys for row in pivots]
