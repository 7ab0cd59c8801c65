import os
import subprocess
import sys

from tests.planning import ROOT


def test_a_reader_that_has_gone_gets_no_traceback():
    """As of head, or of a pager that is left."""
    reader, writer = os.pipe()
    os.close(reader)
    code = "from workflow_scripts.audit.printing import print_json; print_json([*range(100_000)])"
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert (said.returncode, said.stderr) == (1, "")
