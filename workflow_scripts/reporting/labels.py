"""The two kinds of labels in records: substitutions and gaps."""

from collections.abc import Iterable
from typing import NamedTuple

_GAP = "gap: "  # prefix of read_dataset's label for a dataset that is not available


class Labels(NamedTuple):
    """Substitutions and gaps, each sorted."""

    substitutions: tuple[str, ...]
    gaps: tuple[str, ...]

    def sentences(self) -> list[str]:
        """All labels, each with a word for its kind."""
        return [
            *(f"Substitution: {label}." for label in self.substitutions),
            *(f"Gap: {gap}." for gap in self.gaps),
        ]


def split_labels(labels: Iterable[str]) -> Labels:
    """Separate labels into substitutions and gaps."""
    unique = sorted(set(labels))
    return Labels(
        substitutions=tuple(label for label in unique if not label.startswith(_GAP)),
        gaps=tuple(label.removeprefix(_GAP) for label in unique if label.startswith(_GAP)),
    )
