import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import toys
from workflow_scripts.columns import EXEMPLARS
from workflow_scripts.data.exemplar_writing import prompts
from workflow_scripts.data.exemplars import Validator, greedy_cover, lacks, pool_table, token_counter
from workflow_scripts.errors import ConfigError
from workflow_scripts.settings.corpora import ExtractivePool, LlmPool

POOL = {
    "corpus": "toy", "encoder": "toy", "word_list_size": 30, "sentences": 4, "min_uses_per_word": 2,
    "max_tokens": 12, "listed_share": 0.5, "generator": "extractive", "max_candidates": 100,
}  # fmt: skip
LLM = {
    "generator": "llm", "llm": "toy", "prompt": "toy", "words_per_call": 5, "sentences_per_call": 5, "max_calls": 3,
    "seed": 0, "label": None,
}  # fmt: skip


def pool(**changes):
    return ExtractivePool.parse(POOL | changes, "exemplars.toy")


def llm_pool(**changes):
    return LlmPool.parse(
        {key: POOL[key] for key in POOL if key != "max_candidates"} | LLM | changes, "exemplars.toy"
    )


def validator(listed, **changes):
    """Checks sentences of which each has two tokens more than words."""
    return Validator(pool(**changes), listed, lambda texts: [len(text.split()) + 2 for text in texts])


def covered(texts, source="toy", places=None, **changes):
    """The candidates among some sentences, how they cover WORDS, and what the pool lacks."""
    limits, rules = pool(**changes), validator(WORDS, **changes)
    candidates = rules.accept(texts, source, places or range(len(texts)))
    cover = greedy_cover(candidates, rules.listed, limits)
    return candidates, cover, lacks(cover, rules.listed, limits)


def test_sentences_are_checked_and_refusals_counted():
    """Sentences are checked by every rule and refusals are counted."""
    rules = validator(["the", "town", "is", "Old", "\u2013", "the,"], max_tokens=8)
    assert rules.listed == ["the", "town", "is", "old"]
    sentences = [
        "The town is old.", "the TOWN is old!", "The town is old", "The quick brown fox jumps.",
        "The town is the old town is the town.", "Old is the town, nobody says.",
    ]  # fmt: skip
    found = rules.accept(sentences, "toy", range(6))
    assert [candidate.sentence for candidate in found] == [
        "The town is old.",
        "Old is the town, nobody says.",
    ]
    assert rules.refused == {
        "repeated": 1,
        "no end of sentence": 1,
        "under 50% listed words": 1,
        "over 8 tokens": 1,
    }
    assert [(c.tokens, c.words, c.listed.total(), c.position) for c in found] == [(6, 4, 4, 0), (8, 6, 4, 5)]
    assert rules.accept(["The town is old."], "toy", [9]) == []  # seen in an earlier call


def test_tokens_are_those_of_the_backbone(tiny_bert):
    count = token_counter(tiny_bert)
    assert count(["The old town.", "the river " * 40]) == [6, 82]  # [CLS] the old town . [SEP]


WORDS = ["a", "b", "c", "d", "e", "f"]
SENTENCES = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), min_size=1, max_size=14, unique_by=tuple
)


@given(SENTENCES, st.integers(1, 6), st.integers(1, 3))
def test_a_cover_lists_the_words_that_it_lacks(words, size, uses):
    sentences = [f"{' '.join(line)}." for line in words]
    candidates, cover, lacking = covered(sentences, sentences=size, min_uses_per_word=uses)
    assert len(cover.chosen) == len(set(cover.chosen)) == min(size, len(candidates))
    for word in WORDS:
        used = sum(candidates[place].listed[word] for place in cover.chosen)
        assert (word in cover.lacking) == (used < uses)
    assert (lacking is None) == (not cover.lacking and len(cover.chosen) == size)
    assert cover == covered(sentences, sentences=size, min_uses_per_word=uses)[1]


@pytest.mark.parametrize(
    ("changes", "sentences", "chosen"),
    [  # with equal weights the first step would take the long sentence of frequent words
        ({"sentences": 2, "max_tokens": 20}, ["a b c d.", "a b e.", "c d f.", *(f"a b c {' a' * n}." for n in range(1, 6))], [1, 2]),
        ({"sentences": 3, "listed_share": 0}, ["a b c d e f.", "x y a.", "a b.", "x a b."], [0, 2, 3]),
    ],
    ids=["rare words come before frequent ones", "the rest are the most redundant that are left"],
)  # fmt: skip
def test_a_cover_chooses_by_weighted_need(changes, sentences, chosen):
    cover = covered(sentences, min_uses_per_word=1, **changes)[1]
    assert (sorted(cover.chosen), cover.lacking) == (chosen, {})


def test_a_message_says_what_a_pool_lacks():
    candidates, _, lacking = covered(
        ["a b x.", "c d."], "deepseek-chat", [7, 8], sentences=2, min_uses_per_word=1
    )
    assert lacking == "2 of 2 sentences use 4 of 6 words 1 times (not e, f)"
    table = pool_table(candidates[:1])
    assert table.schema == pool_table([]).schema == EXEMPLARS
    assert [tuple(row.values()) for row in table.to_pylist()] == [("a b x.", 5, 3, 2, "deepseek-chat", 7)]


@pytest.mark.parametrize(
    ("template", "found"),
    [("$word", r"toy: prompt toy: .*placeholders from: \$sentences"), ("Write.", r"no placeholder \$words")],
)
def test_a_prompt_with_a_wrong_placeholder_is_a_mistake(template, found):
    """A prompt with an unknown or missing placeholder is a mistake."""
    with pytest.raises(ConfigError, match=found):
        next(prompts(template, toys.WORDS, llm_pool(), "exemplars.toy"))


def test_every_call_has_its_own_words_in_every_run():
    def lists(**changes):
        found = prompts("$words", toys.WORDS, llm_pool(**changes), "exemplars.toy")
        return [tuple(prompt.split(", ")) for prompt in found]

    first = lists()
    assert first == lists() != lists(seed=1)
    assert all(len(set(words)) == 5 and set(words) <= set(toys.WORDS) for words in first)
    assert len(set(first)) == 3
    assert len(lists(words_per_call=99)[0]) == len(toys.WORDS)
