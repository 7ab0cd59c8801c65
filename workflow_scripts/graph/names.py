"""What readers see in place of identifiers: the section ``names`` of the configuration."""

from collections.abc import Iterable, Iterator, Mapping

from workflow_scripts.graph.runs import Run
from workflow_scripts.graph.slices import Config


def called_runs(names: Config, runs: Mapping[str, Run]) -> dict[str, list[str]]:
    """Each run's name in words, in as many parts as its identifier has between dots."""
    return {name: _parts(names, name, run) for name, run in runs.items()}


def _parts(names: Config, name: str, run: Run) -> list[str]:
    axes = {"methods": run.method, "encoders": run.encoder, "corpora": run.corpus}
    found = [_of(names, kind).get(part, part) for kind, part in axes.items() if part]
    others = name.split(".")[len(found) :]
    return [*found, *(_other(names, part, run) for part in others)]


def _other(names: Config, part: str, run: Run) -> str:
    """A part behind method, encoder and corpus: a reading, a teacher, a tag or values of a sweep."""
    if part == run.teacher:
        return f"taught by {_of(names, 'encoders').get(part, part)}"
    return part.replace("_", " ")


def called(names: Config, kind: str, identifiers: Iterable[str]) -> dict[str, str]:
    """Names of some blocks of one kind; those that have none are left out."""
    known = _of(names, kind)
    return {name: known[name] for name in sorted(set(identifiers)) if name in known}


def _of(names: Config, kind: str) -> dict[str, str]:
    found: dict[str, str] = names.get(kind, {})
    return found


def ambiguity_findings(names: Config, runs: Mapping[str, Run], place: str) -> Iterator[str]:
    """Two runs of a grid that readers could not tell apart."""
    first: dict[tuple[str, ...], str] = {}
    for name, parts in called_runs(names, runs).items():
        if (other := first.setdefault(tuple(parts), name)) != name:
            yield f"{place}: {other} and {name} are both called {', '.join(parts)}. Change names."
