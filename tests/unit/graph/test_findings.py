"""What a failed dry run is said to have failed for."""

import pytest

from workflow_scripts.graph.findings import first_error


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (["Building DAG", "WorkflowError:", "  no keys.", "more"], "WorkflowError: no keys."),
        (["KeyError in line 3: 'a'", "more"], "KeyError in line 3: 'a'"),
        (["nothing of the kind", "the last"], "the last"),
        (["WorkflowError:"], "WorkflowError:"),
        ([], ""),
    ],
)
def test_the_first_error_is_told_with_what_it_says(printed, said):
    assert first_error(printed) == said
