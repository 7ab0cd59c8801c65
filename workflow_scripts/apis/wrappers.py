"""Remove wrappers around sentences that a model wrote: control tokens, thoughts, quotes, list marks, remarks, JSON.

Wrappers are recognised by their form, in any language; ``leftover`` names one that could not be removed.
"""

# ruff: noqa: RUF001  (marks of many scripts)
import ast
import html
import json
import re
from collections.abc import Iterator
from contextlib import suppress

_ANY, _CASE = re.DOTALL, re.DOTALL | re.IGNORECASE
_MAX_TEXT = 2_000  # characters; longer texts are not searched

# Tokens of any form become \ue000name\ue001 if they open a part, \ue000/name\ue001 if they close one.

_TOKEN = re.compile(
    r"<{1,2}[|｜]?\s*/?[a-z_][\w:▁.-]*(?:\s[^<>\n]{0,80})?[|｜]?>{1,2}|◁/?\w+▷"
    r"|\[/?(?-i:[A-Z_]{3,20})\]|\[/?[a-z]+\]",
    _CASE,
)
_CLOSES = re.compile(r"^/|^end|^eo[st]|[_▁]end\b|^eom|^return$", re.IGNORECASE)
_PART = re.compile(r"^/|(?:^|(?<=[_▁]))(?:begin|start|end|of|header|id)(?=[_▁]|$)|[_▁]")
_ASIDE = (
    r"(?:\w+[:-])?(?:thinks?|thinking|thoughts?|reason\w*|reflect\w*|scratch\w*|analysis|plan\w*|monologue|cot|commentary|inst"
    r"|sys\w*|user|prompt|source|original|input|tool\w*)"
)
_ANSWER = r"(?:answer|translat\w*|output|result|final\w*|response|reply|target|solution|sentences?)"
_SHAPE = r"(?:s|im|turn|text|p|div|span|b|i|em|strong|u|q|code|pre|h\d|body|html|blockquote|quote|font|content|message)"
_HEAD = re.compile(
    r"\A\s*(?:\ue000[^\ue001]*\ue001\s*(?:(?:assistant|model|bot|ai|final)(?=\s|\ue000))?\s*)+"
)


def _canonical(token: str) -> str:
    inner = token.strip("<>|｜◁▷[]").split()[0].lower()
    closes = _CLOSES.search(inner) or (token.endswith(("|>", "｜>")) and token[1] not in "|｜")
    return f"\ue000{'/' if closes else ''}{_PART.sub('', inner)}\ue001"


def without_thinking(completion: str) -> str:
    """A completion without control tokens and thoughts, which tokens or plain labels mark.

    U+E000 marks tokens that could not be removed. Completions are bounded by ``answer_checks.completion_fault``.
    """
    closed = set(re.findall(r"\[/([a-z]+)\]", completion))

    def canonical(match: re.Match[str]) -> str:
        word = re.fullmatch(r"\[/?([a-z]+)\]", match[0])
        return match[0] if word and word[1] not in closed else _canonical(match[0])

    text = _TOKEN.sub(canonical, completion)
    text = text.rpartition("assistantfinal")[2]  # channels whose tokens were removed
    ends = r"(?=\ue000(?:start|/|channel\ue001\s*final|\ue001)|\Z)"
    text = re.sub(rf"\ue000channel\ue001\s*(?!final)\w+.*?{ends}", "", text, flags=_CASE)
    for name in {*re.findall(rf"\ue000/({_ASIDE})\ue001", text)}:
        text = re.sub(rf"\ue000{name}\ue001.*?\ue000/{name}\ue001", "", text, flags=_ANY)
    text = re.split(rf"\ue000/{_ASIDE}\ue001", text, flags=_CASE)[-1]  # the model's template opened a thought
    text = re.split(rf"\ue000{_ASIDE}\ue001", text, flags=_CASE)[0]  # a thought without an end
    if parts := re.findall(rf"\ue000({_ANSWER})\ue001(.*?)\ue000/\1\ue001", text, flags=_CASE):
        text = "\n".join(part for _, part in parts)
    opened = {*re.findall(r"\ue000([^\ue001/]+)\ue001", text)}
    pairs = opened & {*re.findall(r"\ue000/([^\ue001]+)\ue001", text)}
    if all(re.fullmatch(_SHAPE, name) for name in pairs):
        text = re.split(r"\ue000/[^\ue001]*\ue001", _HEAD.sub("", text))[0]
        text = re.sub(r"(?:\s*\ue000[^\ue001]*\ue001)+\s*\Z", "", text)
    if re.match(r"\W*(?:thinking|thoughts?|reasoning|analysis)\W*:", text, re.IGNORECASE):
        answers = re.split(
            r"^\W*(?:final )?(?:answer|translation|output|response)\W*:[*_]*", text, flags=re.I | re.M
        )
        return answers[-1] if len(answers) > 1 else ""
    return text


# Shells around a text

_MARK = (
    r"(?:(?:\d{1,2}\.)+\d{1,2}\.?\s|№\s?\d{1,3}\s|\(\d{1,2}/\d{1,2}\)\s|\[\d{1,3}\]\s|(?:- )?\[[ xX✓]\]\s"
    r"|\d{1,3}(?:\t|,(?=\"))|#?\(?\s*(?:\d{1,3}|[ivx]{1,5}|[^\W\d_]|[一二三四五六七八九十]{1,3})\s*(?:\\?[.)\]:](?=[\s*_\"“])|[、．：】])|\d{1,3}\s+[-–—]\s"
    r"|[①-⓿❶-➓㈠-㉃⒈-⒛]|\d\ufe0f?\u20e3|#\d{1,3}\s|\\item\b|(?:[-*+•‣◦⁃∙●○▪■□▫◆◇★☆✓✔·–—]|#{1,6}|>|->|=>)\s|[→⇒➜➔⟶➤➢►▶])"
)
_PICTURES = r"[\U0001f000-\U0001faff\u2600-\u27bf\u2b50\ufe0f\s]+"
_SHELLS = [
    re.compile(pattern, _CASE)
    for pattern in (
        r"(?:```|~~~)\w*\s(?P<rest>.+?)\s*(?:```|~~~)",
        r"(?P<mark>[*_`~$]{1,3})(?P<rest>(?:(?!(?P=mark)).)+)(?P=mark)",
        r"[\"'“”„‟«»‹›「『‘‚´](?P<rest>[^\"“”„«»‹›「」『』]+)[\"'“”«»‹›」』’‘´][.,。]?",
        r"[\[({【〔（](?P<rest>[^\[\](){}【】（）]+)[\])}】〕）]",
        r"[\\$\[(\s]*\\[a-z]+\{(?P<rest>.+)\}[\\$\])\s]*",
        rf"{_MARK}\s*(?P<rest>.+)",
        rf"{_PICTURES}(?P<rest>.+)",
        rf"(?P<rest>.+?){_PICTURES}",
        r"(?P<rest>.+?)\s*[-=*#~_]{2,}",
        r"(?:\.{2,}|…)\s*(?P<rest>.+)",
        r"(?P<rest>.+[.!?])…",
        r"(?P<rest>.+[^.]\.)(?:\.|\.{3})",
        r"\(\((?P<rest>.+)\)\)",
    )
]
_ROLE = re.compile(r"(?:assistant|model|bot|ai)\s*\n\s*(?P<rest>.+)", _CASE)
_TWICE = re.compile(r"(?P<rest>.{8,}?)[\s./|,;→=–—-]*(?P=rest)", _CASE)
_ENTITY = re.compile(r"&#?\w+;")
_UNSEEN = "\ufeff\u200b\u2060\u200e\u200f\u2066\u2067\u2068\u2069\n\t "
_SIGNS = frozenset("*_`<>{}[]|\\#^~=→⇒➜➔⟶◁▷•●▪►│")


def decoded(answer: str, question: str = "") -> str:
    """An answer with HTML entities decoded, unless the question has some too."""
    for _twice in range(0 if _ENTITY.search(question) else 2):
        answer = _ENTITY.sub(lambda match: html.unescape(match[0]), answer)
    return answer


def _peeled(text: str) -> str:
    """A text without its outermost shell; the text itself if it has none."""
    rests = [match["rest"] for shell in (*_SHELLS, _ROLE) if (match := shell.fullmatch(text))]
    if (twice := _TWICE.fullmatch(text)) and not _TWICE.fullmatch(twice["rest"]):
        rests.append(twice["rest"])
    return next((rest.strip() for rest in rests if any(map(str.isalnum, rest))), text)


def _strings_in(text: str) -> list[str]:
    """The strings of JSON, alone, in a fence or between words; of a record the longest one."""
    fenced = re.search(r"```\w*\s(.*?)```", text, _ANY)
    body = (fenced[1] if fenced else text).strip().removesuffix(",")
    starts = [start for start in (body.find("["), body.find("{")) if start >= 0]
    end = max(body.rfind("]"), body.rfind("}")) + 1
    inner = body if body.startswith('"') else body[min(starts, default=0) : end]
    if len(inner) < len(body) / 2:
        return []
    for part in (inner, f"[{inner}]", "[" + ",".join(inner.split("\n")) + "]"):
        with suppress(ValueError, RecursionError):
            return list(_leaves(json.loads(part)))
    if inner[:1] in ("[", "{"):  # Python literals: single quotes, a comma before the end
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return list(_leaves(ast.literal_eval(inner)))
    return []


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (leaf for part in value for leaf in _leaves(part))
    elif isinstance(value, dict):
        texts = [text for text in value.values() if isinstance(text, str)]
        is_record = texts and not all(map(str.isdigit, map(str, value)))
        yield from [max(texts, key=len)] if is_record else _leaves([*value.values()])


def leftover(text: str, question: str) -> str | None:
    """The kind of wrapper that remains around or within a text; None if it is bare."""
    if "\n" in text and "\n" not in question:
        return "several lines"
    return "markup" if "\ue000" in text or (_SIGNS & {*text}) - {*question} else None


# Lists of sentences

_LIST_TAGS = re.compile(
    r"</?(?:sentences?|items?|entry|example|li|ol|ul|p|br|tr|td|th|table|tbody|thead|div|d[ltd]|h\d)\b[^<>]*>",
    re.IGNORECASE,
)
_INLINE = re.compile(
    r"</?(?:b|i|em|strong|u|mark|code)>|\*\*|__|`|(?<!\w)[*_](?=\w)|(?<=[\w.!?])[*_](?!\w)", re.IGNORECASE
)
_RULE = re.compile(
    r"\s*(?:```.*|~~~.*|[-*_=~|:\s]{3,}|[\[\]{}(),\s]*|\W*(?:sentence|example)?\s*\d{1,3}\W*)\s*", re.I
)
_NAMED = re.compile(r"\W*(?:[^\W_]+\s){0,2}[^\W_]+\s*[:：]\s+(?=\S)")
_ITEM = re.compile(rf"^\s*(?:{_MARK}|[-–•*](?=[^\W\d])|(?:sentence|s)\s*\d{{1,3}}\s*[.):–-])", re.IGNORECASE)
_HEADER = re.compile(r"^\s*\|.*\|\s*\n(?=\s*\|[\s:|-]+\|\s*$)", re.MULTILINE)
_INITIAL = re.compile(r"[^\W\d_]\.\s")  # of a name
_AFTER = re.compile(r"(?<=[.!?…])[\"'”’]?\s+(?:[—–-]+\s.*|[(\[][^()]*[)\]])$|\s*\(\d+ \w+\)$")


def items_in(completion: str, *, cut_off: bool = False) -> tuple[list[str], int]:
    """The bare items of a list that a model wrote: in JSON, a table, HTML, or with marks of any kind.

    Args:
        completion: Text that the model wrote. If most lines have a list mark, lines without one are not items.
        cut_off: The last line is incomplete, and not an item.

    Returns:
        The items, and the number of other lines.
    """
    seen = re.sub(f"[{_UNSEEN.strip()}]", "", decoded(completion))
    text = without_thinking(_INLINE.sub("", _LIST_TAGS.sub("\n", seen))).strip()
    text = _HEADER.sub("", found["rest"] if (found := _ROLE.fullmatch(text)) else text)
    strings = _strings_in(text) or [text]
    lines = [part for string in strings for line in string.splitlines() for part in _parts(line)]
    lines = [line.strip() for line in lines if not _RULE.fullmatch(line)]
    lines = lines[: len(lines) - cut_off]
    marked = [line for line in lines if _ITEM.match(line)]
    items = marked if len(marked) >= max(2, len(lines) / 2) else lines
    if len(items) > 2 and all(map(_NAMED.match, items)):
        items = [_NAMED.sub("", line, count=1) for line in items]
    bare = [line if items is lines and _INITIAL.match(line) else _bare(line) for line in items]
    return bare, len(lines) - len(items)


def _parts(line: str) -> list[str]:
    """The items of one line: the longest cell of a table, quoted sentences, or numbered sentences."""
    if line.strip().startswith("|"):
        return [max(line.strip(" |").split("|"), key=len)]
    if re.fullmatch(r'\s*"[^"]*"(?:\s*[,;]\s*"[^"]*")+\s*', line):
        return re.findall(r'"([^"]*)"', line)
    is_numbered = re.match(r"\s*\(?1[.)]\s", line)
    return re.split(r"(?<=[.!?\"])\s+(?=\(?\d{1,2}[.)]\s)", line) if is_numbered else [line]


def _bare(line: str) -> str:
    """An item without marks, quotes and remarks."""
    line = _AFTER.sub("", _ITEM.sub("", line, count=1).strip())
    while len(line) < _MAX_TEXT and not _INITIAL.match(line):
        if (bare := _peeled(_ITEM.sub("", line, count=1).strip())) == line:
            break
        line = bare
    return line
