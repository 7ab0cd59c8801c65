"""The study of the repository's own configuration, if nobody has asked for it: all papers, at their own scale."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.graph.lengths import on_the_card
from workflow_scripts.graph.study import Study

_TRAININGS = ("train_encoder", "continue_mlm")
_DEMO = "config/demo.yaml"


class NamedJob(NamedTuple):
    """A job that is planned."""

    rule: str
    wildcards: Mapping[str, str]


def unasked_study(study: Study, configfiles: Iterable[object], jobs: Iterable[NamedJob]) -> str:
    """Return a warning about a study that begins without --configfile; empty if it has one, or results.

    Args:
        study: The study.
        configfiles: As after --configfile.
        jobs: Those that are planned.
    """
    if [*configfiles] or Path(study.folder).is_dir():
        return ""
    planned = [*jobs]
    time = on_the_card(study, [job.wildcards for job in planned if job.rule in _TRAININGS])
    return (
        f"No --configfile is given, so this is the study {study.settings.name}; jobs planned: {len(planned):,}"
        f"{f' ({time})' if time else ''}. For the demo, which takes minutes, add --configfile {_DEMO}"
    )
