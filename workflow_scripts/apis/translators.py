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
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from workflow_scripts.apis.asking import Engine, Watch, settled
from workflow_scripts.apis.calls import Client, NoAnswer, key_from, redacted, without_keys
from workflow_scripts.apis.door import error_text, of_another, repeated, translation_fault, without_thinking
from workflow_scripts.apis.ledger import Ledger, Request, Row, row_of
from workflow_scripts.apis.llm import Llm, filled
from workflow_scripts.errors import ApiError
from workflow_scripts.progress import Progress
from workflow_scripts.settings.llms import Calls, LlmBlock
from workflow_scripts.settings.translators import (
    ApertiumBlock,
    GoogleBlock,
    LibreTranslateBlock,
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

    def row(self, request: Request, answer: str, noted: dict[str, Any], cost: float | None = None) -> Row:
        """A row with an answer, as it passes the door or not."""
        fault = translation_fault(request.text, answer, request.source, request.target)
        return row_of(request, answer, fault, noted, cost)


def _call_of(requests: Sequence[Request]) -> dict[str, str]:
    """The name of a call for several requests, which its rows have in common."""
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
        return [self.row(request, answer, _call_of(requests)) for request, answer in pairs]

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


class _Web(Translator):
    """An engine that is asked over the network."""

    tries = 2
    noted: dict[str, Any] = {}  # noqa: RUF012  (nobody adds to it)

    def __init__(self, calls: Calls, direction: Direction, ledger: Ledger) -> None:
        super().__init__(direction)
        self.calls = calls
        self.client = Client(calls, direction.place, ledger)

    def ask(self, requests: Sequence[Request]) -> list[Row]:
        """What came of each request."""
        try:
            answers = self._translations([request.text for request in requests])
        except NoAnswer as error:
            return error.rows(requests)
        noted = self.noted | _call_of(requests)
        return [self._said(request, answer, noted) for request, answer in zip(requests, answers, strict=True)]

    def _translations(self, texts: list[str]) -> list[object]:
        """What the server gives for some texts, as many as ``at_once`` at most."""
        raise NotImplementedError

    def _said(self, request: Request, answer: object, noted: dict[str, Any]) -> Row:
        """A row with what the server gave as a translation."""
        fault = error_text(answer, request.text) if isinstance(answer, str) else "no translation"
        if fault:
            return Row(request, redacted(str(answer)), "failed", fault)
        return self.row(request, without_keys(str(answer)), noted)


_TRANSLATION = re.compile(r'<div[^>]*class="(?:t0|result-container)"[^>]*>(.*?)</div>', re.DOTALL)


class Google(_Web):
    """Google Translate's page for mobile phones, one sentence per request."""

    name = "google"

    def __init__(self, block: GoogleBlock, direction: Direction, ledger: Ledger) -> None:
        """Arguments as in ``translator_of``."""
        from deep_translator import GoogleTranslator
        from deep_translator.exceptions import LanguageNotSupportedException

        super().__init__(block.calls, direction, ledger)
        self.tries = block.calls.attempts  # nobody pays for them
        try:
            known = GoogleTranslator(direction.source, direction.target)
        except LanguageNotSupportedException:
            found = f"{direction.source} to {direction.target}: one of them is not a language of Google's"
            raise ApiError(f"{self.place}: {found}. Name languages it supports.") from None
        self._languages = {"sl": known.source, "tl": known.target}

    def _translations(self, texts: list[str]) -> list[object]:
        from deep_translator.constants import BASE_URLS

        asked = self._languages | {"q": texts[0].strip()}
        page = self.client.fetch("GET", BASE_URLS["GOOGLE_TRANSLATE"], params=asked)
        found = _TRANSLATION.search(page)
        if found is None:
            raise NoAnswer("failed", "no translation", page)
        return [html.unescape(re.sub("<[^<>]*>", "", found[1])).strip()]


class LibreTranslate(_Web):
    """A LibreTranslate server, a list of sentences per request."""

    name = "libretranslate"

    def __init__(self, block: LibreTranslateBlock, direction: Direction, ledger: Ledger) -> None:
        """Arguments as in ``translator_of``."""
        super().__init__(block.calls, direction, ledger)
        self.at_once = block.batch_sentences
        self._key_variable = block.key_variable
        self._url = block.url.rstrip("/")
        self.noted = {"endpoint": self._url}

    def _translations(self, texts: list[str]) -> list[object]:
        query = texts if len(texts) > 1 else texts[0]  # servers of early versions take no lists
        asked = {
            "q": query,
            "source": self.direction.source,
            "target": self.direction.target,
            "format": "text",
        }
        if key := key_from(self._key_variable, self.place):
            asked["api_key"] = key
        body = self.client.fetch("POST", f"{self._url}/translate", json=asked)
        try:
            found = json.loads(body)["translatedText"]
        except (ValueError, LookupError, TypeError):
            raise NoAnswer("failed", "no translation", body) from None
        answers = found if isinstance(found, list) and len(texts) > 1 else [found]
        if len(answers) != len(texts):
            self.at_once = 1  # nobody can tell whose they are; lists would be paid for nothing
            raise NoAnswer("failed", f"{len(answers)} translations of {len(texts)} texts", body)
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
        text = _unquoted(without_thinking(answered.answer).strip(), request.text)
        row = self.row(request, text, answered.noted, answered.cost_usd)
        if row.noted["finish_reason"] == "length":
            return row._replace(status="rejected", reason="cut off")
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
    watch = Watch(translator.place, most_without)
    with Progress(len(asked), " to ".join(translator.direction[1:]), "sentence") as progress:
        rows = settled(asked.values(), ledger, translator, watch, offline=offline, tell=progress.update)
    usable = [row for row in rows.values() if row.status == "usable"]
    same = repeated((row.request.text, row.answer or "") for row in usable)
    late = [row for row in usable if row.answer in same]
    rows |= {row.request.key: row for row in _rejected(late, "given to several different sentences", ledger)}
    without = len(late) + len(rows) - len(usable)
    if late and without > most_without:
        found = f"{without} of {len(rows)} sentences have no usable answer, {len(late)} of them the same one"
        advice = "Usable answers are kept; forget those when it answers again."
        raise ApiError(f"{translator.place}: {found}: {late[0].answer!r}. {advice}")
    return [None if request is None else rows[request.key] for request in requests]


def _rejected(rows: Sequence[Row], reason: str, ledger: Ledger) -> list[Row]:
    """Rows that turn out to be no answers after all, here and in the ledger."""
    rejected = [row._replace(status="rejected", reason=reason) for row in rows]
    return rejected if ledger.read_only else ledger.settle(rejected, even_usable=True)


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
    if not any(astray):
        return list(pivots), list(backs)
    kept = [None if is_astray else row for row, is_astray in zip(backs, astray, strict=True)]
    own = {row.request.key for row in kept if row}
    late = [row for rows in (pivots, backs) for row, gone in zip(rows, astray, strict=True) if row and gone]
    usable = [row for row in late if row.status == "usable" and row.request.key not in own]
    _rejected(usable, _OF_ANOTHER, ledger)
    found = f"{sum(astray)} of {len(sentences)} sentences came back as others"
    if sum(row is None or row.status != "usable" for row in kept) > most_without:
        first = astray.index(True)
        shown = f"{sentences[first]!r} as {getattr(backs[first], 'answer', None)!r}"
        command = f"python -m workflow_scripts answers forget --reason {_OF_ANOTHER!r}"
        raise ApiError(f"{translator.place}: {found}, such as {shown}. Have them asked again: {command}")
    print(f"{translator.place}: {found}; both translations, perhaps paid, are not used")  # noqa: T201
    rejected = [
        row._replace(status="rejected", reason=_OF_ANOTHER) if row and is_astray else row
        for row, is_astray in zip(pivots, astray, strict=True)
    ]
    return rejected, kept


def _astray(
    sentences: Sequence[str], pivots: Sequence[Row | None], backs: Sequence[Row | None]
) -> list[bool]:
    """Which round trips are of another sentence, or of a call of which most are; equal sentences alike.

    Requests that were sent alone count as one call.
    """
    returned = [row.answer if row and row.status == "usable" else None for row in backs]
    others = pd.Series(of_another(sentences, returned))
    scored = pd.Series([text is not None for text in returned])
    refused = others.copy()
    for rows in (pivots, backs):
        calls = pd.Series([row.noted.get("call", "") if row else "" for row in rows])
        refused |= scored & (others[scored].groupby(calls).transform("mean") > 0.5).reindex(
            refused.index, fill_value=False
        )
    keys = pd.Series([row.request.key if row else b"" for row in pivots])
    return list(keys.isin(keys[refused]) & (keys != b""))
