"""Ranges of numbers in the settings: a value that makes no sense is refused with its file and line, before any job."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

from workflow_scripts import settings
from workflow_scripts.settings.base import Settings

FREE = {
    "Claim.printed_ours", "Claim.printed_theirs",  # copied from papers
    "GridRow.choice", "LlmBlock.seed", "Measure.paper_tasks",
    "Lines.max_words", "Lines.min_words", "WikipediaXml.max_words", "WikipediaXml.min_words", "WikitextReader.min_characters",
    "Model.mixing_weight", "Positives.threshold", "SupervisedSimCSE.hard_negative_weight",  # may be negative
    "Workplace.cache_gigabytes",  # checked as Configuration.cache_gigabytes
}  # fmt: skip
"""Numbers without a lower bound."""


def subclasses(kind: type[Settings]) -> Iterator[type[Settings]]:
    for below in kind.__subclasses__():
        yield below
        yield from subclasses(below)


def own_numbers() -> dict[str, dict[str, Any]]:
    """The JSON Schema of each number that a class of settings defines and does not choose from a list, by class and key."""
    for module in pkgutil.iter_modules(settings.__path__):
        importlib.import_module(f"{settings.__name__}.{module.name}")
    kinds = [kind for kind in subclasses(Settings) if kind.__module__.startswith(settings.__name__)]
    return {
        f"{kind.__name__}.{key}": {"description": field.get("description", ""), **form}
        for kind in kinds
        for key, field in kind.model_json_schema()["properties"].items()
        if key in kind.__annotations__
        for form in field.get("anyOf", [field])
        if form.get("type") in ("integer", "number") and not {"enum", "const"} & {*form}
    }


NUMBERS = own_numbers()


def test_every_number_has_a_least_value():
    assert len(NUMBERS) > 80
    assert {name for name, form in NUMBERS.items() if not {"minimum", "exclusiveMinimum"} & {*form}} == FREE


def test_every_fraction_and_probability_is_at_most_one():
    named = re.compile(r"\b(fraction|probability|level of significance)\b", re.IGNORECASE)
    shares = {name: form for name, form in NUMBERS.items() if named.search(form["description"])}
    assert len(shares) > 8
    assert {
        name for name, form in shares.items() if form.get("maximum", form.get("exclusiveMaximum")) != 1
    } == set()
