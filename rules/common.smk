"""Shared by all rules: the study that the configuration asks for, and what rules look up in it by name."""

from pathlib import Path

from workflow_scripts.errors import one_line_errors
from workflow_scripts.graph.call import call, code_of, code_with, command
from workflow_scripts.graph.configuration import as_in_a_file, load_config
from workflow_scripts.graph.corpora import Corpora
from workflow_scripts.graph.evaluation import Evaluation
from workflow_scripts.graph.extraction import Extraction
from workflow_scripts.graph.figures import Figures
from workflow_scripts.graph.place import note_call
from workflow_scripts.graph.outside import check_needs, note_planned
from workflow_scripts.graph.reporting import Claims, Models, Reporting
from workflow_scripts.graph.requests import Requests
from workflow_scripts.graph.slices import as_json, config_slice, filled, one_of
from workflow_scripts.graph.study import open_study
from workflow_scripts.settings.suites import EVALUATORS
from workflow_scripts.graph.targets import check_configfiles, line_of_files, lines_of_machine, print_lines
from workflow_scripts.graph.training import Training

check_configfiles()
with one_line_errors():
    if workflow.modifier.skip_configfile:  # a module whose workflow gives it a configuration
        OVER, GIVEN = [], {}
        config = load_config(Path(CLONE), given=config, place="config of the module")
    else:
        OVER, GIVEN = workflow.overwrite_configfiles, workflow.config_settings.config
        config = load_config(Path(CLONE), OVER, as_in_a_file(GIVEN))
print_lines([line_of_files(config, OVER)])
STUDY = open_study(config, Path(CLONE))
print_lines(lines_of_machine(STUDY))
CORPORA = Corpora(STUDY)
TRAINING = Training(STUDY)
REQUESTS = Requests(STUDY)
EVALUATION = Evaluation(STUDY)
EXTRACTION = Extraction(STUDY)
REPORTING = Reporting(STUDY)
FIGURES = Figures(STUDY)
CLAIMS = Claims(STUDY)
MODELS = Models(STUDY)


pathvars:
    results=STUDY.folder,
    logs=f"logs/{config['name']}",
    benchmarks=f"benchmarks/{config['name']}",


onstart:
    if not workflow.touch:  # which runs no job
        check_needs(STUDY, workflow.dag.needrun_jobs())
        note_planned()
        note_call(config["name"], OVER, GIVEN, config["cache"])


wildcard_constraints:
    dataset=one_of(config["datasets"]),
    corpus="[a-z0-9_]+",
    encoder="[a-z0-9_]+",
    experiment=one_of(STUDY.grids),
    suite=one_of(suite for suites in config["suites"].values() for suite in suites),
    kind="[a-z0-9_]+",
    pool="[a-z0-9_]+",
    run=one_of(STUDY.runs),
    seed="[0-9]+",
