"""Holding a part of the configuration to the class that reads it, a line for each mistake.

Of a choice between forms, such as one block or another, the mistakes are those of the nearest form; pydantic's errors
are put into words that say what was found and what to do.
"""

import difflib
import functools
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from workflow_scripts.config import Settings
from workflow_scripts.graph.findings import advice

S = TypeVar("S", bound=Settings)
_LONGEST = 300
"""Characters of what was found, which a message repeats."""

_TYPES = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a block of settings",
    "model_type": "a block of settings",
}
"""Kind of pydantic's error to what was wanted."""
_WORDS = {
    "greater_than": "is not above {gt}",
    "greater_than_equal": "is below {ge}",
    "less_than": "is not below {lt}",
    "less_than_equal": "is above {le}",
    "too_short": "has fewer entries than {min_length}",
    "too_long": "has more entries than {max_length}",
    "string_too_short": "is shorter than {min_length}",
    "string_pattern_mismatch": "does not match {pattern}",
    "finite_number": "is no number to compute with",
}
"""Kind of pydantic's error to what is wrong with a value."""


class Mistake(NamedTuple):
    """One of pydantic's errors, and where it is."""

    path: tuple[str, ...]
    """Keys and numbers, without the names of forms that pydantic puts between them."""
    kind: str
    found: Any
    context: Mapping[str, Any]
    said: str
    """By pydantic."""
    type: Any
    """Annotation of what should be there."""
    keys: Sequence[str]
    """Of the block that it is in."""
    meaning: str
    """Description of the setting."""
    forms: tuple[tuple[int, str], ...]
    """Choices between forms on the way: after how many keys, and which of the forms."""

    @property
    def is_of_type(self) -> bool:
        """Whether something else altogether was wanted."""
        return self.kind in _TYPES


def read(kind: type[S], value: Any, place: str) -> tuple[S | None, list[str]]:
    """``value`` as its class reads it, or what is wrong with it.

    Args:
        kind: The class, or a base class of those that a key of the value chooses from.
        value: A part of the configuration.
        place: In front of every line, with the dot or blank that ends it.
    """
    try:
        return kind.strictly(value), []
    except ValidationError as error:
        return None, _at_place(place, _mistakes(kind, value, error), value)


def mistakes(kind: type[Settings], value: Any, place: str) -> list[str]:
    """What is wrong with ``value``, as in ``read``."""
    return read(kind, value, place)[1]


def _at_place(place: str, found: Sequence[Mistake], value: Any) -> list[str]:
    """A line for each mistake; of one in the block as a whole, the place is the block's."""
    whole = place.removesuffix(".") if place.endswith(".") else f"{place}configuration"
    return [f"{whole}{line}" if line.startswith(":") else f"{place}{line}" for line in _lines(found, value)]


def _mistakes(kind: type[Settings], value: Any, error: ValidationError) -> list[Mistake]:
    all_found = [_placed(kind, value, one) for one in error.errors(include_url=False)]
    keys = [one.path for one in all_found if _is_of_key(one)]
    found = [
        one for one in all_found if _is_of_key(one) or not any(one.path[: len(key)] == key for key in keys)
    ]
    return sorted(_nearest(found, 0), key=lambda one: one.path)


def _is_of_key(one: Mistake) -> bool:
    """Whether a name is wrong that a user of the configuration chose; what stands under it is not read then."""
    return one.kind == "string_pattern_mismatch" and one.path[-1:] == (one.found,)


def _placed(kind: Any, value: Any, error: ErrorDetails) -> Mistake:
    path: list[str] = []
    forms: list[tuple[int, str]] = []
    keys: Sequence[str] = ()
    meaning = ""
    for step in error["loc"]:
        if step == "[key]":  # it is the key itself that is wrong
            break
        kind, one_of, union = _plain(kind)
        if union:
            kind = _form(union, one_of, step)
            if not one_of:
                forms.append((len(path), str(step)))
            continue
        if isinstance(kind, type) and issubclass(kind, Settings):
            fields = _chosen(kind, value).model_fields
            keys, field = [*fields], fields.get(str(step))
            kind = Annotated[field.annotation, field] if field else Any
            meaning = (field.description or "") if field else ""
        else:
            kind, keys = next(iter(get_args(kind)[-1:]), Any), ()
        path.append(str(step))
        value = _at(value, step)
    return Mistake(
        tuple(path), error["type"], error["input"], error.get("ctx", {}), error["msg"], kind, keys, meaning,
        tuple(forms),
    )  # fmt: skip


def _plain(kind: Any) -> tuple[Any, str | None, list[Any]]:
    """An annotation without metadata and null: the type, or several and the key that tells them apart, if one does."""
    key = None
    while get_origin(kind) is Annotated:
        kind, *metadata = get_args(kind)
        key = next((one.discriminator for one in metadata if getattr(one, "discriminator", None)), key)
    if get_origin(kind) not in (Union, UnionType):
        return kind, key, []
    several = [one for one in get_args(kind) if one is not NoneType]
    return _plain(several[0]) if len(several) == 1 else (kind, key, several)


def _form(union: Sequence[Any], key: str | None, name: Any) -> Any:
    """The form that pydantic calls ``name``: by the value of a key, or by its class, validators around it."""
    last = re.search(r"(\w*)\]*$", str(name))
    for kind in (_plain(one)[0] for one in union):
        field = getattr(kind, "model_fields", {}).get(key)
        if name in get_args(field.annotation) if field else last and last[1] == getattr(kind, "__name__", ""):
            return kind
    return Any


def _chosen(kind: type[Settings], value: Any) -> type[Settings]:
    try:
        return kind.class_of(value)
    except ValidationError:
        return kind


def _at(value: Any, step: Any) -> Any:
    try:
        return value[step]
    except (LookupError, TypeError):
        return None


def _nearest(found: Sequence[Mistake], level: int) -> Iterator[Mistake]:
    """Of every choice between forms, what keeps a value from the nearest, or that it has none where two are as near."""
    choices: dict[Any, dict[str, list[Mistake]]] = defaultdict(lambda: defaultdict(list))
    for one in found:
        if len(one.forms) <= level:
            yield one
        else:
            depth, form = one.forms[level]
            choices[one.path[:depth]][form].append(one)
    for path, forms in choices.items():
        ranked = sorted(forms.values(), key=lambda form: _distance(form, len(path)))
        nearest = [_distance(form, len(path)) for form in ranked[:2]]
        if len(ranked) == 1 or nearest[0] < nearest[1]:
            yield from _nearest(ranked[0], level + 1)
        else:
            first = ranked[0][0]
            yield first._replace(path=path, kind="no_form", context={"forms": ranked})


def _distance(form: Sequence[Mistake], depth: int) -> tuple[bool, int, int]:
    """How far a value is from a form: of another type; keys too many or missing; whatever is wrong, inside too."""
    other_type = any(one.is_of_type and len(one.path) == depth for one in form)
    own = [one for one in form if one.kind in _OF_KEYS and len(one.path) == depth + 1]
    return other_type, len(own), len(form)


_OF_KEYS = ("missing", "extra_forbidden")


def _lines(found: Sequence[Mistake], whole: Any) -> Iterator[str]:
    of_block: dict[Any, list[Mistake]] = defaultdict(list)
    for one in found:
        of_block[(one.path[:-1], one.kind) if one.kind in _OF_KEYS else one.path].append(one)
    for alike in of_block.values():
        first, block = alike[0], ".".join(alike[0].path[:-1])
        names = [one.path[-1] for one in alike if one.path]
        if first.kind == "missing":
            yield f"{block}: without {', '.join(names)}. Write it there."
        elif first.kind == "extra_forbidden":
            homes = {name: home for name in names if (home := _home_of(name, first.path[:-1], whole))}
            yield from _unknown(names, f"{block}." if block else "", sorted(first.keys), homes)
        else:
            yield from (line for one in alike for line in _words(one))


def _unknown(
    names: Sequence[str], path: str, known: Sequence[str], homes: Mapping[str, str]
) -> Iterator[str]:
    near = [name for name in names if name in homes or difflib.get_close_matches(name, known, n=1)]
    for name in near:
        meant = [*difflib.get_close_matches(name, known, n=1), *filter(None, [homes.get(name)])]
        yield f"{path}{name}: unknown key. Did you mean {', or '.join(meant)}?"
    if far := [name for name in names if name not in near]:
        keys = "key" if len(far) == 1 else "keys"
        yield f"{path}{', '.join(far)}: unknown {keys}. {advice(far[0], known)}"


def _home_of(key: str, path: Sequence[str], whole: Any) -> str | None:
    """Where a key that is unknown in its block would be known: in a block around it, or, at the top, in a section."""
    if not path:
        sections = (name for name, part in whole.items() if isinstance(part, Mapping) and key in part)
        return next((f"{name}.{key}" for name in sections), None)
    around = [path[:depth] for depth in range(len(path))]
    homes = [above for above in around if key in (functools.reduce(_at, above, whole) or ())]
    return ".".join([*homes[-1], key]) + ("" if homes[-1] else " at the top") if homes else None


def _words(one: Mistake) -> Iterator[str]:
    path = ".".join(one.path)
    match one.kind:
        case "value_error":  # of our own: lines that begin with the key
            for line in str(one.context["error"]).splitlines():
                yield f"{path}.{line}" if path else line
        case "literal_error":
            yield f"{path}: {_none_of(one.found, _expected(one.context['expected']))}"
        case "union_tag_invalid":
            key = str(one.context["discriminator"]).strip("'")
            yield f"{path}.{key}: {_none_of(one.context['tag'], sorted(_expected(one.context['expected_tags'])))}"
        case "union_tag_not_found":
            yield f"{path}: without {str(one.context['discriminator']).strip(chr(39))}. Write it there."
        case _ if _is_of_key(one):
            yield f"{path}: {_no_name(one.context['pattern'])}"
        case _:
            meaning = f" ({one.meaning})" if one.meaning else ""
            yield f"{path}: {_shown(one.found)} {_wrong(one)}{meaning}."


def _wrong(one: Mistake) -> str:
    """What is wrong with a value, behind the value."""
    if one.kind == "no_form":
        return f"is not {' or '.join(dict.fromkeys(_wanted(form, len(one.path)) for form in one.context['forms']))}"
    if one.kind in _TYPES:
        return f"is not {_TYPES[one.kind]}{' or null' if _may_be_null(one.type) else ''}"
    return (
        _WORDS[one.kind].format(**{key: _short(limit) for key, limit in one.context.items()})
        if one.kind in _WORDS
        else f"cannot be read: {one.said}"
    )


def _wanted(form: Sequence[Mistake], depth: int) -> str:
    """What a form is: its type, or the keys that it needs."""
    types = [_TYPES[one.kind] for one in form if one.is_of_type and len(one.path) == depth]
    missing = [one.path[-1] for one in form if one.kind == "missing" and len(one.path) == depth + 1]
    return types[0] if types else f"a block with {' and '.join(missing)}" if missing else form[0].said


def _may_be_null(kind: Any) -> bool:
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return NoneType in get_args(kind)


def _shown(found: Any) -> str:
    text = repr(found)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."


def _short(limit: Any) -> Any:
    return f"{limit:g}" if isinstance(limit, float) else limit


def _expected(words: str) -> list[str]:
    """The values that pydantic lists, as in "'a', 'b' or 'c'"."""
    return [word.strip("'") for word in re.split(", | or ", words)]


def _none_of(found: Any, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(str(found), known, n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    return f"{found!r} is none of {', '.join(known)}.{hint}"


def _no_name(pattern: str) -> str:
    """What is wrong with a key, and what to do: of names, or of settings with dots such as ``method.temperature``."""
    if "\\." not in pattern:
        return "not a name. Use small letters, digits and underscores."
    sections = re.findall("[a-z]+", pattern.partition(")")[0])
    return f"not a dotted setting. Begin it with {' or '.join(f'{section}.' for section in sections)}"
