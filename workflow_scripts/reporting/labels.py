"""Labels of records told apart: what stands in for something, and what is missing."""

from collections.abc import Iterable
from typing import NamedTuple

_GAP = "gap: "  # how read_dataset begins the label of a dataset that no source has


class Labels(NamedTuple):
    """Substitutions and gaps, each sorted."""

    substitutions: tuple[str, ...]
    gaps: tuple[str, ...]

    def sentences(self) -> list[str]:
        """All of them, each with the word that says which it is."""
        return [
            *(f"Substitution: {label}." for label in self.substitutions),
            *(f"Gap: {gap}." for gap in self.gaps),
        ]


def told_apart(labels: Iterable[str]) -> Labels:
    """Sort labels into substitutions and gaps."""
    unique = sorted(set(labels))
    return Labels(
        substitutions=tuple(label for label in unique if not label.startswith(_GAP)),
        gaps=tuple(label.removeprefix(_GAP) for label in unique if label.startswith(_GAP)),
    )
