"""Unusable answers of translators and models, good answers that resemble them, and the wrappers of both.

Usual wrappers are removed from a model's sentences; a sentence or translation with another one is rejected.
"""

# ruff: noqa: RUF001  (marks of many scripts)
import pytest

from benchmarks.material import wikipedia_sentences
from tests.rooms.data.test_exemplars import llm_pool
from workflow_scripts.apis.answer_checks import (
    completion_fault,
    decoded,
    items_in,
    leftover,
    repeated,
    service_fault,
    translation_fault,
)
from workflow_scripts.data.exemplar_writing import ModelValidator

TEXT = "The old river runs through the north of the city and the children swim there."
BARE = "El río viejo corre por el norte de la ciudad y los niños nadan allí."
HARMONY = "<|channel|>analysis<|message|>Spanish, then.<|end|><|start|>assistant<|channel|>final<|message|>"
TAKEN_OFF = [
    "{}</s>", "<s>{}</s>", "{}<|im_end|>", "{}<eos>", "{}<｜end▁of▁sentence｜>", "<|start_header_id|>assistant<|end_header_id|>\n\n{}<|eot_id|>",
    HARMONY + "{}<|return|>", "<|channel|>final<|message|>{}", "analysisSpanish, then.assistantfinal{}", "<think>Spanish.</think>\n{}", "Spanish.</think>{}",
    "[THINK]Spanish.[/THINK]{}", "<thought>Hm.</thought>{}", "<|begin_of_thought|>Hm.<|end_of_thought|><|begin_of_solution|>{}<|end_of_solution|>",
    "1. {}", "a) {}", "(b) {}", "iv. {}", "一、{}", "① {}", "- {}", "• {}", "– {}", "→ {}", "## {}", "> {}", "1.1. {}", "**{}**", "*{}*", "`{}`", "```\n{}\n```",
    '"{}"', "«{}»", "“{}”", "'{}'", '"{}",', "{} (Note: río may mean stream.)", "{} [literal]", "{} (Nota: libre)", "\ufeff{}\u200b", "\u200e{}\u200e",
]  # fmt: skip
REFUSED = [
    "[INST] Translate. [/INST] {}", "◁think▷Spanish.◁/think▷{}", "<seed:think>Hm.</seed:think>{}", "<answer>{}</answer>", "[thinking]Hm[/thinking] {}",
    "<translation>{}</translation> Hope it helps.", "<source>{q}</source><target>{}</target>", "<p>{}</p>", "=> {}", "#1 {}", "\\item {}", "„{}“", "「{}」",
    "[{}]", "{{}}", "\\boxed{{}}", '["{}"]', '{"translation": "{}"}', "[ES] {}", "...{}", "{}…", "✅ {}", "{} 🌊", "{} ---", "(({}))", "№1 {}", "{}...", "| 1 | {} |",
]  # fmt: skip
REJECTED = {
    "<xyz>{q}</xyz>{}": "markup", "El <b>río</b> {}": "markup", "{} <|im_sep|> {q}": "markup", "| {q} | {} |": "markup", "río → {}": "markup",
    "{}\nEl río es viejo y corre.": "several lines", "{} \\n": "markup", "{}\n\n| a | b |\n|---|---|": "several lines", "": "empty",
    "{} **río**: river": "markup", "{} No lo sé&apos;s.": "markup", "{} &#x27;": "markup",
}  # fmt: skip


def filled(said):
    return said.replace("{}", BARE).replace("{q}", TEXT)


@pytest.mark.parametrize("said", TAKEN_OFF)
def test_a_wrapper_is_taken_off(said):
    assert items_in(filled(said))[0] == [BARE]


@pytest.mark.parametrize("said", REFUSED)
def test_a_sentence_in_another_wrapper_is_refused(said):
    rules = ModelValidator(llm_pool(), BARE.split(), lambda texts: [1] * len(texts))
    (sentence,) = items_in(filled(said))[0]
    assert rules.no_sentence(sentence) in ("markup", "other marks around it", "cut end")


@pytest.mark.parametrize(("said", "reason"), REJECTED.items())
def test_a_translation_that_is_no_bare_text_is_rejected(said, reason):
    assert translation_fault(TEXT, filled(said), "en", "es") == reason


GOOD = {
    "Il a dit « non » hier.": 'He said "no" yesterday.', "« Non », dit-il.": '"No", he said.', "Une vieille ville.": "A old town.",
    "3,5 millions de gens y vivent.": "3.5 million people live there.", "Deux choses: l'eau et le pain.": "Two things: water and bread.",
    "Marie: je viens demain.": "Marie: I come tomorrow.", "Il vient (demain).": "He comes (tomorrow).", "« Tout est perdu. »": '"All is lost."',
    "L'eau — et le pain.": "Water: and bread.", "M. A. Martin est né.": "A. Martin was born.", "Le 3 mai il partit.": "3. May he left.", "Vite!": "Quick!",
    "Le code est `x = 1`.": "The code is `x = 1`.", "Voir [1] et {a}.": "See [1] and {a}.", "Il fait -5 °C.": "It is -5 °C.", "Que dit AT&T ?": "What says AT&T?",
    "Écrire &amp; pour et.": "Write &amp; for and.", "(Il dormait.)": "(He slept.)", "- Viens ! - Non.": "- Come! - No.", "Bora Bora": "Bora Bora", "V. 2 est là.": "V. 2 is here.",
    "1.5 million people live there.": "1.5 Millionen Menschen leben dort.", "He waits…": "Er wartet...", "He waits...": "Il attend...",
    "On 3 May 1999 the old bridge was closed.": "Am 3. Mai 1999 wurde die alte Brücke geschlossen.",
    "In the U.S., people drink more coffee.": "En EE. UU., la gente bebe más café.",
    "World War II ended in the city in 1945.": "Der II. Weltkrieg endete im Jahr 1945 in der Stadt.",
}  # fmt: skip


@pytest.mark.parametrize(("asked", "answer"), GOOD.items())
def test_a_good_answer_is_left_alone(asked, answer):
    assert (decoded(answer, asked), leftover(answer, asked)) == (answer, None)


def test_no_sentence_of_wikipedia_is_damaged_or_rejected():
    sentences = wikipedia_sentences(2000)
    assert {leftover(sentence, sentence) for sentence in sentences} == {None}
    assert [sentence for sentence in sentences if items_in(sentence)[0] != [sentence]] == []


ITEMS = [
    "The town is old.",
    "They would not know it.",
    "He was in the 3.5 million.",
    "She said so.",
    'It is "new" here.',
]
NUMBERED = "\n".join(f"{n}. {item}" for n, item in enumerate(ITEMS, 1))
LISTS = [
    *("\n".join(form.format(mark, item) for mark, item in zip(marks, ITEMS, strict=True)) for form, marks in (
        ("{1}", "12345"), ("{0}. {1}", "12345"), ("{0}) {1}", "abcde"), ("({0}) {1}", "12345"), ("{0}: {1}", "12345"), ("{0} - {1}", "12345"),
        ("#{0}. {1}", "12345"), ("- {1}", "12345"), ("• {1}", "12345"), ("**{0}.** {1}", "12345"), ("**Sentence {0}:** {1}", "12345"),
        ("{0}: {1}", ("First", "Second", "Third", "Fourth", "Fifth")), ("{0}. {1}", ("I", "II", "III", "IV", "V")), ("{0}. {1} (five words)", "12345"),
        ("{0}. {1} — uses the words", "12345"), ("{0}. *{1}*", "12345"), ("{0}\t{1}", "12345"), ("({0}/5) {1}", "12345"), ("[{0}] {1}", "12345"),
        ("-{1}", "12345"), ("### Sentence {0}\n{1}", "12345"), ("{0}. {1}\nWords used: the, is", "12345"),
    )),
    " ".join(f"({n}) {item}" for n, item in enumerate(ITEMS, 1)), NUMBERED.replace("\n", " "), NUMBERED + "</s>", HARMONY + NUMBERED + "<|return|>",
    "[THINK]The words\nare to be used.[/THINK]\n" + NUMBERED, "Here are five sentences:\n\n" + NUMBERED + "\n\nI hope they help!",
]  # fmt: skip


@pytest.mark.parametrize("completion", LISTS)
def test_a_list_in_any_marks_gives_bare_sentences(completion):
    assert items_in(completion)[0] == ITEMS
    assert completion_fault(completion, "stop", "Write five sentences.") is None


# Refusals and messages


DECLINED = [
    "I would rather not translate this sentence, if you do not mind.", "I'd prefer not to.",
    "I am afraid that I am not able to provide this translation.", "Unfortunately, I cannot process this text.",
    "I must respectfully decline to translate this.", "I don't feel comfortable with this request at all.",
    "This content cannot be translated as it is against the rules.", "This request violates the guidelines of the service.",
]  # fmt: skip


@pytest.mark.parametrize("said", DECLINED)
def test_a_refusal_in_any_words_is_rejected(said):
    assert completion_fault(said, "stop", "Write five sentences.") == "refusal"
    assert service_fault(said) is not None


SERVICE = [
    "Your monthly credit is nearly used, please top up.", "Upgrade to the new plan to continue.", "See https://x.example for more.",
    "Rate limit exceeded.", "This text was generated by a language model.", "Your free trial has ended.",
]  # fmt: skip
HARMLESS = [
    "The credit of the old bank was good.",
    "She would rather not go home.",
    "I cannot see the river.",
]


def test_messages_of_a_service_are_rejected():
    assert {service_fault(line) for line in SERVICE} == {"a service's sentence"}
    assert {service_fault(line) for line in HARMLESS} == {None}


def test_one_answer_for_different_texts_is_found():
    long = "He went to the town by the river last year"
    other = "Nobody knows why these children read books at night"
    assert repeated([(long, "X"), (other, "X"), ("Yes.", "X"), (other, "Y")]) == {"X"}
    assert repeated([(long, "X"), (f"{long} again", "X"), ("He left.", "Z"), ("She left.", "Z")]) == set()
