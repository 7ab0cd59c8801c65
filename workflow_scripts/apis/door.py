"""The check at the door: which answers of translators and language models are none.

Servers answer with error pages and status 200, in another language, or in the same words whatever they are asked; such
an answer must not become training text. A fault is a short reason, the same for all answers with that fault, so that
reports can count them.

Languages are told by py3langid, naive Bayes over byte n-grams for 140 languages. An answer is rejected if its language
has less than one chance in a hundred. Of 907 sentences of Wikipedia translated by Apertium to Spanish and Catalan and
back, this rejects none; of the same texts given for another of these languages it lets 0.2 to 0.4% pass, and 9% of
Spanish ones given for Catalan.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from functools import cache
from typing import Any

_ERROR = re.compile(
    r"error\s*[45]\d\d\b|\b[45]\d\d\s+(?:error|too many|bad request|forbidden|internal|bad gateway|service unav)"
    r"|that.s an error|that.s all we know|too many requests|internal server error|bad gateway"
    r"|service (?:is )?(?:temporarily )?unavailable"
    r"|gateway time-?out|rate limit|quota (?:is |was )?exceeded|unusual traffic|captcha|access denied|mymemory warning"
    r"|please (?:log|sign) in to|enable javascript|invalid api key|request (?:has )?timed out",
    re.IGNORECASE,
)
_MARKUP = re.compile(
    r"<!doctype|</?(?:html|head|body|div|span|p|br|a|b|i|font|script|title|h[1-6])\b[^<>]*>|&(?:nbsp|amp|lt|gt|quot|#\d+);",
    re.IGNORECASE,
)
_TIMES, _SLACK = (
    3,
    20,
)  # bytes: no translation is longer than three times the text and a word or two, or shorter
_LETTERS = 20  # shorter texts are of no clear language
_LEAST_CHANCE = 0.01
_SAME_WORDS = 0.5  # texts that share fewer of their words are different texts
_WORDS = 4  # of a text; shorter ones may well have one translation
_DIFFERENT = (
    3  # texts with the same answer: two may say the same, as "He left." and "She left." do in Spanish
)
_CODES = {
    "eng": "en", "spa": "es", "cat": "ca", "glg": "gl", "epo": "eo", "fra": "fr", "deu": "de", "nld": "nl", "rus": "ru",
    "zho": "zh",
    "jpn": "ja", "ita": "it", "por": "pt", "iw": "he", "nb": "no", "english": "en", "spanish": "es",
    "catalan": "ca", "galician": "gl", "esperanto": "eo", "french": "fr", "german": "de", "dutch": "nl",
    "russian": "ru", "chinese": "zh", "japanese": "ja", "italian": "it", "portuguese": "pt",
}  # fmt: skip
"""Names that engines have for languages, where they are not the codes of ISO 639-1."""


def error_text(answer: str, asked: str) -> str | None:
    """Whether a server's message stands where an answer should: a fault of the server, which may pass.

    Args:
        answer: What came.
        asked: What was asked: a text about errors may be translated as one.
    """
    if _MARKUP.search(answer) and not _MARKUP.search(asked):
        return "markup"
    if _ERROR.search(answer) and not _ERROR.search(asked):
        return "error message"
    return None


def translation_fault(text: str, answer: str, source: str, target: str) -> str | None:
    """What is wrong with a translation of ``text``; None if nothing is.

    Args:
        text: What was translated.
        answer: Its translation.
        source: Language of the text, as the engine writes it.
        target: Language of the answer.
    """
    if fault := text_fault(answer, text) or error_text(answer, text):
        return fault
    longer, shorter = sorted((len(answer.encode()), len(text.encode())), reverse=True)
    if longer > _TIMES * shorter + _SLACK:
        return "too long" if len(answer) > len(text) else "too short"
    if _is_one_word(answer) and not _is_one_word(text):
        return "one word over and over"
    if not is_in(answer, target) and is_in(text, source):
        return f"not in {target}"
    return None


def text_fault(answer: str, asked: str) -> str | None:
    """What is wrong with an answer as a text: no valid Unicode, control characters, nothing in it."""
    if any(_is_broken(letter) for letter in set(answer) - set(asked)):
        return "broken characters"
    if not any(map(str.isalnum, answer)) and any(map(str.isalnum, asked)):
        return "empty"
    return None


def _is_broken(letter: str) -> bool:
    """Lone surrogates, control characters, the replacement character, private use (symbols of some fonts)."""
    return letter == "\ufffd" or (
        unicodedata.category(letter) in ("Cs", "Cc", "Co", "Cn") and letter not in "\t\n\r"
    )


def _is_one_word(text: str) -> bool:
    words = text.casefold().split()
    return len(words) >= 8 and Counter(words).most_common(1)[0][1] > len(words) / 2


def is_in(text: str, language: str) -> bool:
    """Whether a text may be in a language; True for a short text, and a language that the detector does not know."""
    code = _code(language)
    if sum(map(str.isalpha, text)) < _LETTERS or code not in _detector().labels:
        return True
    return float(dict(_detector().rank(text))[code]) >= _LEAST_CHANCE


def language_of(text: str) -> str:
    """The language that a text is most likely in, by its code of ISO 639-1."""
    return str(_detector().classify(text)[0])


def _code(language: str) -> str:
    name = language.casefold().partition("-")[0]
    return _CODES.get(name, name)


@cache
def _detector() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # half a second

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def repeated(pairs: Iterable[tuple[str, str]]) -> set[str]:
    """Answers that were given to several different texts, which only a message can be.

    Args:
        pairs: Texts and their answers.
    """
    texts: dict[Hashable, list[set[str]]] = defaultdict(list)
    for text, answer in pairs:
        different = texts[answer]
        words = set(text.casefold().split())
        if len(words) < _WORDS:
            continue
        if len(different) < _DIFFERENT and all(_overlap(words, other) < _SAME_WORDS for other in different):
            different.append(words)
    return {str(answer) for answer, different in texts.items() if len(different) == _DIFFERENT}


def _overlap(words: set[str], other: set[str]) -> float:
    return len(words & other) / max(1, min(len(words), len(other)))


# Completions


_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.IGNORECASE | re.DOTALL)
_REFUSAL = re.compile(
    r"^\W*(?:i.m sorry|i am sorry|sorry, |i can.?not|i can.t|i.m unable|i am unable|i won.t|as an? (?:ai|large) )",
    re.IGNORECASE,
)


def without_thinking(completion: str) -> str:
    """A completion without what a model thinks aloud; thought that does not end leaves nothing after it."""
    kept = _THINKING.sub("", completion)
    return kept.rpartition("</think>")[2] if "</think>" in kept else kept  # of models whose template opens it


def completion_fault(completion: str, finish_reason: str, prompt: str) -> str | None:
    """What is wrong with a whole completion; its lines are looked at one by one (``data.exemplars``)."""
    if finish_reason in ("content_filter", "refusal"):
        return finish_reason.replace("_", " ")
    said = without_thinking(completion).strip()
    if not said:
        return "thinking alone" if completion.strip() else "empty"
    if _REFUSAL.match(said):
        return "refusal"
    return text_fault(said, prompt) or error_text(said, prompt)
