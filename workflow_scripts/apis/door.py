"""The check at the door: which answers of translators and language models are none.

Servers answer with error pages and status 200, in another language, in the same words whatever they are asked, or with
what belongs to another request; models talk about what they do, or decline to. Such an answer must not become training
text. A fault is a short reason, the same for all answers with that fault, so that reports can count them.

Languages are told by py3langid, naive Bayes over byte n-grams for 140 languages. An answer is rejected if its language
has less than one chance in a hundred. Of 907 sentences of Wikipedia translated by Apertium to Spanish and Catalan and
back, this rejects none; of the same texts given for another of these languages it lets 0.2 to 0.4% pass, and 9% of
Spanish ones given for Catalan.

Whose translation an answer is shows when it has been translated back: it has more in common with its own text than with
the texts before and after it. Of 1,000 consecutive sentences of Wikipedia through Spanish, and as many through Catalan
(Apertium), this rejects none; of the same answers moved by one sentence it lets none pass, and 7% of those moved by a
hundred. Where neighbours are paraphrases of each other, as in SICK, it rejects 3 of 600, and finds 94% of those moved.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from workflow_scripts.apis.wrappers import leftover, without_thinking

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
_NEIGHBOURS = 16  # texts before a text, and as many after it
_CLEARLY = (
    1.1  # a neighbour that is a paraphrase may be a little more like a translation than the text itself
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
    if _adds(_MARKUP, answer, asked):
        return "markup"
    return "error message" if _adds(_ERROR, answer, asked) else None


def _adds(pattern: re.Pattern[str], answer: str, asked: str) -> bool:
    """Whether an answer has something that was not asked for."""
    return pattern.search(answer) is not None and pattern.search(asked) is None


def translation_fault(text: str, answer: str, source: str, target: str) -> str | None:
    """What is wrong with a translation of ``text``; None if nothing is.

    A text may itself be about a translation, or decline something.

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
    if _adds(_DECLINES, answer, text):
        return "refusal"
    opens = _OPENING.search(answer) and not re.search(_COLON, text)
    return "chatter" if opens or _adds(_CHATTER, answer, text) else leftover(answer, text)


def of_another(texts: Sequence[str], returned: Sequence[str | None]) -> list[bool]:
    """For each text, whether what came back of it is clearly more like one of its neighbours than like itself.

    Likeness is what chrF measures, for n-grams of three characters alone, precision and recall weighing the same.

    Args:
        texts: In the order in which they were translated.
        returned: Their translations translated back; None where there is none.
    """
    trigrams = [_trigrams(text) for text in texts]
    found = []
    for place, back in enumerate(map(_trigrams, returned)):
        around = trigrams[max(0, place - _NEIGHBOURS) : place + _NEIGHBOURS + 1]
        own = _CLEARLY * _likeness(back, trigrams[place])
        found.append(any(_likeness(back, other) > own for other in around))
    return found


def _trigrams(text: str | None) -> Counter[str]:
    line = " ".join((text or "").casefold().split())
    return Counter(line[start : start + 3] for start in range(len(line) - 2))


def _likeness(one: Counter[str], other: Counter[str]) -> float:
    return 2 * (one & other).total() / max(1, one.total() + other.total())


def text_fault(answer: str, asked: str) -> str | None:
    """What is wrong with an answer as a text: no valid Unicode, control characters, nothing in it."""
    if "\ue000" in answer and "\ue000" not in asked:
        return "markup"  # a token that was not taken off (apis.wrappers)
    kinds = {unicodedata.category(letter) for letter in set(answer) - {*asked, *"\t\n\r"}}
    if kinds & {"Cs", "Cc", "Co", "Cn"} or ("\ufffd" in answer and "\ufffd" not in asked):
        return "broken characters"  # lone surrogates, controls, symbols of some fonts; what could not be read
    if not any(map(str.isalnum, answer)) and any(map(str.isalnum, asked)):
        return "empty"
    return None


def _is_one_word(text: str) -> bool:
    words = text.casefold().split()
    return len(words) >= 8 and Counter(words).most_common(1)[0][1] > len(words) / 2


def is_in(text: str, language: str) -> bool:
    """Whether a text may be in a language; True for a short text, and a language that the detector does not know."""
    name = language.casefold().partition("-")[0]
    code = _CODES.get(name, name)
    if sum(map(str.isalpha, text)) < _LETTERS or code not in _detector().labels:
        return True
    return float(dict(_detector().rank(text))[code]) >= _LEAST_CHANCE


def language_of(text: str) -> str:
    """The language that a text is most likely in, by its code of ISO 639-1."""
    return str(_detector().classify(text)[0])


def load_detector() -> None:
    """Load the detector of languages now, which takes half a second."""
    _detector()


@cache
def _detector() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # half a second

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


_WORK = r"(?:translat|traduc|tradu[çz]|traduir|traduk|übersetz|vertal|перев|翻)"
_COLON = r"[:\uff1a]"
_BEFORE_COLON = r"[^:\uff1a]"
_CHATTER = re.compile(
    rf"\b{_WORK}\w* (?:is|reads|means|would|es|est|ist|lautet)\b|^(?:this|it|which) (?:means|translates|reads)\b|"
    r"^(?:in (?:english|spanish|catalan|french|german),|(?:sure|of course|certainly|okay|yes)[.,!])|"
    rf"^{_BEFORE_COLON}{{0,80}}{_WORK}{_BEFORE_COLON}{{0,60}}{_COLON}"
    r"|\((?:translator.s )?(?:notes?|nota|noto|remarque|anmerkung|opmerking|n\. ?b\.)\b"
    r"|\b(?:i hope this helps|let me know if|feel free to|would you like me to|i(?:.ve| have)? translated)\b"
    rf"|\b(?:my|literal|direct|faithful|alternative) {_WORK}",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"^\W*(?:here(?:.s| is| are)|sure|certainly|of course|absolutely|okay|aquí|claro|por supuesto|voici|bien sûr"
    r"|hier|natürlich|in (?:english|spanish|catalan|french|german)|the \w+ version|notes?|nota)\b"
    rf"{_BEFORE_COLON}{{0,60}}{_COLON}",
    re.IGNORECASE,
)
_SERVES = (
    rf"(?:help\w*|assist\w*|{_WORK}\w*|provid\w*|comply|complet\w*|generat\w*|writ\w*|fulfil\w*|process\w*|engag\w*|discuss"
    r"|continue|comfortable|requests?|content|guidelines?|polic(?:y|ies)|ayud\w*|aide\w*|helfen)"
)
_DECLINES = re.compile(
    r"\b(?:I|no|je|ich)\b[^.!?]{0,30}"
    r"(?:\b(?:(?:rather|prefer) not|not|cannot|unable|declin\w+|refuse|afraid|puedo|puc|peux pas|nicht)\b|n.t\b)"
    rf"[^.!?]{{0,40}}\b{_SERVES}\b"
    r"|^\W*I(?:.d| would) (?:rather|prefer) not\b"
    r"|\b(?:content|request|prompt|text|sentence)\b.{0,20}\b"
    r"(?:violates|is against|(?:was|been) (?:blocked|flagged|filtered)"
    rf"|(?:cannot|can.t|could not) be (?:{_WORK}|processed|completed))",
    re.IGNORECASE,
)


def repeated(pairs: Iterable[tuple[str, str]]) -> set[str]:
    """Answers that were given to several different texts, which only a message can be.

    Args:
        pairs: Texts and their answers.
    """
    first: dict[str, set[str]] = {}
    found = set()
    for text, answer in pairs:
        words = set(text.casefold().split())
        if len(words) >= _WORDS:
            other = first.setdefault(answer, words)
            if len(words & other) < _SAME_WORDS * min(len(words), len(other)):
                found.add(answer)
    return found


# Completions

_ENDS = {
    "unknown",
    "stop",
    "eos",
    "eos_token",
    "end_turn",
    "stop_sequence",
    "end",
    "complete",
    "completed",
    "finished",
}
_PAGE = re.compile(r"<!doctype|</?(?:html|head|body|title|script)\b", re.IGNORECASE)
_REFUSAL = re.compile(
    r"^\W*(?:i.m sorry|i am sorry|sorry, |(?:my )?apologies|i apologi[sz]e|unfortunately, i\b|i can.?not|i can.t"
    r"|i.m unable|i am unable|i won.t|i must decline|as an? (?:ai|large) )",
    re.IGNORECASE,
)
_SERVICE = re.compile(
    r"https?://|www\.|\b(?:upgrade|subscribe|sign (?:up|in)|log in|top up|powered by|generated by"
    r"|(?:terms|conditions) of (?:service|use)|privacy policy|(?:customer|contact) support|free (?:tier|trial)"
    r"|language model|chatbot|chatgpt|openai|api|usage limits?)\b"
    r"|\byour (?:\w+ )?(?:account|subscription|plan|quota|credits?|balance|trial|session|requests?|usage|prompt)\b",
    re.IGNORECASE,
)


def service_fault(line: str) -> str | None:
    """Why a line that a model was to write of its own is a sentence of the service; None if it is not."""
    if error_text(line, "") or _SERVICE.search(line):
        return "a service's sentence"
    return "refusal" if _DECLINES.search(line) else None


def broken_off(finish_reason: str) -> bool:
    """Whether a model stopped before its end: for any reason that is not known to be good; "unknown" is none at all."""
    return finish_reason.casefold() not in _ENDS


def completion_fault(completion: str, finish_reason: str, prompt: str) -> str | None:
    """What is wrong with a whole completion; its lines are looked at one by one (``data.exemplars``)."""
    if finish_reason in ("content_filter", "refusal"):
        return finish_reason.replace("_", " ")
    if len(completion) > 100_000:
        return "too long"
    if _adds(_PAGE, completion, prompt):
        return "markup"
    said = without_thinking(completion).strip()
    if not said:
        return "thinking alone" if completion.strip() else "empty"
    if _REFUSAL.match(said) or ("\n" not in said and _adds(_DECLINES, said, prompt)):
        return "refusal"
    return text_fault(completion, prompt) or error_text(said, prompt)
