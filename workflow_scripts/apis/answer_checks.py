"""Reject unusable answers of translators and language models, and take usual wrappers off good ones.

Servers send error pages with status 200, answers in another language, or the same words for every request; models
comment on the task, or refuse it. Such an answer must not become training text. A fault is a short reason, the same for
all answers with that fault, so that reports can count them.

A list that a model wrote is read without thoughts, control tokens, list marks, quotes and remarks. A wrapper of another
form stays, and ``leftover`` names it: such an answer is rejected.

Languages are detected by py3langid, naive Bayes over byte n-grams for 140 languages. An answer is rejected if the
probability of its language is below 0.01. Of 907 sentences of Wikipedia translated by Apertium to Spanish and Catalan
and back, this rejects none; of the same texts passed off as another of these languages it accepts 0.2 to 0.4%, and 9%
of Spanish ones passed off as Catalan.
"""

# ruff: noqa: RUF001  (marks of many scripts)
import html
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
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
    r"<!doctype|</?(?:html|head|body|div|span|p|br|a|b|i|font|script|title|h[1-6])\b[^<>]*>|&(?:nbsp|amp|lt|gt|quot|apos|#x?[\da-f]+);",
    re.IGNORECASE,
)
# A text and its translation differ in length by a factor of 3 at most, and a word or two.
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
"""Engines' names of languages that are not codes of ISO 639-1."""


def error_text(answer: str, question: str) -> str | None:
    """The fault of an answer that is a server's message, which may be temporary; None if it is not.

    Args:
        answer: The answer.
        question: The request's text: the translation of a text about errors may look like an error.
    """
    if _adds(_MARKUP, answer, question):
        return "markup"
    return "error message" if _adds(_ERROR, answer, question) else None


def _adds(pattern: re.Pattern[str], answer: str, question: str) -> bool:
    """True if the pattern occurs in the answer and not in the question."""
    return pattern.search(answer) is not None and pattern.search(question) is None


def translation_fault(text: str, answer: str, source: str, target: str) -> str | None:
    """The fault of a translation; None if it is usable.

    Args:
        text: The original.
        answer: Its translation.
        source: Language of the text, as the engine writes it.
        target: Language of the answer.
    """
    if fault := text_fault(answer, text) or error_text(answer, text):
        return fault
    longer, shorter = sorted((len(answer.encode()), len(text.encode())), reverse=True)
    if longer > _LENGTH_RATIO * shorter + _LENGTH_SLACK:
        return "too long" if len(answer) > len(text) else "too short"
    if _is_one_word(answer) and not _is_one_word(text):
        return "one word over and over"
    if not is_in(answer, target) and is_in(text, source):
        return f"not in {target}"
    return leftover(answer, text)


def text_fault(answer: str, question: str) -> str | None:
    """The fault of an answer as text: invalid Unicode, control characters, or no letter; None if it has none."""
    categories = {unicodedata.category(letter) for letter in set(answer) - {*question, *"\t\n\r"}}
    if categories & {"Cs", "Cc", "Co", "Cn"} or ("\ufffd" in answer and "\ufffd" not in question):
        return "broken characters"  # lone surrogates, controls, private use, unassigned, undecodable bytes
    if not any(map(str.isalnum, answer)) and any(map(str.isalnum, question)):
        return "empty"
    return None


def _is_one_word(text: str) -> bool:
    words = text.casefold().split()
    return len(words) >= 8 and Counter(words).most_common(1)[0][1] > len(words) / 2


def is_in(text: str, language: str) -> bool:
    """True if a text may be in a language; also for short texts, and languages that the detector does not know."""
    name = language.casefold().partition("-")[0]
    code = _CODES.get(name, name)
    if sum(map(str.isalpha, text)) < _MIN_LETTERS or code not in language_detector().labels:
        return True
    return float(dict(language_detector().rank(text))[code]) >= _MIN_PROBABILITY


def likely_language(text: str) -> str:
    """The most probable language of a text, as a code of ISO 639-1."""
    return str(language_detector().classify(text)[0])


@cache
def language_detector() -> Any:
    """The language detector of py3langid; the first call takes half a second."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


_WORK = r"(?:translat|traduc|tradu[çz]|traduir|traduk|übersetz|vertal|перев|翻)"
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
    """Answers that several different texts got; they must be messages of the server.

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
    """The fault of a generated line that is a message of the service; None if it is not."""
    if error_text(line, "") or _SERVICE.search(line):
        return "a service's sentence"
    return "refusal" if _DECLINES.search(line) else None


def broken_off(finish_reason: str) -> bool:
    """True if a model stopped before the end of its text; "unknown" stands for a server that gives no reason."""
    return finish_reason.casefold() not in _GOOD_ENDS


def completion_fault(completion: str, finish_reason: str, prompt: str) -> str | None:
    """The fault of a completion as a whole; its lines are checked one by one (``data.exemplar_writing``)."""
    if finish_reason in ("content_filter", "refusal"):
        return finish_reason.replace("_", " ")
    if len(completion) > 100_000:
        return "too long"
    if _adds(_PAGE, completion, prompt):
        return "markup"
    answer = without_thinking(completion).strip()
    if not answer:
        return "thinking alone" if completion.strip() else "empty"
    if _REFUSAL.match(answer) or ("\n" not in answer and _adds(_DECLINES, answer, prompt)):
        return "refusal"
    return text_fault(completion, prompt) or error_text(answer, prompt)


# Wrappers

_THOUGHT_ENDS = re.compile(
    r"</think(?:ing)?>|</thought>|\[/THINK\]|<\|end_of_thought\|>|<\|channel\|>final<\|message\|>|assistantfinal"
)
_THOUGHT_BEGINS = re.compile(r"<think(?:ing)?>|<thought>|\[THINK\]|<\|channel\|>")
_TOKEN = re.compile(r"<[|｜][^<>\n]{1,40}[|｜]>(?:assistant|model)?|</?s>|<[be]os>|<(?:start|end)_of_turn>")
_UNSEEN = re.compile("[\ufeff\u200b\u2060\u200e\u200f\u2066-\u2069]")
_ENTITY = re.compile(r"&#?\w+;")
_SIGNS = frozenset("*_`<>{}[]|\\#^~=→⇒➜➔⟶◁▷•●▪►│")
_RULE = re.compile(
    r"\s*(?:```.*|~~~.*|[-*_=~|:\s]{3,}|[\[\]{}(),\s]*|\W*(?:sentence)?\s*\d{1,3}\W*)\s*", re.IGNORECASE
)
_BOLD = re.compile(r"\*\*|__")
_ITEM = re.compile(
    r"\s*(?:[#(]?(?:sentence\s*)?(?:\d{1,3}(?:\.\d+|/\d+)*|[ivx]{1,5}|[一二三四五六七八九十]{1,3})\)?\s*(?:[.):\]](?=[\s*\"“])|、)"
    r"|\(?[^\W\d_]\)\s|[(\[]\d{1,3}[)\]]\s|#?\d{1,3}(?:\s+[-–—]\s|\t)|(?:[-*+•–—→]|#{1,6}|>)\s|[①-⓿❶-➓•]|-(?=[^\W\d]))\s*",
    re.IGNORECASE,
)
_NAMED = re.compile(r"\W*(?:[^\W_]+\s){0,2}[^\W_]+\s*:\s+(?=\S)")
_REMARK = re.compile(r"(?<=[.!?…])[\"'”’]?\s+(?:[—–-]+\s.*|[(\[][^()]*[)\]])$|\s*\(\d+ \w+\)$")
_SHELL = re.compile(
    r"(?P<mark>[*_`]{1,3})(?P<emphasised>(?:(?!(?P=mark)).)+)(?P=mark)|[\"'“«](?P<quoted>[^\"“”«»]+)[\"'”»],?"
)


def decoded(answer: str, question: str = "") -> str:
    """An answer with HTML entities decoded, unless the question has some too."""
    for _twice in range(0 if _ENTITY.search(question) else 2):
        answer = _ENTITY.sub(lambda match: html.unescape(match[0]), answer)
    return answer


def without_thinking(completion: str) -> str:
    """A completion without control tokens, and without thoughts between marks of the usual models."""
    answer = _THOUGHT_ENDS.split(completion)[-1]  # the model's template may have opened the thought
    return _TOKEN.sub("", _THOUGHT_BEGINS.split(answer)[0])


def leftover(text: str, question: str) -> str | None:
    """The kind of wrapper that remains around or within a text; None if it is bare."""
    if "\n" in text and "\n" not in question:
        return "several lines"
    return "markup" if (_SIGNS & {*text}) - {*question} else None


def items_in(completion: str, *, cut_off: bool = False) -> tuple[list[str], int]:
    """The bare items of a list that a model wrote.

    Args:
        completion: Text that the model wrote. If most lines have a list mark, lines without one are not items.
        cut_off: The last line is incomplete, and not an item.

    Returns:
        The items, and the number of other lines.
    """
    text = _BOLD.sub("", without_thinking(_UNSEEN.sub("", decoded(completion))).strip())
    lines = [part.strip() for line in text.splitlines() for part in _parts(line) if not _RULE.fullmatch(part)]
    lines = lines[: len(lines) - cut_off]
    marked = [line for line in lines if _ITEM.match(line)]
    items = marked if len(marked) >= max(2, len(lines) / 2) else lines
    if len(items) > 2 and all(map(_NAMED.match, items)):
        items = [_NAMED.sub("", line, count=1) for line in items]
    return [_bare(line) for line in items], len(lines) - len(items)


def _parts(line: str) -> list[str]:
    """The items of one line, which may be numbered sentences."""
    is_numbered = re.match(r"\s*\(?1[.)]\s", line)
    return re.split(r"(?<=[.!?\"])\s+(?=\(?\d{1,2}[.)]\s)", line) if is_numbered else [line]


def _bare(line: str) -> str:
    """An item without mark, remark, emphasis and quotes."""
    mark = _ITEM.match(line)
    line = _REMARK.sub("", line[mark.end() if mark else 0 :].strip())
    while found := _SHELL.fullmatch(line):
        line = (found["emphasised"] or found["quoted"]).strip()
    return line
