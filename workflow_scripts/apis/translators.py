"""Translators with a common interface: Apertium on this machine, Google, LibreTranslate, language models on servers.

Of deep-translator, Google's address and languages are used, and not its requests: they set no timeout, hide the header
Retry-After and follow redirections; those to LibreTranslate put key and text into the URL, where servers log them.
"""

import hashlib
import html
import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import requests
from requests.adapters import HTTPAdapter

from workflow_scripts.apis.asking import Watch, settled
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
from workflow_scripts.apis.door import (
    error_text,
    of_another,
    repeated,
    translation_fault,
    without_thinking,
)
from workflow_scripts.apis.ledger import Ledger, Request, Row
from workflow_scripts.apis.llm import Llm, filled
from workflow_scripts.config import Settings
from workflow_scripts.errors import ApiError
from workflow_scripts.progress import Progress
from workflow_scripts.settings.calls import Calls
from workflow_scripts.settings.llms import LlmBlock
from workflow_scripts.settings.translators import (
    ApertiumBlock,
    GoogleBlock,
    LibreTranslateBlock,
    TranslatorBlock,
)


class Direction(Settings):
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
        return Direction(place=self.place, source=self.target, target=self.source)


class Translator:
    """One engine and one direction (``asking.Engine``)."""

    calls: Calls
    at_once = 1
    tries = 1
    name = ""
    """The engine's, in requests."""
    model = ""
    """What of the engine decides an answer, where it says."""
    settings = "{}"

    def __init__(self, direction: Direction) -> None:
        self.direction = direction
        self.place = direction.place

    def request(self, text: str) -> Request:
        """The request for the translation of ``text``."""
        return Request(
            self.name, self.model, self.direction.source, self.direction.target, text, self.settings
        )

    def ask(self, requests: Sequence[Request]) -> list[Row]:
        """What came of each request, in order."""
        raise NotImplementedError

    def row(
        self, request: Request, answer: str, attributes: dict[str, Any], cost: float | None = None
    ) -> Row:
        """A row with an answer, as it passes the door or not."""
        fault = translation_fault(request.text, answer, request.source, request.target)
        return Row.answered(request, answer, fault, attributes, cost)


def _call_of(requests: Sequence[Request]) -> dict[str, str]:
    """What tells the rows of one call for several requests from those of others."""
    return {"call": requests[0].key.hex()[:16]} if len(requests) > 1 else {}


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
        ApiError: if the engine, the languages or the key are missing.
    """
    if isinstance(block, ApertiumBlock):
        return Apertium(block, direction)
    if isinstance(block, GoogleBlock):
        return Google(block, direction, ledger)
    if isinstance(block, LibreTranslateBlock):
        return LibreTranslate(block, direction, ledger)
    assert llm is not None and prompt is not None
    return LlmTranslator(Llm(llm, f"llms.{block.llm}", ledger), prompt, direction)


# Apertium


MODES = Path("/usr/share/apertium/modes")
_DATA_FILE = re.compile(r"'(/[^']+)'")
_MARKS = re.compile(r"([\[\]{}^$@\\/<>])")  # that have a meaning in Apertium's stream format
_ESCAPE = r"\\\1"
_ESCAPED = re.compile(r"\\(.)")
_END = "[\n]"
_FLUSHES = re.compile(r"^((?:lt|apertium|cg|lsx|lrx|rtx|hfst)-\S+)")
_PACKAGES = {"en-eo": "eo-en"}  # Debian's name of a pair, where it is not English first


class Apertium(Translator):
    """The programs of one of Apertium's modes, a batch of sentences at a time, each with a context of its own.

    The command ``apertium`` gives all lines to its programs as one text. Its statistical tagger, as it goes, adds kinds
    of ambiguity to its model that it was not trained on: ten of 1,000 sentences are translated otherwise in another
    order, also where they are set off by null characters. So the programs before and after it are given the sentences
    of a batch set off by null characters, after which they start anew, and the tagger is started for each sentence:
    170 sentences a second and direction, instead of 1,100.
    """

    name = "apertium"

    def __init__(self, block: ApertiumBlock, direction: Direction) -> None:
        """Arguments as in ``translator_of``."""
        super().__init__(direction)
        self._pair = f"{direction.source}-{direction.target}"
        self._timeout = block.timeout_seconds
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
        mode = self._mode()
        self._command = _command_of(mode)
        self.model = self._data_of(mode)

    def _mode(self) -> str:
        file = MODES / f"{self._pair}.mode"
        if not shutil.which("apertium") or not file.exists():
            pair = "-".join(sorted(self._pair.split("-"), key=lambda code: not code.startswith("en")))
            advice = f"Install it, on Debian: apt-get install apertium apertium-{_PACKAGES.get(pair, pair)}"
            raise ApiError(f"{self.place}: Apertium with the direction {self._pair} is not here. {advice}.")
        return file.read_text("utf-8")

    def _data_of(self, mode: str) -> str:
        """Hash of the rules and dictionaries: packages with the same version differ between platforms."""
        sha = hashlib.sha256(mode.encode())
        for file in map(Path, _DATA_FILE.findall(mode)):
            sha.update(file.read_bytes())
        return sha.hexdigest()[:16]

    def ask(self, requests: Sequence[Request]) -> list[Row]:
        """Translations with white space normalised: a dropped pronoun leaves a space before its verb."""
        lines = (" ".join(request.text.replace("\0", " ").split()) for request in requests)
        found = self._run("".join(f"{_MARKS.sub(_ESCAPE, line)}{_END}\0" for line in lines)).split("\0")
        found, more = found[: len(requests)], found[len(requests) :]  # some programs end with empty ones
        if any(more) or len(found) < len(requests) or not all(text.endswith(_END) for text in found):
            said = f"{len(found)} texts for {len(requests)}, or some without their ends"
            raise ApiError(
                f"{self.place}: apertium {self._pair} returned {said}. Is it whole? Install it again."
            )
        answers = (" ".join(_ESCAPED.sub(r"\1", text.removesuffix(_END)).split()) for text in found)
        attributes = _call_of(requests)
        return [
            self.row(request, answer, attributes) for request, answer in zip(requests, answers, strict=True)
        ]

    def _run(self, text: str) -> str:
        try:
            run = subprocess.run(
                ["bash", "-o", "pipefail", "-c", self._command],
                input=text.encode(),
                capture_output=True,
                timeout=self._timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            found = f"a batch took more than {self._timeout:g} s"
            raise ApiError(
                f"{self.place}: {found}. Raise timeout_seconds, or lower batch_sentences."
            ) from None
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


class _Web(Translator):
    """An engine that is asked over the network: with a timeout, and without being sent on to another server."""

    tries = 2

    def __init__(self, calls: Calls, direction: Direction, ledger: Ledger) -> None:
        super().__init__(direction)
        self.calls = calls
        self.attributes: dict[str, Any] = {}
        self._caller = Caller(calls, direction.place, ledger)
        self.session = requests.Session()
        for scheme in ("http://", "https://"):
            self.session.mount(scheme, HTTPAdapter(pool_maxsize=calls.workers))

    def ask(self, requests: Sequence[Request]) -> list[Row]:
        """What came of each request; a list that the server refuses may hold one text that it would not take."""
        try:
            answers = self._caller.call(lambda: self._translations([request.text for request in requests]))
        except Refused as error:
            if len(requests) > 1:
                return [_failed(request, str(error), None) for request in requests]
            return [Row(requests[0], None, "refused", redacted(str(error)))]
        except Unusable as error:
            return [_failed(request, error.reason, error.answer) for request in requests]
        attributes = self.attributes | _call_of(requests)
        return [
            self._said(request, answer, attributes) for request, answer in zip(requests, answers, strict=True)
        ]

    def _translations(self, texts: list[str]) -> list[object]:
        """What the server gives for some texts, as many as ``at_once`` at most."""
        raise NotImplementedError

    def _fetch(self, method: str, url: str, **sent: Any) -> str:
        """The body of an answer; failures are sorted into their kinds (``apis.calls``)."""
        try:
            response = self.session.request(
                method, url, timeout=self.calls.timeout_seconds, allow_redirects=False, **sent
            )
        except requests.RequestException as error:  # its text may contain the URL
            raise Transient(type(error).__name__) from None
        said = "" if response.ok and not response.is_redirect else redacted(response.text)
        raise_for_status(response.status_code, response.headers, said, self.place)
        return response.text

    def _said(self, request: Request, answer: object, attributes: dict[str, Any]) -> Row:
        """A row with what the server gave as a translation."""
        if not isinstance(answer, str):
            return _failed(request, "no translation", str(answer))
        if fault := error_text(answer, request.text):
            return _failed(request, fault, answer)
        return self.row(request, without_keys(answer), attributes)


def _failed(request: Request, reason: str, said: str | None) -> Row:
    return Row(request, None if said is None else redacted(said), "failed", reason)


_TRANSLATION = re.compile(r'<div[^>]*class="(?:t0|result-container)"[^>]*>(.*?)</div>', re.DOTALL)


class Google(_Web):
    """Google Translate's page for mobile phones, one sentence per request."""

    name = "google"

    def __init__(self, block: GoogleBlock, direction: Direction, ledger: Ledger) -> None:
        """Arguments as in ``translator_of``."""
        from deep_translator.constants import BASE_URLS, GOOGLE_LANGUAGES_TO_CODES

        super().__init__(block.calls, direction, ledger)
        self.tries = block.calls.attempts  # nobody pays for them
        self._url = BASE_URLS["GOOGLE_TRANSLATE"]
        source, target = (
            GOOGLE_LANGUAGES_TO_CODES.get(language, language)
            for language in (direction.source, direction.target)
        )
        if unknown := {source, target} - {*GOOGLE_LANGUAGES_TO_CODES.values()}:
            found = f"{direction.source} to {direction.target}: {min(unknown)} is not a language of Google's"
            raise ApiError(f"{self.place}: {found}. Name languages it supports.")
        self._languages = {"sl": source, "tl": target}

    def _translations(self, texts: list[str]) -> list[object]:
        page = self._fetch("GET", self._url, params=self._languages | {"q": texts[0].strip()})
        found = _TRANSLATION.search(page)
        if found is None:
            raise Unusable("no translation", page)
        return [html.unescape(re.sub("<[^<>]*>", "", found[1])).strip()]


class LibreTranslate(_Web):
    """A LibreTranslate server, a list of sentences per request."""

    name = "libretranslate"

    def __init__(self, block: LibreTranslateBlock, direction: Direction, ledger: Ledger) -> None:
        """Arguments as in ``translator_of``."""
        super().__init__(block.calls, direction, ledger)
        self.at_once = block.batch_sentences
        self._url = block.url.rstrip("/")
        self.attributes = {"endpoint": self._url}
        key = key_from(block.key_variable, self.place)
        self._asked = {"source": direction.source, "target": direction.target, "format": "text"}
        self._asked |= {"api_key": key} if key else {}

    def _translations(self, texts: list[str]) -> list[object]:
        query = texts if len(texts) > 1 else texts[0]  # servers of early versions take no lists
        body = self._fetch("POST", f"{self._url}/translate", json={"q": query} | self._asked)
        try:
            answer = json.loads(body)
        except ValueError:
            raise Unusable("no JSON", body) from None
        found = answer.get("translatedText") if isinstance(answer, dict) else None
        if found is None:
            raise Unusable("no translation", body)
        answers = found if isinstance(found, list) and len(texts) > 1 else [found]
        if len(answers) != len(texts):
            self.at_once = 1  # nobody can tell whose they are; lists would be paid for nothing
            raise Unusable(f"{len(answers)} translations of {len(texts)} texts", body)
        return answers


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
        self.calls, self.tries, self.model = llm.calls, llm.tries, llm.model
        values = {"source": direction.source, "target": direction.target, "text": "$text"}
        self._prompt = filled(prompt, values, "text", f"{self.place}: prompt")
        self.settings = json.dumps(json.loads(llm.settings) | {"prompt": self._prompt}, sort_keys=True)

    def ask(self, requests: Sequence[Request]) -> list[Row]:
        """What came of each request."""
        return [self._row(request) for request in requests]

    def _row(self, request: Request) -> Row:
        answered = self._llm.answer(request, self._prompt.replace("$text", request.text))
        if answered.status != "usable" or answered.answer is None:
            return answered
        if json.loads(answered.attributes)["finish_reason"] == "length":
            return answered._replace(status="rejected", reason="cut off")
        text = _unquoted(without_thinking(answered.answer).strip(), request.text)
        row = self.row(request, text, json.loads(answered.attributes), answered.cost_usd)
        if row.status == "usable" and "\n" in text and "\n" not in request.text:
            return row._replace(status="rejected", reason="several lines")
        return row


def _unquoted(answer: str, text: str) -> str:
    """An answer without the quotation marks that a model puts around it."""
    pairs = (('"', '"'), ("“", "”"), ("«", "»"), ("'", "'"))
    if len(answer) > 2 and (answer[0], answer[-1]) in pairs and text[:1] != answer[0]:
        return answer[1:-1].strip()
    return answer


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
    direction = f"{translator.direction.source} to {translator.direction.target}"
    watch = Watch(translator.place, most_without)
    with Progress(len(asked), direction, "sentence") as progress:
        rows = settled(asked.values(), ledger, translator, watch, offline=offline, tell=progress.update)
        usable = [row for row in rows.values() if row.status == "usable"]
        same = repeated((row.request.text, row.answer or "") for row in usable)
        late = [row for row in usable if row.answer in same]
        rejected = _rejected(late, "given to several different sentences", ledger)
        without = len(late) + len(rows) - len(usable)
        if late and without > most_without:
            found = (
                f"{without} of {len(rows)} sentences have no usable answer, {len(late)} of them the same one"
            )
            kept = "Usable answers are kept; forget those when it answers again."
            raise ApiError(f"{translator.place}: {found}: {late[0].answer!r}. {kept}")
    rows |= {row.request.key: row for row in rejected}
    return [None if request is None else rows[request.key] for request in requests]


def _rejected(rows: Sequence[Row], reason: str, ledger: Ledger) -> list[Row]:
    """Rows that turn out to be no answers after all, here and in the ledger."""
    if rows and not ledger.read_only:
        ledger.reject(rows, reason)
    return [row._replace(status="rejected", reason=reason) for row in rows]


_OF_ANOTHER = "of another sentence"


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

    Nobody can tell which of two translations went astray; both are rejected. Where most of a call are of others, the
    rest is like its own sentence by chance, and rejected too.

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
    if not astray:
        return list(pivots), list(backs)
    kept = [None if place in astray else row for place, row in enumerate(backs)]
    own = {row.request.key for row in kept if row}
    late = [row for rows in (pivots, backs) for place in astray if (row := rows[place])]
    usable = [row for row in late if row.status == "usable" and row.request.key not in own]
    _rejected(usable, _OF_ANOTHER, ledger)
    found = f"{len(astray)} of {len(sentences)} sentences came back as others"
    if sum(row is None or row.status != "usable" for row in kept) > most_without:
        first = min(astray)
        shown = f"{sentences[first]!r} as {getattr(backs[first], 'answer', None)!r}"
        command = f"python -m workflow_scripts answers forget --reason {_OF_ANOTHER!r}"
        raise ApiError(f"{translator.place}: {found}, such as {shown}. Have them asked again: {command}")
    print(f"{translator.place}: {found}; both translations, perhaps paid, are not used")  # noqa: T201
    rejected = [
        row._replace(status="rejected", reason=_OF_ANOTHER) if row and place in astray else row
        for place, row in enumerate(pivots)
    ]
    return rejected, kept


def _astray(sentences: Sequence[str], pivots: Sequence[Row | None], backs: Sequence[Row | None]) -> set[int]:
    """Places of round trips that are of another sentence, or of a call of which most are; equal sentences alike."""
    others = of_another(sentences, [row.answer if row and row.status == "usable" else None for row in backs])
    refused = _whole_calls(others, pivots, backs)
    keys = {row.request.key for row, is_refused in zip(pivots, refused, strict=True) if row and is_refused}
    return {place for place, row in enumerate(pivots) if row and row.request.key in keys}


def _whole_calls(
    others: Sequence[bool], pivots: Sequence[Row | None], backs: Sequence[Row | None]
) -> list[bool]:
    """``others``, with all of a call of which most are; requests that were sent alone count as one call."""
    refused = list(others)
    for rows in (pivots, backs):
        calls: dict[str, list[int]] = defaultdict(list)
        for place, (row, back) in enumerate(zip(rows, backs, strict=True)):
            if row and back and back.status == "usable":
                calls[json.loads(row.attributes).get("call", "")].append(place)
        for places in calls.values():
            if 2 * sum(others[place] for place in places) > len(places):
                for place in places:
                    refused[place] = True
    return refused
