"""Objects that all rules share: the configured study, and its runs, suites and grids by wildcards."""

from functools import partial
from pathlib import Path

from workflow_scripts.errors import one_line_errors
from workflow_scripts.graph import job_specs, needs, outside, reporting, source_plans
from workflow_scripts.graph.claims import PlannedClaims
from workflow_scripts.graph.checks import open_study
from workflow_scripts.graph.configuration import as_in_a_file, load_config
from workflow_scripts.graph.console import (
    check_configfiles,
    print_lines,
    print_study,
    share_gpus,
    warn,
)
from workflow_scripts.graph.development import development_caveats
from workflow_scripts.graph.extraction import Extraction
from workflow_scripts.graph.folders import cache_warning
from workflow_scripts.graph.gaps import gap_lines
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
from workflow_scripts.settings.report import CLAIM_FIGURES
from workflow_scripts.settings.suites import EVALUATORS, SUITES

# The configuration: files after --configfile and values of --config override config/*.yaml.
check_configfiles()
with one_line_errors():
    if workflow.modifier.skip_configfile:  # a module with a configuration from its workflow
        CONFIGFILES, OPTIONS = [], {}
        config = load_config(Path(CLONE), given=config, origin="config of the module")
    else:
        CONFIGFILES, OPTIONS = workflow.overwrite_configfiles, workflow.config_settings.config
        config = load_config(Path(CLONE), CONFIGFILES, as_in_a_file(OPTIONS))
GPUS = share_gpus(workflow)
print_study(config, CONFIGFILES, GPUS)
STUDY = open_study(config, Path(CLONE), CONFIGFILES, OPTIONS)
print_lines([*gap_lines(STUDY), *development_caveats(STUDY)])
EXTRACTION, FIGURES = Extraction(STUDY), reporting.Figures(STUDY)
PAGE, CLAIMS = reporting.PlannedPage(STUDY), PlannedClaims(STUDY)
SETTINGS = STUDY.settings  # the checked configuration
DATASETS = {name: outside.PlannedDataset(STUDY, name) for name in SETTINGS.datasets}


# The object of a job, by its wildcards. Their settings and files are defined in graph/runs.py and graph/encoders.py.
run = lambda w: STUDY.runs[w.run]
suite = lambda w: STUDY.suites[w.suite]
grid = lambda w: STUDY.grids[w.experiment]
encoder = lambda w: STUDY.encoders[w.encoder]
teacher = lambda w: STUDY.encoders[w.teacher]

# the block of the configuration at a path, which may contain wildcards, such as corpora.{corpus}
setting = lambda path: lambda w: get_path(SETTINGS, path.format(**w))

# Helpers for the directives of rules. Those of graph/slices.py, which take one of the functions above, are
#
#   settings_of(run, "method", training="x.y")  run(w).method and run(w).x.y as JSON: the settings that the job reads
#   path_if_set("<results>/{corpus}/...", run)  a path with wildcards or attributes of run(w) filled in; no input if
#                                               the run has no corpus
#   blocks_with(section, key, value)            names of a section's blocks that have the key, or this value of it
#   name_pattern(names)                         a wildcard constraint that matches only these names
#
# JobSpec(function, settings=, ...) declares the jobs of the rule below it: their Python function, which reads no part
# of the configuration except these settings. The rule uses its `code` (a file with the hashes of all modules that the
# function needs: an edit of one of them reruns the job), `params` and `shell`.
#   imports: modules that a job imports by name, by its wildcards; all others are found by import statements
#   cached: False if finished outputs are never reused, because the job downloads or queries a service
#   portable: True if other studies and clones can reuse the outputs, because they depend on no path
#   outside: the block whose data, engine or key must exist before the run starts
JobSpec = partial(job_specs.JobSpec, workplace=STUDY.workplace)
# settings_of the whole configuration, whose paths may have wildcards
config_settings = partial(settings_of, lambda w: SETTINGS)
# memory and runtime of a job with BERT-base or no encoder; more if `encoders` returns larger ones
job_resources = partial(resources_of, STUDY)
# for `encoders`: the encoder of a job's run
run_encoder = lambda w: [run(w).encoder]
# for `imports`: modules that make a run's model, and modules that load it
method_modules = lambda w: run(w).modules
model_modules = lambda w: run(w).loading
# number of GPUs of an evaluation of a kind
on_gpu = lambda kind: int(SETTINGS.evaluation.asks(kind, here=bool(GPUS)))
# Resources named service, contract, checkpoint_minutes and chunk are settings that change no result. They reach the job
# as resources, because Snakemake compares params with those of the last run, but not resources.


pathvars:  # values of <results>, <logs> and <benchmarks> in the paths of rules
    results=STUDY.folder,
    logs=f"logs/{SETTINGS.name}",
    benchmarks=f"benchmarks/{SETTINGS.name}",


onstart:
    if not workflow.touch:  # --touch runs no job
        needs.check_needs(STUDY, workflow.dag.needrun_jobs())
        source_plans.note_planned()
        note_call(
            SETTINGS.name,
            CONFIGFILES,
            OPTIONS,
            [str(file) for job in workflow.dag.needrun_jobs() for file in job.output],
        )
        warn(cache_warning(SETTINGS.cache))


# A wildcard matches only names of the configuration, so Snakemake tries no rule for other files.
# Each rule with `kind` constrains it further.
wildcard_constraints:
    dataset=name_pattern(SETTINGS.datasets),
    corpus=name_pattern(SETTINGS.corpora),
    encoder=name_pattern(SETTINGS.encoders),
    experiment=name_pattern(STUDY.grids),
    suite=name_pattern(STUDY.suites),
    kind="[a-z0-9_]+",
    pool=name_pattern(SETTINGS.exemplars),
    run=name_pattern(STUDY.runs),
    seed="[0-9]+",
    statistics=name_pattern(SETTINGS.extraction.statistics),
    table=name_pattern(SETTINGS.extraction.tables),
    teacher=name_pattern(blocks_with(SETTINGS.encoders, "runs")),
