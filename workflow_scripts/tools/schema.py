"""Print the JSON Schema of the configuration, or of a grid or a file of claims: an editor then knows every key.

Each key has its type, its range and its description.

  python -m workflow_scripts schema > .vscode/semblance.schema.json
"""

import argparse
import importlib
import json
from typing import Any

from pydantic.json_schema import models_json_schema

from workflow_scripts.audit.printing import Answer
from workflow_scripts.config import Settings, names_in
from workflow_scripts.settings.claims import ClaimFile
from workflow_scripts.settings.study import Grid, MethodBlock, Study

_FILES: dict[str, Any] = {"configuration": Study, "grid": Grid, "claims": ClaimFile}


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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what schema takes."""
    parser.add_argument(
        "file", nargs="?", default="configuration", choices=_FILES, help="default: configuration"
    )


def answer(args: argparse.Namespace) -> Answer:
    """The schema as JSON."""
    schema = schema_of(args.file)
    return Answer(parts=[json.dumps(schema, indent=1, sort_keys=True)], data=schema)
