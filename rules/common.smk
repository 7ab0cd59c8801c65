"""Shared by all rules: the study that the configuration asks for, and its runs, suites and grids by wildcards."""

from functools import partial
from pathlib import Path

from workflow_scripts.errors import one_line_errors
from workflow_scripts.graph import job_specs, needs, outside, reporting, source_plans
from workflow_scripts.graph.checks import open_study
from workflow_scripts.graph.configuration import as_in_a_file, load_config
from workflow_scripts.graph.console import (
    check_configfiles,
    print_gaps,
    print_lines,
    print_study,
    share_gpus,
    warn,
)
from workflow_scripts.graph.development import development_caveats
from workflow_scripts.graph.extraction import Extraction
from workflow_scripts.graph.folders import cache_warning
from workflow_scripts.graph.gaps import by_reason
from workflow_scripts.graph.notes import note_call
from workflow_scripts.graph.slices import (
    as_json,
    blocks_with,
    get_path,
    name_pattern,
    path_if_set,
    settings_of,
)
from workflow_scripts.graph.resources import resources_of
from workflow_scripts.settings.suites import EVALUATORS

check_configfiles()
with one_line_errors():
    if workflow.modifier.skip_configfile:  # a module whose workflow gives it a configuration
        OVER, GIVEN = [], {}
        config = load_config(Path(CLONE), given=config, place="config of the module")
    else:
        OVER, GIVEN = workflow.overwrite_configfiles, workflow.config_settings.config
        config = load_config(Path(CLONE), OVER, as_in_a_file(GIVEN))
GPUS = share_gpus(workflow)
print_study(config, OVER, GPUS)
STUDY = open_study(config, Path(CLONE), OVER, GIVEN)
print_gaps(by_reason(STUDY))
print_lines(development_caveats(STUDY))
EXTRACTION, FIGURES = Extraction(STUDY), reporting.Figures(STUDY)
PAGE, CLAIMS = reporting.Page(STUDY), reporting.Claims(STUDY)
SETTINGS = STUDY.settings  # the checked configuration
DATASETS = {name: outside.Dataset(STUDY, name) for name in SETTINGS.datasets}


# Functions of a job's wildcards. The objects that the first six return are defined in graph/study.py.
run = lambda w: STUDY.runs[w.run]
suite = lambda w: STUDY.suites[w.suite]
grid = lambda w: STUDY.grids[w.experiment]
encoder = lambda w: STUDY.encoders[w.encoder]
teacher = lambda w: STUDY.encoders[w.teacher]
setting = lambda path: lambda w: get_path(
    SETTINGS, path.format(**w)
)  # the block of the configuration at a path
method_modules = lambda w: run(w).modules  # Python modules that making a run's model imports by name
model_modules = lambda w: run(w).loading  # Python modules that loading a run's model imports by name
run_encoder = lambda w: [run(w).encoder]  # the encoder that a job of a run loads

# For the directives of rules
JobSpec = partial(job_specs.JobSpec, workplace=STUDY.workplace)  # code, params and command of a rule
config_settings = partial(settings_of, lambda w: SETTINGS)  # settings: parts of the configuration as JSON
job_resources = partial(
    resources_of, STUDY
)  # resources: memory and runtime of a job, by the encoders that it loads
on_gpu = lambda kind: int(SETTINGS.evaluation.asks(kind, here=bool(GPUS)))  # resources: GPUs of an evaluation


pathvars:
    results=STUDY.folder,
    logs=f"logs/{SETTINGS.name}",
    benchmarks=f"benchmarks/{SETTINGS.name}",


onstart:
    if not workflow.touch:  # which runs no job
        needs.check_needs(STUDY, workflow.dag.needrun_jobs())
        source_plans.note_planned()
        note_call(
            SETTINGS.name,
            OVER,
            GIVEN,
            [str(file) for job in workflow.dag.needrun_jobs() for file in job.output],
        )
        warn(cache_warning(SETTINGS.cache))


wildcard_constraints:
    dataset=name_pattern(SETTINGS.datasets),
    corpus="[a-z0-9_]+",
    encoder="[a-z0-9_]+",
    experiment=name_pattern(STUDY.grids),
    suite=name_pattern(STUDY.suites),
    kind="[a-z0-9_]+",
    pool="[a-z0-9_]+",
    run=name_pattern(STUDY.runs),
    seed="[0-9]+",
    statistics=name_pattern(SETTINGS.extraction.statistics),
    table=name_pattern(SETTINGS.extraction.tables),
    teacher=name_pattern(blocks_with(SETTINGS.encoders, "runs")),
