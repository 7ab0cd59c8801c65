"""Checks of answers of translators and language models, and repair of damaged characters.

Servers send error pages with status 200, answers to other requests, remarks, loops and half sentences. Since lists of
wrong forms never end, an answer is compared with the form of a right one:

* A translation is one bare text like its original: characters of writing, no marks around it that the original lacks,
  no further sentence, the same kind of end, no loop, a similar length, in its language (``translation_fault``).
* A completion is a list of exactly the requested sentences (``items_in``); each is one plain sentence
  (``sentence_fault``).

A round trip checks whether a translation has the meaning of its original (``trip_fault``,
``jobs.compare_round_trips``). A fault is a short reason, the same for all answers with this fault, so reports can count
them.

Languages are detected by py3langid, naive Bayes over byte n-grams for 140 languages. An answer is rejected if the
probability of its language is below 0.01. This rejects none of 907 sentences of Wikipedia translated by Apertium to
Spanish and Catalan and back. Of the same texts passed off as another of these languages it accepts 0.2 to 0.4%, and 9%
of Spanish ones passed off as Catalan.
"""

# ruff: noqa: RUF001  (marks of many scripts)
import html
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache
from itertools import pairwise
from typing import Any

import ftfy
from ftfy.badness import is_bad

# A text and its translation differ in length at most by a factor of 3, and a word or two.
_LENGTH_RATIO = 3
_LENGTH_SLACK = 20  # bytes
_MIN_LETTERS = 20  # the language of a shorter text is uncertain
_MIN_PROBABILITY = 0.01
_SAME_WORDS = 0.5  # texts with a smaller fraction of words in common are different texts
_MIN_WORDS = 4  # several shorter texts may have the same translation
_CODES = {
    "eng": "en", "spa": "es", "cat": "ca", "glg": "gl", "epo": "eo", "fra": "fr", "deu": "de", "nld": "nl", "rus": "ru",
    "zho": "zh",
    "jpn": "ja", "ita": "it", "por": "pt", "iw": "he", "nb": "no", "english": "en", "spanish": "es",
    "catalan": "ca", "galician": "gl", "esperanto": "eo", "french": "fr", "german": "de", "dutch": "nl",
    "russian": "ru", "chinese": "zh", "japanese": "ja", "italian": "it", "portuguese": "pt",
}  # fmt: skip
"""Codes of ISO 639-1 for languages that engines name differently."""


# Characters

_ALPHABETS = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "HEBREW", "ARABIC", "GEORGIAN"})
"""Scripts that do not mix in a word: look-alikes of letters belong to another script."""
_SIGNS = frozenset("*_{}[]\\#&@|^~<>=+`•‣◦†‡※")
"""Characters of markup, lists, tables and code; a translation must have those of its original."""
_WRITING = ("L", "M", "Nd", "Zs", "P", "Sc")
"""Unicode categories of the characters of plain text."""
_ALSO_WRITING = frozenset("\t\n\r°$+ºª\u200c\u200d")


def repaired(answer: str, question: str = "") -> str:
    """Return an answer with usual damage of its characters undone, unless the question has such characters too.

    HTML entities, also those encoded twice, and text in UTF-8 that was read in another encoding are decoded. Characters
    without a width (directions, soft hyphens, byte order marks) are removed; joiners stay between letters of scripts
    that need them.
    """
    if "&" not in question:
        answer = html.unescape(html.unescape(answer))
    if not is_bad(question):
        answer = ftfy.fix_encoding(answer)
    kept = (
        letter
        for before, letter in zip(" " + answer, answer, strict=False)
        if unicodedata.category(letter) != "Cf" or letter in question or _joins(before, letter)
    )
    return unicodedata.normalize("NFC", "".join(kept)).strip()


def _joins(before: str, letter: str) -> bool:
    """Return whether a joiner follows a letter of a script in which joiners change the form of letters."""
    return letter in "\u200c\u200d" and _script(before) not in {"", "LATIN", "CYRILLIC", "GREEK", "CJK"}


@cache
def _script(letter: str) -> str:
    """Return the script of a letter or mark, by its name in Unicode; empty for other characters."""
    is_letter = unicodedata.category(letter)[0] in "LM"
    return unicodedata.name(letter, "").partition(" ")[0] if is_letter else ""


def text_fault(answer: str, question: str) -> str | None:
    """Return the fault of an answer as text (invalid Unicode, control characters, no letter); None if it has none."""
    categories = {unicodedata.category(letter) for letter in set(answer) - {*question, *"\t\n\r"}}
    if categories & {"Cs", "Cc", "Co", "Cn"} or ("\ufffd" in answer and "\ufffd" not in question):
        return "broken characters"  # lone surrogates, controls, private use, unassigned, undecodable bytes
    if not any(map(str.isalnum, answer)) and any(map(str.isalnum, question)):
        return "empty"
    return None


def character_fault(answer: str, question: str) -> str | None:
    """Return the fault of an answer with characters that plain text or its original lacks; None if it has none."""
    if fault := text_fault(answer, question):
        return fault
    if is_bad(answer) and not is_bad(question):
        return "mojibake"
    added = {*answer} - {*question}
    if "\n" in added or "\u2028" in added:
        return "several lines"
    if added & _SIGNS or any(not _is_writing(letter) for letter in added):
        return "markup"
    if any(map(_is_mixed, answer.split())) and not any(map(_is_mixed, question.split())):
        return "letters of two alphabets in a word"
    return None


def _cries(text: str) -> int:
    """Return the number of question and exclamation marks, which also replace letters that could not be encoded."""
    marks = unicodedata.normalize("NFKC", text)
    return sum(marks.count(mark) for mark in "?!؟")


def _is_writing(letter: str) -> bool:
    return unicodedata.category(letter).startswith(_WRITING) or letter in _ALSO_WRITING


def _is_mixed(word: str) -> bool:
    return len({*map(_script, word)} & _ALPHABETS) > 1


# The shape of a translation

_CLOSERS = "\"'”’»›)\\]」』》"
_END = re.compile(rf"[.!?…。！？।॥؟۔։།။៕·।;]+[{_CLOSERS}\s]*$")
_DOTS = ("…", "...")
_NO_ENDS = frozenset({"THAI", "LAO"})
"""Scripts whose sentences end without punctuation."""
_NEXT = re.compile(
    rf"(?:([^\W_]{{3,}})[{_CLOSERS}]*\.|[!?…。！？।؟])[{_CLOSERS}]*(?:\s+|(?<=[。！？]))[^\W_]"
)
"""Pattern of the end of a sentence before the beginning of another; most abbreviations have fewer letters."""
_TITLES = frozenset({
    "sra", "sras", "sres", "srta", "dra", "dras", "profa", "gral", "hno", "hna", "mme", "mlle", "mgr", "hrn", "frl",
    "sig", "sigg", "dott", "exmo", "exma", "mons", "arq", "lic",
})  # fmt: skip
"""Longer abbreviations before names."""
_MAX_ABBREVIATION = 5  # letters of abbreviations before numbers, such as "pág. 5" or "aprox. 5"
_BRACKETS = re.compile(r"[(（\[【〔]")
_COLON = re.compile(r"(?<!\d)[:：]|[:：](?!\d)")
_PAUSE = re.compile(r"[—–;]")  # may become a colon
_OPENERS = "\"'“‘„‚«‹「『《¿¡("
_QUOTES = re.compile(r"[\"“”„‟«»‹›「」『』《》]")
_QUOTED = re.compile(r"[\"'“‘„‚«‹「『《].*[\"'”’“‘»›」』》][.。]?", re.DOTALL)


def shape_fault(answer: str, question: str) -> str | None:
    """Return the fault of an answer with labels, remarks or quotes that its question lacks, or a cut end; else None."""
    answer, question = answer.strip(), question.strip()
    begins = answer.lstrip(_OPENERS + " ")
    if question[:1].isalnum() and not begins[:1].isalnum():
        return "other marks around it"
    if _QUOTED.fullmatch(answer) and not _QUOTED.fullmatch(question):
        return "other marks around it"
    if len(_BRACKETS.findall(answer)) > len(_BRACKETS.findall(question)):
        return "a remark in brackets"
    if len(_COLON.findall(answer)) > len(_COLON.findall(question)) + len(_PAUSE.findall(question)):
        return "a label"
    if _cries(answer) > _cries(question):
        return "question or exclamation marks"
    quotes = len(_QUOTES.findall(answer)) - len(_QUOTES.findall(question))
    if quotes > 2 or (quotes > 0 and quotes % 2):  # a pair may be added, around a title
        return "quotation marks"
    if answer.endswith(_DOTS) and not question.endswith(_DOTS):
        return "cut end"
    if _END.search(question) and not _END.search(answer) and not _NO_ENDS & {*map(_script, answer)}:
        return "cut end"
    if sentences(answer, surely=True) > sentences(question):
        return "more sentences"
    if answer.isupper() and not question.isupper():
        return "capitals"
    return "a loop" if is_loop(answer) and not is_loop(question) else None


def sentences(text: str, *, surely: bool = False) -> int:
    """Return the number of sentences of a text, by their ends.

    Args:
        text: The text.
        surely: Whether abbreviations before names and numbers end no sentence; otherwise, they may.
    """
    ends = (end for end in _NEXT.finditer(text) if not end[0][-1].islower())
    return 1 + sum(not (surely and _is_abbreviation(end[1], end[0][-1])) for end in ends)


def _is_abbreviation(word: str | None, first: str) -> bool:
    """Return whether a word before a full stop may be an abbreviation, by the first character after that."""
    if word is None:
        return False
    return word.casefold() in _TITLES or (
        first.isdigit() and word.isalpha() and len(word) <= _MAX_ABBREVIATION
    )


def is_loop(text: str) -> bool:
    """Return whether words or characters of a text loop: a repeated phrase, or few distinct n-grams.

    A phrase loops if it occurs four times in a row, three times if it has several words, twice if it has five.
    """
    words = _words(text)
    for period in range(1, len(words) // 2 + 1):
        copies = 4 if period == 1 else 3 if period < 5 else 2
        if _longest_run(words, period) >= (copies - 1) * period:
            return True
    letters = "".join(words)
    if any(
        _longest_run(letters, period) >= max(12, 3 * period) for period in range(1, len(letters) // 4 + 1)
    ):
        return True
    pairs = [*pairwise(words)]
    if sum(before == after for before, after in pairs) >= 4:
        return True
    return len(pairs) >= 10 and len({*pairs}) < 0.6 * len(pairs)


def _longest_run(items: Sequence[str], period: int) -> int:
    """Return the maximum number of consecutive items that equal the item one period before."""
    run = longest = 0
    for before, item in zip(items, items[period:], strict=False):
        run = run + 1 if item == before else 0
        longest = max(longest, run)
    return longest


# Translations

_ERROR = re.compile(
    r"error\s*[45]\d\d\b|\b[45]\d\d\s+(?:error|too many|bad request|forbidden|internal|bad gateway|service unav)"
    r"|that.s an error|that.s all we know|too many requests|rate limit|quota (?:is |was )?exceeded|mymemory warning",
    re.IGNORECASE,
)
"""Messages that translators sometimes send instead of a translation; such requests are sent again."""


def error_text(answer: str, question: str) -> str | None:
    """Return the fault of an answer that is a server's message, which may be temporary; None if it is not.

    Args:
        answer: The answer.
        question: The text of the request; the translation of a text about errors may look like an error.
    """
    if "<" in answer and "<" not in question:
        return "markup"
    return "error message" if _ERROR.search(answer) and not _ERROR.search(question) else None


def translation_fault(text: str, answer: str, source: str, target: str) -> str | None:
    """Return the fault of a translation; None if it is usable.

    Args:
        text: The original.
        answer: Its translation.
        source: Language of the text, by the engine's code.
        target: Language of the answer.
    """
    if fault := character_fault(answer, text) or error_text(answer, text):
        return fault
    longer, shorter = sorted((len(answer.encode()), len(text.encode())), reverse=True)
    if longer > _LENGTH_RATIO * shorter + _LENGTH_SLACK:
        return "too long" if len(answer) > len(text) else "too short"
    if fault := shape_fault(answer, text):
        return fault
    return f"not in {target}" if not is_in(answer, target) and is_in(text, source) else None


_LEFT = 0.3  # none of Apertium's 4,000 round trips through Spanish and Catalan has as many words of the pivot
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def trip_fault(sentence: str, pivot: str, back: str) -> str | None:
    """Return the fault of a round trip, compared with its sentence in the same language; None if it is usable.

    Args:
        sentence: The original.
        pivot: Its translation.
        back: The translation of that.
    """
    if fault := character_fault(back, sentence) or shape_fault(back, sentence):
        return fault
    if {_script(letter) for letter in back if letter.isalpha()} - {*map(_script, sentence)}:
        return "letters of another script"
    if not {*_numbers(back)} <= {*_numbers(sentence), *re.findall(r"\d+", sentence)}:
        return "other numbers"
    original, between, returned = map(_words, (sentence, pivot, back))
    left = sum(word in between and word not in original for word in returned)
    if left > _LEFT * len(returned) or _has_left(sentence, pivot) or _has_left(pivot, back):
        return "partly untranslated"
    return None


def _has_left(text: str, translation: str) -> bool:
    """Return whether a translation keeps a phrase of its original: four words, no names, and a third of the text."""
    before, after = text.split(), translation.split()
    start, _, size = SequenceMatcher(None, before, after, autojunk=False).find_longest_match()
    common = sum(word[0].islower() for word in before[start : start + size])
    return common >= 4 and size >= _LEFT * len(before)


def _numbers(text: str) -> Iterator[str]:
    """Yield the numbers of a text in digits, without separators."""
    return (re.sub(r"\D", "", number) for number in _NUMBER.findall(text))


def _words(text: str) -> list[str]:
    return [word.strip(".,;:!?…\"'()") for word in text.casefold().split()]


def is_in(text: str, language: str) -> bool:
    """Return whether a text may be in a language; true for short texts, and for languages unknown to the detector."""
    name = language.casefold().partition("-")[0]
    code = _CODES.get(name, name)
    if sum(map(str.isalpha, text)) < _MIN_LETTERS or code not in language_detector().labels:
        return True
    return float(dict(language_detector().rank(text))[code]) >= _MIN_PROBABILITY


def likely_language(text: str) -> str:
    """Return the most probable language of a text, as a code of ISO 639-1."""
    return str(language_detector().classify(text)[0])


@cache
def language_detector() -> Any:
    """Return py3langid's language detector; the first call takes half a second."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def repeated(pairs: Iterable[tuple[str, str]]) -> set[str]:
    """Return answers that several different texts share; these must be messages of the server.

    Args:
        pairs: Texts and their answers.
    """
    first: dict[str, set[str]] = {}
    shared = set()
    for text, answer in pairs:
        words = set(text.casefold().split())
        if len(words) >= _MIN_WORDS:
            other = first.setdefault(answer, words)
            if len(words & other) < _SAME_WORDS * min(len(words), len(other)):
                shared.add(answer)
    return shared


# Completions

_GOOD_ENDS = {
    "unknown", "stop", "eos", "eos_token", "end_turn", "stop_sequence", "end", "complete", "completed", "finished",
}  # fmt: skip
_THOUGHT_ENDS = re.compile(
    r"</(?:\w+:)?th(?:ink(?:ing)?|ought)>|\[/THINK\]|<\|end_of_thought\|>|<\|channel\|>final<\|message\|>"
)
"""Tokens of common models between reasoning and answer, which servers may leave in the text."""
_TOKENS = re.compile(r"(?:<[|｜][^<>\n]{1,40}[|｜]>|</?s>|<eos>|<end_of_turn>|```)$")
_FENCE = re.compile(r"^```\w*\n")
_MARKERS = (re.compile(r"(\d{1,3})[.)]\s+"), re.compile(r"[-*•]\s+()"), re.compile(r"()"))
"""Pattern of the marks of a list's items: numbers, bullets, or none."""
_PAIRS = (("**", "**"), ('"', '"'), ("“", "”"))
"""Marks around each item of a list that are removed."""


def completion_fault(completion: str, finish_reason: str, count: int | None) -> str | None:
    """Return the fault of a completion that should be only a list of sentences; None if it is usable.

    Args:
        completion: Text that a model wrote.
        finish_reason: Reason of its end; "unknown" if the server gives none.
        count: Number of requested sentences; None for any text.
    """
    if finish_reason in ("content_filter", "refusal"):
        return finish_reason.replace("_", " ")
    if not completion.strip():
        return "empty"
    if finish_reason.casefold() not in _GOOD_ENDS:
        return "cut off"
    if count is None:
        return text_fault(completion, "")
    items = items_in(completion, count)
    if items is None:
        return f"not a list of {count} sentences"
    return next(filter(None, map(sentence_fault, items)), None)


def items_in(completion: str, count: int) -> list[str] | None:
    """Return the items of a list of exactly ``count`` texts, which must be the complete answer; None if it is not.

    The list is a JSON value with ``count`` texts, or lines: all with the numbers 1 to ``count``, all with bullets, or
    all without marks. Lines with marks may follow a line that ends with a colon. Reasoning of common models, a code
    fence and end tokens around the list are removed.
    """
    text = _THOUGHT_ENDS.split(repaired(completion))[-1].strip()
    text = _FENCE.sub("", _TOKENS.sub("", text).rstrip())
    if (texts := _texts_of_json(text)) is not None:
        return [item.strip() for item in texts] if len(texts) == count else None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) == count + 1 and lines[0].endswith(":"):
        if _MARKERS[-1].fullmatch(_mark(lines[1])):
            return None
        lines = lines[1:]
    marks = [_mark(line) for line in lines]
    numbers = [mark.rstrip(".) \t") for mark in marks]
    if len(lines) != count or (
        len({*marks}) > 1 and numbers != [str(number) for number in range(1, count + 1)]
    ):
        return None
    return _bare([line[len(mark) :] for line, mark in zip(lines, marks, strict=True)])


def _texts_of_json(text: str) -> list[str] | None:
    """Return the texts in a JSON value or in JSON lines, one for each object of a list; None if it is no JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict) and len(value) == 1:
        (value,) = value.values()
    if not isinstance(value, list):
        return None
    each = [
        [part for part in item.values() if isinstance(part, str)] if isinstance(item, dict) else [item]
        for item in value
    ]
    flat = [texts[0] if len(texts) == 1 else None for texts in each]
    return [item if isinstance(item, str) else "" for item in flat]


def _mark(line: str) -> str:
    match = next(filter(None, (marker.match(line) for marker in _MARKERS)))
    return match[0]


def _bare(items: list[str]) -> list[str]:
    """Return items without the marks around them, if all have the same marks."""
    for begin, end in _PAIRS:
        if all(item.startswith(begin) and item.endswith(end) for item in items):
            return [item[len(begin) : -len(end)] for item in items]
    return items


_PLAIN = re.compile(r"[^\W\d_](?:[^\W_]|[ ,;'’“”\"\-–—%$€£]|\.(?=\S))*[^\W_“”\"][.!?]")
_BREAK = re.compile(r"[.!?…]\s|[.!?][^\W\d_]{3}")


def sentence_fault(text: str) -> str | None:
    """Return the fault of a text that should be one plain sentence; None if it is one.

    A plain sentence begins with a capital letter, has only words, numbers and usual punctuation, ends with its only
    full stop, question or exclamation mark, and repeats no phrase. Colons are refused because they follow labels.
    """
    if fault := character_fault(text, ""):
        return fault
    if not _PLAIN.fullmatch(text) or not (text[0].isupper() or text[0].lower() == text[0].upper()):
        return "no plain sentence"
    if _BREAK.search(text[:-1]):
        return "more than a sentence"
    if text.isupper() or len({_script(letter) for letter in text if letter.isalpha()}) > 1:
        return "no plain sentence"
    return "a loop" if is_loop(text) else None
