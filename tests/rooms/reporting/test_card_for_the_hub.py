"""A card that the Hub takes: its front matter, its citations, and an upload to a server that stands in for the Hub."""

import json
import re
import threading
import tomllib
from base64 import b64decode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pandas as pd
import pytest
import yaml
from huggingface_hub import ModelCard, metadata_load
from huggingface_hub.repocard_data import model_index_to_eval_results

from tests.support.snakemake_plans import ROOT, run_alone
from workflow_scripts.reporting.citations import OF_METHODS, OF_READOUTS, bibtex, papers_of
from workflow_scripts.reporting.model_card import metadata, over_seeds

CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
ENCODER = {"name": "minilm", "licence": "Apache-2.0", "origin": "a package", "hub": "some/encoder"}
TEXT = {
    "name": "wiki",
    "licence": "CC BY-SA",
    "origin": "here",
    "citation": "x",
    "hub": "some/text",
    "language": "en",
}
SCORES = [
    {"kind": "sts", "suite": suite, "task": task, "aggregation": over, "metric": metric, "value": 0.123456}
    for suite, task, over, metric in [
        ("sts", "sts12", "all", "spearman"),
        ("sts", "sts12", "wmean", "spearman"),
        ("sts", "lee_space", "", "alignment"),
        ("second", "sts12", "all", "spearman"),
    ]
]
MRPC = {"kind": "transfer", "suite": "t", "task": "mrpc", "aggregation": "", "metric": "f1", "value": 0.8}


def front_matter(tmp_path, encoders=(ENCODER,), data=(TEXT,), scores=SCORES):
    told = {"encoders": [*encoders], "data": [*data]}
    path = tmp_path / "README.md"
    path.write_text(
        f"---\n{metadata(told, 'simcse.minilm.wiki', scores).to_yaml()}\n---\n\n# A model\n", "utf-8"
    )
    return path


def test_the_front_matter_has_every_field_that_the_hub_reads(tmp_path):
    found = metadata_load(front_matter(tmp_path))
    assert found.pop("model-index")
    assert found == {
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": ["sentence-transformers", "sentence-similarity", "feature-extraction", "semblance"],
        "language": ["en"],
        "base_model": ["some/encoder"],
        "datasets": ["some/text"],
        "license": "apache-2.0",
    }


def test_each_score_stands_once(tmp_path):
    card = ModelCard.load(front_matter(tmp_path))
    scores = [(one.dataset_name, one.metric_type, one.metric_value) for one in card.data.eval_results]
    assert sorted(scores) == [
        ("lee_space", "alignment", 0.1235),
        ("sts12", "spearman_all", 0.1235),
        ("sts12", "spearman_wmean", 0.1235),
    ]
    name, results = model_index_to_eval_results(metadata_load(front_matter(tmp_path))["model-index"])
    assert name == "simcse.minilm.wiki"
    assert len(results) == 3


def test_a_card_has_its_seeds_score_next_to_the_mean_over_seeds():
    """By hand: 0.5, 0.6 and 0.7 have the mean 0.6 and, with n - 1, the standard deviation 0.1; parts are left out."""
    whole = {"kind": "sts", "suite": "sts", "task": "sts12", "aggregation": "all", "metric": "spearman"}
    part, gap = whole | {"aggregation": "all:a"}, whole | {"metric": "pearson"}
    rows = [whole | {"seed": seed, "value": value} for seed, value in ((1, 0.5), (2, 0.6), (3, 0.7))]
    rows += [part | {"seed": 3, "value": 0.1}, gap | {"seed": 3, "value": None}]
    (row,) = over_seeds(pd.DataFrame(rows), 3)
    assert row == whole | {"value": 0.7, "count": 3, "mean": pytest.approx(0.6), "std": pytest.approx(0.1)}


def test_a_score_has_the_task_of_its_suite(tmp_path):
    card = ModelCard.load(front_matter(tmp_path, scores=[SCORES[0], MRPC]))
    tasks = {one.dataset_name: (one.task_type, one.task_name) for one in card.data.eval_results}
    assert tasks == {
        "sts12": ("semantic-similarity", "Semantic similarity"),
        "mrpc": ("text-classification", "Text classification"),
    }


@pytest.mark.parametrize(
    ("licences", "said"),
    [
        (["MIT"], {"license": "mit"}),
        (["not stated"], {"license": "other", "license_name": "not-stated"}),
        (["Apache-2.0", "MIT"], {"license": "other", "license_name": "apache-2.0-and-mit"}),
    ],
)
def test_a_licence_has_the_hubs_identifier_or_a_name(tmp_path, licences, said):
    encoders = [ENCODER | {"licence": licence} for licence in licences]
    found = metadata_load(front_matter(tmp_path, encoders))
    assert {key: value for key, value in found.items() if key.startswith("license")} == said


def test_what_has_no_name_on_the_hub_is_not_given_one(tmp_path):
    found = metadata_load(front_matter(tmp_path, [ENCODER | {"hub": None}], [TEXT | {"hub": None}], []))
    assert not found.keys() & {"base_model", "datasets", "model-index"}


def test_every_method_and_reference_has_a_citation():
    methods = {path.stem for path in (ROOT / "workflow_scripts/methods").glob("[a-z]*.py")} - {"contrastive"}
    assert {*OF_METHODS} == methods
    cited = {paper for papers in (*OF_METHODS.values(), *OF_READOUTS.values()) for paper in papers}
    assert cited == {one["abbreviation"] for one in CITATION["references"] if "abbreviation" in one}


def test_a_wrapped_method_cites_what_it_wraps_and_the_readout():
    base = {"module": "simcse", "readout": {"kind": "s2sent"}}
    assert papers_of({"module": "three_r", "base": base}) == ["3R", "SimCSE", "S2Sent"]
    assert papers_of({"module": "frozen", "readout": {"kind": "pooling"}}) == []


def test_bibtex_has_the_papers_and_the_software():
    entry, software = bibtex(CITATION, ["SimCSE"]).split("\n\n")
    assert entry == (
        "@misc{simcse2021,\n"
        "  title = {{SimCSE: Simple Contrastive Learning of Sentence Embeddings}},\n"
        "  author = {Gao, Tianyu and Yao, Xingcheng and Chen, Danqi},\n"
        "  year = {2021},\n"
        "  url = {https://arxiv.org/abs/2104.08821}\n}"
    )
    assert software.startswith("@software{semblance2026,\n")
    assert "  version = {0.1.0}" in software
    assert "author = {{The Semblance developers}}" in software


def test_the_citation_file_has_the_packages_version_and_a_date():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert str(CITATION["version"]) == project["version"]
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", str(CITATION["date-released"]))


class StandIn(BaseHTTPRequestHandler):
    """The calls of the Hub that an upload makes; files arrive in one commit."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.calls.append(self.path)
        answer = {"url": f"{self.server.url}/me/simcse-minilm", "name": "me/simcse-minilm"}
        if self.path == "/api/validate-yaml":
            self.server.validated.append(json.loads(body))
            answer = {"errors": [], "warnings": []}
        elif "/preupload/" in self.path:
            named = [one["path"] for one in json.loads(body)["files"]]
            answer = {
                "files": [{"path": path, "uploadMode": "regular", "shouldIgnore": False} for path in named]
            }
        elif "/commit/" in self.path:
            lines = [json.loads(line) for line in body.splitlines()]
            files = [line["value"] for line in lines if line["key"] == "file"]
            self.server.files |= {one["path"]: b64decode(one["content"]) for one in files}
            answer = {
                "success": True,
                "commitOid": "0" * 40,
                "commitUrl": f"{self.server.url}/me/simcse-minilm/commit/{'0' * 40}",
            }
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        """Print nothing."""


@pytest.fixture
def hub():
    server = ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
    server.url = f"http://127.0.0.1:{server.server_port}"
    server.calls, server.validated, server.files = [], [], {}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_the_documented_lines_upload_a_model_and_its_card(hub, tmp_path):
    page = (ROOT / "docs/using_a_model.md").read_text("utf-8")
    (lines,) = re.findall(r"```python untried: it needs an account of the Hub\n(.*?)```", page, re.DOTALL)
    shared = tmp_path / "shared"
    (shared / "1_Pooling").mkdir(parents=True)
    card = front_matter(shared).read_bytes()
    files = {
        "README.md": card,
        "model.safetensors": bytes(range(256)),
        "1_Pooling/config.json": b"{}",
        "record.json": b"{}",
    }
    for name, content in files.items():
        (shared / name).write_bytes(content)
    known = {
        "HF_ENDPOINT": hub.url,
        "HF_TOKEN": "hf_stand_in",
        "HF_HOME": str(tmp_path / "home"),
        "HF_HUB_OFFLINE": "0",
    }
    done = run_alone(tmp_path, "-c", lines, **known)
    assert done.returncode == 0, done.stderr[-3000:]
    assert hub.files == files
    assert [one["content"].encode() for one in hub.validated] == [card]
    assert hub.calls[0] == "/api/repos/create"
