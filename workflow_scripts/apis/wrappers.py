"""Sentences in a list that a language model wrote, without thoughts, control tokens, list marks, quotes and remarks.

A wrapper of another form stays, and ``leftover`` names it: such an answer is rejected.
"""

# ruff: noqa: RUF001  (marks of many scripts)
import html
import re

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
