"""Encode the sentences of a corpus with a finished run, for its students (rule encode_teacher)."""

import pyarrow as pa

from workflow_scripts.columns import TEACHER
from workflow_scripts.models.devices import granted_device
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.training import TeacherEncoding
from workflow_scripts.training.data import read_columns


def encode_teacher(job: Job) -> None:
    """Write the teacher's vectors of the sentences of a corpus."""
    settings = TeacherEncoding.parse(job.settings["teacher"], "teacher")
    encoder = load_encoder(job.input("model").parent)
    encoder.to(granted_device(1))  # the rule requests one
    vectors_ND = encoder.encode(read_columns(job.input("sentences"))["anchor"], settings.max_tokens)
    count, width = vectors_ND.shape
    columns = [
        pa.FixedSizeListArray.from_arrays(pa.array(vectors_ND.ravel()), width).cast(
            TEACHER.field("vector").type
        ),
        pa.array([len(encoder.backbones)] * count, TEACHER.field("encoders").type),
    ]
    job.write({"vectors": pa.table(columns, schema=TEACHER)})
