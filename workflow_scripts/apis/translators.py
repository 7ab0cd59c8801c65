"""Translators with a common interface: Apertium on this machine, Google and LibreTranslate through deep-translator.

deep-translator sets no timeout, hides the Retry-After header, and sends LibreTranslate's key and text in the URL,
where servers log them. It makes its requests through the name ``requests`` in its modules; here, that name is bound
to a session that fixes all three.
"""

import hashlib
import re
import shutil
import subprocess
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import requests
from pydantic import Field

from workflow_scripts.apis.calls import (
    Caller,
    Calls,
    Refused,
    Transient,
    Unusable,
    key_from,
    raise_for_status,
    redacted,
)
from workflow_scripts.apis.store import AnswerStore, key_of
from workflow_scripts.config import Settings
from workflow_scripts.errors import ApiError
from workflow_scripts.progress import Progress


class ApertiumBlock(Settings):
    """Apertium, a rule-based engine, as a command on this machine."""

    engine: Literal["apertium"]
    batch_sentences: int = Field(
        gt=0, description="Sentences in one call of the command, about a second's work."
    )
    timeout_seconds: float = Field(gt=0, description="Longest time for one batch.")


class GoogleBlock(Settings):
    """Google Translate's page for mobile phones, through deep-translator; needs no key."""

    engine: Literal["google"]
    calls: Calls


class LibreTranslateBlock(Settings):
    """A LibreTranslate server, through deep-translator."""

    engine: Literal["libretranslate"]
    url: str = Field(pattern=r"^https?://[^\s@?#]+/$", description="URL of the server, ending in a slash.")
    key_variable: str | None = Field(
        pattern=r"^[A-Z][A-Z0-9_]*$", description="Environment variable that holds the key; null: no key."
    )
    calls: Calls


TranslatorBlock = Annotated[ApertiumBlock | GoogleBlock | LibreTranslateBlock, Field(discriminator="engine")]


class TranslatorSlice(Settings):
    """One block of ``translators``."""

    translator: TranslatorBlock


class Translator(Protocol):
    """One engine and one direction."""

    identity: dict[str, str]
    """Engine, version and languages: everything but the text that determines a translation."""
    batch_sentences: int
    """Sentences in one call of ``translate``, after which answers are stored."""

    def translate(self, sentences: Sequence[str]) -> list[str | None]:
        """Translations in the same order; None for a sentence that the engine refuses.

        Raises:
            ApiError: if the engine cannot be used any more.
        """


def translator_of(block: TranslatorBlock, place: str, source: str, target: str) -> Translator:
    """The translator that a block of the configuration describes.

    Args:
        block: One block of ``translators``.
        place: Its name, for messages.
        source: Language to translate from, as the engine writes it.
        target: Language to translate into.

    Raises:
        ApiError: if the engine, the languages or the key are missing.
    """
    if isinstance(block, ApertiumBlock):
        return Apertium(block, place, source, target)
    return Web(block, place, source, target)


# Apertium


MODES = Path("/usr/share/apertium/modes")
_DATA_FILE = re.compile(r"'(/[^']+)'")


class Apertium:
    """The command ``apertium``, a batch of lines at a time.

    Uses the default format instead of ``-f line``, which drops full stops and is five times slower. Apertium might
    join lines, so their number is checked.
    """

    def __init__(self, block: ApertiumBlock, place: str, source: str, target: str) -> None:
        """Arguments as in ``translator_of``."""
        self._place = place
        self._timeout = block.timeout_seconds
        self._pair = f"{source}-{target}"
        self.batch_sentences = block.batch_sentences
        self.identity = {"engine": "apertium", "version": self._version(), "from": source, "to": target}

    def _version(self) -> str:
        """Hash of the rules and dictionaries: packages with the same version differ between platforms."""
        mode = MODES / f"{self._pair}.mode"
        if not shutil.which("apertium") or not mode.exists():
            package = "-".join(sorted(self._pair.split("-"), key=lambda code: code != "eng"))
            advice = f"Install it, on Debian: apt-get install apertium apertium-{package}"
            raise ApiError(f"{self._place}: Apertium with the direction {self._pair} is not here. {advice}.")
        sha = hashlib.sha256()
        for file in [mode, *map(Path, _DATA_FILE.findall(mode.read_text("utf-8")))]:
            sha.update(file.read_bytes())
        return sha.hexdigest()[:16]

    def translate(self, sentences: Sequence[str]) -> list[str | None]:
        """Translations with white space normalised: a dropped pronoun leaves a space before its verb."""
        lines = "".join(f"{' '.join(sentence.split())}\n" for sentence in sentences)
        try:
            run = subprocess.run(
                ["apertium", "-u", self._pair],  # -u: do not mark unknown words
                input=lines.encode(),
                capture_output=True,
                timeout=self._timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            found = f"{len(sentences)} sentences took more than {self._timeout:g} s"
            raise ApiError(
                f"{self._place}: {found}. Raise timeout_seconds, or lower batch_sentences."
            ) from None
        translations = run.stdout.decode("utf-8", "replace").split("\n")[:-1]
        if run.returncode or len(translations) != len(sentences):
            said = redacted(run.stderr.decode("utf-8", "replace"), None) or "no message"
            found = f"{len(translations)} lines for {len(sentences)}, exit code {run.returncode} ({said})"
            raise ApiError(f"{self._place}: apertium {self._pair} returned {found}. Lower batch_sentences.")
        return [" ".join(translation.split()) for translation in translations]


# Over the network


class _Session(requests.Session):
    """A session that deep-translator uses instead of ``requests``."""

    def __init__(self, timeout: float, place: str, key: str | None) -> None:
        super().__init__()
        self._timeout = timeout
        self._place = place
        self._key = key

    def request(self, *arguments: Any, **settings: Any) -> requests.Response:
        """Make a request with a timeout; failures are sorted into the three kinds."""
        try:
            response = super().request(*arguments, **settings | {"timeout": self._timeout})
        except requests.RequestException as error:  # its text may contain the URL
            raise Transient(type(error).__name__) from None
        raise_for_status(response.status_code, response.headers, self._said(response), self._place)
        return response

    def _said(self, response: requests.Response) -> str:
        return redacted(response.text, self._key) if response.status_code >= 400 else ""

    def post(self, url: Any, data: Any = None, json: Any = None, **settings: Any) -> requests.Response:
        """Make a request with the parameters in the body instead of the URL."""
        return super().post(url, data=settings.pop("params", data), json=json, **settings)


class Web:
    """Google Translate or a LibreTranslate server, one sentence per request."""

    batch_sentences = 1

    def __init__(
        self, block: GoogleBlock | LibreTranslateBlock, place: str, source: str, target: str
    ) -> None:
        """Arguments as in ``translator_of``."""
        from deep_translator.exceptions import BaseError, NotValidLength

        self._place = place
        self._caller = Caller(block.calls, place)
        self._too_long = NotValidLength
        self._unusable = (
            ValueError,
            KeyError,
            TypeError,
            BaseError,
        )  # not JSON, or JSON without a translation
        server = block.url if isinstance(block, LibreTranslateBlock) else "translate.google.com"
        self.identity = {
            "engine": block.engine,
            "version": f"{server} by deep-translator {version('deep-translator')}",
            "from": source,
            "to": target,
        }
        self._key = key_from(getattr(block, "key_variable", None), place)
        self.session = _Session(block.calls.timeout_seconds, place, self._key)
        try:
            self._engine = self._make(block, source, target)
        except BaseError as error:
            found = redacted(str(error), self._key)
            raise ApiError(f"{place}: {source} to {target}: {found}. Name languages it supports.") from None

    def _make(self, block: GoogleBlock | LibreTranslateBlock, source: str, target: str) -> Any:
        module = import_module(
            {"google": "deep_translator.google", "libretranslate": "deep_translator.libre"}[block.engine]
        )
        module.requests = self.session  # type: ignore[attr-defined]  # see this module's docstring
        if isinstance(block, GoogleBlock):
            return module.GoogleTranslator(source=source, target=target)
        key = self._key or "none"  # deep-translator requires one; servers without keys ignore it
        return module.LibreTranslator(source=source, target=target, api_key=key, custom_url=block.url)

    def translate(self, sentences: Sequence[str]) -> list[str | None]:
        """Translations of ``sentences``, requested one by one."""
        return [self._one(sentence) for sentence in sentences]

    def _one(self, sentence: str) -> str | None:
        try:
            return self._caller.call(lambda: self._ask(sentence))
        except Refused:
            return None

    def _ask(self, sentence: str) -> str:
        try:
            answer = self._engine.translate(sentence)
        except self._too_long as error:
            raise Refused(str(error)) from None
        except self._unusable as error:
            raise Unusable(f"an answer without a translation ({type(error).__name__})") from None
        if answer is None:  # deep-translator's answer if Google returns a text without letters
            return sentence
        if not isinstance(answer, str):
            raise Unusable("an answer whose translation is not text")
        return answer


# With the store


_IN_A_ROW = (
    5  # after so many sentences without a translation in a row, the engine is at fault, not the sentences
)


def translate_all(
    sentences: Sequence[str | None],
    translator: Translator,
    store: AnswerStore,
    *,
    place: str,
    offline: bool,
    refusals: int,
) -> list[str | None]:
    """Translate ``sentences``, requesting only what is not in the store; answers are stored batch by batch.

    Args:
        sentences: Texts, equal ones translated once; None, for a text without a translation so far, stays None.
        translator: Engine and direction.
        store: Answers so far.
        place: Block of the configuration, for messages.
        offline: Use only answers in the store.
        refusals: Stop when the engine has refused more sentences than this.

    Returns:
        Translations in order; None for sentences that the engine refused, which are requested again next time.

    Raises:
        ApiError: if the engine cannot be used any more, or the study is offline and answers are missing.
    """
    keys = [key_of(translator.identity | {"text": sentence}) for sentence in sentences]
    texts = {key: text for key, text in zip(keys, sentences, strict=True) if text is not None}
    answers = store.find(list(texts))
    missing = {key: text for key, text in texts.items() if key not in answers}
    if missing and offline:
        found = f"{len(missing)} of {len(answers) + len(missing)} answers are not in the store"
        raise ApiError(f"{place}: {found}, and the study is offline. Run it once with offline: false.")
    refused, in_a_row, waiting = 0, 0, list(missing.items())
    name = f"{translator.identity['from']} to {translator.identity['to']}"
    with Progress(len(texts), name, "sentence", done=len(answers)) as progress:
        for start in range(0, len(waiting), translator.batch_sentences):
            batch = waiting[start : start + translator.batch_sentences]
            translations = translator.translate([text for _key, text in batch])
            given = {
                key: text for (key, _), text in zip(batch, translations, strict=True) if text is not None
            }
            answers |= store.settle(given)
            refused += len(batch) - len(given)
            in_a_row = 0 if given else in_a_row + len(batch)
            if refused > refusals or in_a_row >= _IN_A_ROW:
                found = f"no translation of {refused} of {start + len(batch)} sentences"
                raise ApiError(f"{place}: {found}. The others are kept; check what the engine answers.")
            progress.update(len(batch))
    assert len(keys) == len(sentences)
    return [answers.get(key) for key in keys]
