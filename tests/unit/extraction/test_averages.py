import itertools
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from tests.tiny import DEPTH, WIDTH, sentences
from workflow_scripts.columns.extraction import TOKEN_SUMS
from workflow_scripts.errors import DataError
from workflow_scripts.extraction import averages as module
from workflow_scripts.extraction.averages import (
    STEP,
    TokenSums,
    merge,
    shard_of,
    sum_states,
    sums_tables,
    tables_of,
)
from workflow_scripts.extraction.pooling import mixed
from workflow_scripts.extraction.weighting import count_documents
from workflow_scripts.models.encoder import load_backbone, load_tokenizer
from workflow_scripts.models.tokens import tokenise

BLOCK = 8
TEXTS = sentences(60)


@pytest.fixture(scope="module")
def backbone(tiny_bert):
    return load_backbone(tiny_bert)


@pytest.fixture(scope="module")
def tokenizer(tiny_bert):
    return load_tokenizer(tiny_bert)


def sums_of(backbone, tokenizer, texts):
    return sum_states(backbone, tokenise(tokenizer, texts, 32), BLOCK, "float32")


def written(sums, place):
    with pq.ParquetWriter(
        place, TOKEN_SUMS, compression="zstd", use_dictionary=False, use_byte_stream_split=True
    ) as writer:
        for table in sums_tables(sums):
            writer.write_table(table)
    return place


def averages(*sums):
    places = [written(one, pa.BufferOutputStream()) for one in sums]
    return pa.concat_tables(merge([pq.ParquetFile(pa.BufferReader(place.getvalue())) for place in places]))


def states_of(backbone, tokenizer, text):
    batch = tokenise(tokenizer, [text], 32).batch([0])
    with torch.no_grad():
        layers = backbone(input_ids=batch.ids_BT, output_hidden_states=True).hidden_states
    return batch.ids_BT[0].tolist(), torch.stack([layer[0] for layer in layers]).numpy()


def test_a_token_seen_once_has_its_contextual_vector(backbone, tokenizer):
    """O-74"""
    ids, states = states_of(backbone, tokenizer, "The old river")
    tables, seen = tables_of(averages(sums_of(backbone, tokenizer, ["The old river"])), len(tokenizer))
    assert len(tables) == DEPTH + 1
    for layer, table in enumerate(tables):
        np.testing.assert_allclose(table[ids], states[layer], atol=1e-6)
    assert sorted(np.flatnonzero(seen)) == sorted(ids)


def test_tokens_and_documents_of_a_corpus_are_counted_by_hand(backbone, tokenizer):
    """O-75, of two sentences: [CLS] the river is the road [SEP], [CLS] the THE [SEP]."""
    texts = ["The river is the road", "the THE"]
    table = averages(sums_of(backbone, tokenizer, texts)).to_pylist()
    counts = {tokenizer.convert_ids_to_tokens(row["token_id"]): row["count"] for row in table}
    assert counts == {"[CLS]": 2, "[SEP]": 2, "the": 4, "river": 1, "is": 1, "road": 1}
    found = count_documents(tokenise(tokenizer, texts, 32), len(tokenizer))
    documents = dict(
        zip(tokenizer.convert_ids_to_tokens(range(len(tokenizer))), found.documents_V.tolist(), strict=True)
    )
    assert {word: number for word, number in documents.items() if number} == {
        "[CLS]": 2, "[SEP]": 2, "the": 2, "river": 1, "is": 1, "road": 1
    }  # fmt: skip
    assert (found.documents, found.tokens) == (2, 11)


def test_the_average_is_the_sum_over_occurrences_by_their_count(backbone, tokenizer):
    """O-74, token by token."""
    found = {}
    for text in TEXTS[:20]:
        for number, vectors in zip(
            *(lambda ids, states: (ids, states.transpose(1, 0, 2)))(*states_of(backbone, tokenizer, text)),
            strict=True,
        ):
            found.setdefault(number, []).append(vectors)
    tables, seen = tables_of(averages(sums_of(backbone, tokenizer, TEXTS[:20])), len(tokenizer))
    assert np.flatnonzero(seen).tolist() == sorted(found)
    for number, vectors in found.items():
        np.testing.assert_allclose([table[number] for table in tables], np.mean(vectors, axis=0), atol=1e-6)


def test_a_token_never_seen_has_the_mean_of_all_means(backbone, tokenizer):
    """F4"""
    tables, seen = tables_of(averages(sums_of(backbone, tokenizer, TEXTS[:5])), len(tokenizer))
    assert not seen.all()
    np.testing.assert_allclose(
        tables[1][~seen], np.tile(tables[1][seen].mean(axis=0), (int((~seen).sum()), 1)), atol=1e-6
    )


@pytest.mark.parametrize("shards", [2, 3, 7, 20])
def test_the_sums_of_any_number_of_shards_are_those_of_one_pass_bit_for_bit(backbone, tokenizer, shards):
    whole = averages(sums_of(backbone, tokenizer, TEXTS))
    ranges = [shard_of(len(TEXTS), BLOCK, shard, shards) for shard in range(1, shards + 1)]
    assert ranges[0][0] == 0
    assert ranges[-1][1] == len(TEXTS)
    assert all(end == start for (_, end), (start, _) in itertools.pairwise(ranges))
    parts = [sums_of(backbone, tokenizer, TEXTS[first:end]) for first, end in ranges]
    assert averages(*parts).equals(whole)
    assert averages(*reversed(parts)).equals(whole)


@pytest.mark.parametrize("tokens", [1, 7, 64])
def test_the_size_of_slices_changes_no_mean(backbone, tokenizer, monkeypatch, tokens):
    parts = [sums_of(backbone, tokenizer, texts) for texts in (TEXTS[:24], TEXTS[24:], [])]
    whole = averages(*parts)
    assert whole["token_id"].to_numpy().max() > 2 * 64
    monkeypatch.setattr(module, "SLICE_BYTES", tokens * (DEPTH + 1) * WIDTH * 8)
    assert len(list(sums_tables(parts[0]))) > 1
    assert averages(*parts).equals(whole)


def test_means_are_sums_by_counts_bit_for_bit(backbone, tokenizer):
    sums = sums_of(backbone, tokenizer, TEXTS)
    merged = averages(sums)
    seen = sums.counts_V.nonzero().squeeze(1)
    means = sums.sums_LVD[:, seen].permute(1, 0, 2) / sums.counts_V[seen, None, None]
    vectors = np.stack(merged["vector"].to_numpy()).reshape(means.shape)
    assert vectors.tobytes() == means.float().numpy().tobytes()
    assert merged["token_id"].to_numpy()[:: DEPTH + 1].tolist() == seen.tolist()


def test_a_corpus_without_sentences_has_no_averages(backbone, tokenizer):
    with pytest.raises(DataError, match="no sentences"):
        averages(sums_of(backbone, tokenizer, []))


TOKENS = 100_000_000
LAYERS, WIDE = 3, 64
SLICE = 1 << 20
POOL = pa.proxy_memory_pool(pa.default_memory_pool())  # lives as long as any buffer that it gave out


@pytest.fixture
def counted(monkeypatch):
    """Slices of SLICE bytes, and what numpy and Arrow take is counted."""
    monkeypatch.setattr(module, "SLICE_BYTES", SLICE)
    before = pa.default_memory_pool()
    pa.set_memory_pool(POOL)
    tracemalloc.start()
    yield
    tracemalloc.stop()
    pa.set_memory_pool(before)


def write_shards(folder, vocabulary, shards):
    """Sums of random states of TOKENS tokens, which occur as often as Zipf has it."""
    draw = np.random.default_rng(vocabulary)
    share_V = 1 / np.arange(1, vocabulary + 1)
    counts_V = np.maximum(1, TOKENS // shards * share_V / share_V.sum()).astype(np.int64)
    counts_V[0] += TOKENS // shards - counts_V.sum()
    for shard in range(shards):
        noise = draw.normal(size=(LAYERS, vocabulary, WIDE)) * counts_V[:, None] ** 0.5
        sums = TokenSums(torch.from_numpy((noise / STEP).round() * STEP), torch.from_numpy(counts_V))
        written(sums, folder / f"{shard}.parquet")


@pytest.mark.parametrize(("vocabulary", "shards"), [(2_000, 2), (20_000, 2), (20_000, 10)])
def test_merging_a_hundred_million_tokens_takes_the_memory_of_a_few_slices(
    tmp_path, counted, vocabulary, shards
):
    """The largest corpus here has sums of thirty slices in each of ten shards."""
    write_shards(tmp_path, vocabulary, shards)
    found = np.zeros(2, dtype=np.int64)
    held = POOL.bytes_allocated()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    for table in merge([pq.ParquetFile(path) for path in tmp_path.iterdir()]):
        found += int(table["count"].to_numpy()[::LAYERS].sum()), len(table) // LAYERS
    assert found.tolist() == [TOKENS, vocabulary]
    assert POOL.bytes_allocated() > held, "Arrow takes its memory elsewhere"
    assert SLICE < tracemalloc.get_traced_memory()[1] - before < 4 * SLICE
    assert POOL.max_memory() < 3 * SLICE


def test_sums_do_not_depend_on_the_order_of_addition():
    draw = np.random.default_rng(0)
    states = torch.from_numpy(draw.normal(scale=3, size=(20_000, 4)).astype(np.float32))
    ids = torch.from_numpy(draw.integers(3, size=20_000))
    forwards, backwards = (TokenSums.empty(1, 3, 4, torch.device("cpu")) for _ in range(2))
    forwards.add(ids, [states])
    for part in torch.arange(20_000).flip(0).split(7):
        backwards.add(ids[part], [states[part]])
    assert torch.equal(forwards.sums_LVD, backwards.sums_LVD)
    naive = torch.zeros(3, 4, dtype=torch.float64).index_add_(0, ids, states.double())
    torch.testing.assert_close(forwards.sums_LVD[0], naive, atol=20_000 * 2.0**-25, rtol=0)


def test_a_sum_that_might_have_been_rounded_stops():
    sums = TokenSums.empty(1, 1, WIDTH, torch.device("cpu"))
    sums.add(torch.tensor([0]), [torch.full((1, WIDTH), 2.0**29)])
    with pytest.raises(DataError, match="exact only below"):
        sums.check()


def test_bert_and_its_averages_are_mixed_by_equation_ten():
    """O-73"""
    bert, average = np.float32([[2, 4]]), np.float32([[6, 0]])
    assert mixed(bert, average, 0).tolist() == bert.tolist()
    assert mixed(bert, average, 1).tolist() == average.tolist()
    assert mixed(bert, average, 0.5).tolist() == [[4, 2]]
    assert mixed(bert, average, -0.5).tolist() == [[1.5 * 2 - 0.5 * 6, 1.5 * 4]]
