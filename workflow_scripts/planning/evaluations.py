"""Tokens that an evaluation of an encoder on a suite encodes.

Numbers come from config/rates.yaml and from the contracts of datasets. What of a suite has no number counts as nothing.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Any

from workflow_scripts.planning.rates import Rates, rows_of


def tokens_of(kind: str, suite: Mapping[str, Any], datasets: Mapping[str, Any], rates: Rates) -> float:
    """The tokens of a suite.

    Args:
        kind: Of the suite.
        suite: Its settings.
        datasets: Blocks of the configuration by name.
        rates: Contents of config/rates.yaml.
    """
    if kind == "mteb":
        return sum(rates.list_tokens[name].value for name in suite["lists"] if name in rates.list_tokens)
    each: Iterator[float] = (
        min(found.value, most)
        * min(_row_tokens(name, datasets[name]["form"], rates), 2 * suite["max_tokens"])
        for name, most in _read(suite)
        if (found := rows_of(name, datasets[name]["contract"], rates))
    )
    return sum(each)


def _row_tokens(name: str, form: str, rates: Rates) -> float:
    rate = rates.row_tokens.get(name) or rates.row_tokens.get(form)
    return rate.value if rate else 0.0


def _read(suite: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Datasets of a suite, each with the largest number of its rows that is read; those of a sample are sentences."""
    most = next((suite[key] for key in ("max_pairs", "max_texts") if suite.get(key)), inf)
    yield from ((name, most) for name in suite.get("datasets", []))
    yield from _widest((block["dataset"], inf) for block in suite.get("positives", {}).values())
    yield from _widest(
        (block["dataset"], block["max_sentences"]) for block in suite.get("samples", {}).values()
    )


def _widest(read: Iterable[tuple[str, float]]) -> Iterator[tuple[str, float]]:
    """Each dataset once, with the largest number of its rows."""
    widest: dict[str, float] = {}
    for name, most in read:
        widest[name] = max(most, widest.get(name, 0))
    yield from widest.items()
