"""Print the JSON Schema of the configuration, of a grid, or of the options of a reader of datasets.

Each key has its type, its range and its description, by which an editor knows it. Of a reader there are also the roles
that its files may have, and the rows that it returns.

  python -m workflow_scripts schema > .vscode/semblance.schema.json
"""

import json
from typing import Any

from workflow_scripts.columns import FORMS
from workflow_scripts.settings.grids import GridBlock
from workflow_scripts.settings.sources import READERS
from workflow_scripts.settings.study import Configuration
from workflow_scripts.verbs.printing import Answer, argument

_FILES: dict[str, Any] = {"configuration": Configuration, "grid": GridBlock}


def reader_schema(name: str) -> dict[str, Any]:
    """The options of a reader, the roles of its files and the columns of its rows."""
    takes = READERS[name]
    rows = {form: FORMS[form].names for form in takes.forms}
    return {**takes.model_json_schema(), "files": list(takes.roles), "rows": rows}


def schema_of(file: str) -> dict[str, Any]:
    """The schema of a kind of file."""
    schema: dict[str, Any] = _FILES[file].model_json_schema()
    return schema


ARGUMENTS = (argument("what", nargs="?", default="configuration", choices=[*_FILES, *READERS]),)


def answer(what: str) -> Answer:
    """The schema as JSON."""
    schema = schema_of(what) if what in _FILES else reader_schema(what)
    return Answer(parts=[json.dumps(schema, indent=1, sort_keys=True)], document=schema)
