"""What it takes to evaluate an encoder on a suite: tokens to encode, and what is computed with their vectors.

Numbers come from config/rates.yaml and from the contracts of datasets. What of a suite has no number counts as nothing:
a rule's own request must do for it.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Any, NamedTuple

from workflow_scripts.planning.rates import Rates, rows_of


class Work(NamedTuple):
    """Of one suite, whatever the encoder."""

    rows: float = 0.0
    """Of all its datasets; of mteb's tasks none, which are not held in memory together."""
    tokens: float = 0.0
    scoring_seconds: float = 0.0
    """On one thread, for each dimension of the vectors."""


def work_of(kind: str, suite: Mapping[str, Any], datasets: Mapping[str, Any], rates: Rates) -> Work:
    """The work of a suite.

    Args:
        kind: Of the suite.
        suite: Its settings.
        datasets: Blocks of the configuration by name.
        rates: Contents of config/rates.yaml.
    """
    if kind == "mteb":
        known = (rates.list_tokens[name] for name in suite["lists"] if name in rates.list_tokens)
        return Work(tokens=sum(rate.value for rate in known))
    parts = [
        (min(found.value, most), _row_tokens(name, datasets[name]["form"], rates))
        for name, most in _read(suite)
        if (found := rows_of(name, datasets[name]["contract"], rates))
    ]
    rows = sum(count for count, _ in parts)
    tokens = sum(count * min(each, 2 * suite["max_tokens"]) for count, each in parts)
    return Work(rows, tokens, rows * _scoring(kind, suite, rates))


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


def _scoring(kind: str, suite: Mapping[str, Any], rates: Rates) -> float:
    """Seconds for each row and dimension."""
    rate = rates.scoring_seconds.get(kind)
    return rate.value * suite.get("seeds", 1) * suite.get("n_init", 1) if rate else 0.0
