"""Shared by all rules: the study that the configuration asks for, and its runs, suites and grids by wildcards."""

from functools import partial
from pathlib import Path

from workflow_scripts.errors import one_line_errors
from workflow_scripts.graph import outside, reporting
from workflow_scripts.graph.call import (
    as_json,
    at,
    call,
    code,
    command,
    filled,
    having,
    note_call,
    one_of,
    parts,
)
from workflow_scripts.graph.checks import open_study
from workflow_scripts.graph.configuration import as_in_a_file, load_config
from workflow_scripts.graph.console import check_configfiles, print_study, warn
from workflow_scripts.graph.extraction import Extraction
from workflow_scripts.graph.folders import cache_warning
from workflow_scripts.graph.study import ask as asking
from workflow_scripts.settings.suites import EVALUATORS

check_configfiles()
with one_line_errors():
    if workflow.modifier.skip_configfile:  # a module whose workflow gives it a configuration
        OVER, GIVEN = [], {}
        config = load_config(Path(CLONE), given=config, place="config of the module")
    else:
        OVER, GIVEN = workflow.overwrite_configfiles, workflow.config_settings.config
        config = load_config(Path(CLONE), OVER, as_in_a_file(GIVEN))
print_study(config, OVER)
STUDY = open_study(config, Path(CLONE), OVER, GIVEN)
EXTRACTION, FIGURES = Extraction(STUDY), reporting.Figures(STUDY)
PAGE, CLAIMS = reporting.Page(STUDY), reporting.Claims(STUDY)
SETTINGS = STUDY.settings  # the checked configuration
DATASETS = {name: outside.Dataset(STUDY, name) for name in SETTINGS.datasets}


settings = partial(parts, lambda w: SETTINGS)  # parts of the configuration that a job reads, as JSON
ask = partial(asking, STUDY)  # memory and time of a job
block = lambda path: lambda w: at(SETTINGS, path.format(**w))  # of the configuration; wildcards in braces

# By the wildcards of a job. Runs, suites, grids and encoders know their settings and files: graph/study.py.
run = lambda w: STUDY.runs[w.run]
suite = lambda w: STUDY.suites[w.suite]
grid = lambda w: STUDY.grids[w.experiment]
encoder = lambda w: STUDY.encoders[w.encoder]
teacher = lambda w: STUDY.encoders[w.teacher]
modules = lambda w: run(w).modules  # that making a run imports by name
loading = lambda w: run(w).loading  # that loading a run's model imports by name
of_run = lambda w: [run(w).encoder]  # loaded by a job of a run
on_gpu = lambda kind: int(kind in SETTINGS.evaluation.on_gpu)


pathvars:
    results=STUDY.folder,
    logs=f"logs/{SETTINGS.name}",
    benchmarks=f"benchmarks/{SETTINGS.name}",


onstart:
    if not workflow.touch:  # which runs no job
        outside.check_needs(STUDY, workflow.dag.needrun_jobs())
        outside.note_planned()
        note_call(SETTINGS.name, OVER, GIVEN)
        warn(cache_warning(SETTINGS.cache))


wildcard_constraints:
    dataset=one_of(SETTINGS.datasets),
    corpus="[a-z0-9_]+",
    encoder="[a-z0-9_]+",
    experiment=one_of(STUDY.grids),
    suite=one_of(STUDY.suites),
    kind="[a-z0-9_]+",
    pool="[a-z0-9_]+",
    run=one_of(STUDY.runs),
    seed="[0-9]+",
    statistics=one_of(SETTINGS.extraction.statistics),
    table=one_of(SETTINGS.extraction.tables),
    teacher=one_of(having(SETTINGS.encoders, "runs")),
