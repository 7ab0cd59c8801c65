"""Print the JSON Schema of the configuration, of a grid, or of the options of a reader of datasets.

Each key has its type, its range and its description, by which an editor knows it. Of a reader there are also the roles
that its files may have, and the rows that it returns.

  python -m workflow_scripts schema > .vscode/semblance.schema.json
"""

import importlib
import json
from typing import Any

from pydantic.json_schema import models_json_schema

from workflow_scripts.columns.corpora import FORMS
from workflow_scripts.config import Settings, names_in
from workflow_scripts.graph.references import READERS, reader
from workflow_scripts.settings.study import Grid, MethodBlock, Study
from workflow_scripts.verbs.printing import Answer, argument

_FILES: dict[str, Any] = {"configuration": Study, "grid": Grid}


def reader_schema(name: str) -> dict[str, Any]:
    """The options of a reader, the roles of its files and the columns of its rows."""
    takes = reader(name)
    rows = {form: FORMS[form].names for form in takes.forms}
    return {**takes.model_json_schema(), "files": list(takes.roles), "rows": rows}


def schema_of(file: str) -> dict[str, Any]:
    """The schema of a kind of file; blocks of methods and readouts have those of every module."""
    methods = [
        MethodBlock.class_of({"module": name}) for name in names_in("workflow_scripts.settings.methods")
    ]
    package = "workflow_scripts.settings.readouts"
    readouts = [importlib.import_module(f"{package}.{kind}").Config for kind in names_in(package)]
    models: list[type[Settings]] = [_FILES[file], *methods, *readouts]
    references, schema = models_json_schema([(model, "validation") for model in models])
    choices = {"MethodBlock": methods, "ReadoutConfig": readouts}
    for name in choices.keys() & schema["$defs"].keys():
        schema["$defs"][name] = {"oneOf": [references[model, "validation"] for model in choices[name]]}
    return {**references[_FILES[file], "validation"], **schema}


ARGUMENTS = (argument("what", nargs="?", default="configuration", choices=[*_FILES, *names_in(READERS)]),)


def answer(what: str) -> Answer:
    """The schema as JSON."""
    schema = schema_of(what) if what in _FILES else reader_schema(what)
    return Answer(parts=[json.dumps(schema, indent=1, sort_keys=True)], data=schema)
