"""Lists that models write, sentences in them, and good translations that resemble faulty ones.

Faulty translations are in tests/rooms/data/test_wrong_translations.py.
"""

# ruff: noqa: RUF001  (marks of many scripts)
import json

import pytest

from benchmarks.material import wikipedia_sentences
from workflow_scripts.apis.answer_checks import (
    completion_fault,
    is_loop,
    items_in,
    repaired,
    repeated,
    sentence_fault,
    shape_fault,
    text_fault,
    translation_fault,
    trip_fault,
)

GOOD = {
    "Il a dit « non » hier.": 'He said "no" yesterday.', "« Non », dit-il.": '"No", he said.', "Une vieille ville.": "A old town.",
    "3,5 millions de gens y vivent.": "3.5 million people live there.", "Deux choses: l'eau et le pain.": "Two things: water and bread.",
    "Marie: je viens demain.": "Marie: I come tomorrow.", "Il vient (demain).": "He comes (tomorrow).", "« Tout est perdu. »": '"All is lost."',
    "L'eau — et le pain.": "Water: and bread.", "M. A. Martin est né.": "A. Martin was born.", "Le 3 mai il partit.": "3. May he left.", "Vite!": "Quick!",
    "Le code est `x = 1`.": "The code is `x = 1`.", "Il cria : « Non ! »": 'He cried: "No!"', "Это «Дом» Чехова.": 'This is "House" by Chekhov.',
    "河流穿过城市。": "The river runs through the city.", "“Yes,” she said.": "「はい」と彼女は言った。", "The river runs through the old city.": "แม่น้ำไหลผ่านเมืองเก่า", "Voir [1] et {a}.": "See [1] and {a}.", "Il fait -5 °C.": "It is -5 °C.", "Que dit AT&T ?": "What says AT&T?",
    "Écrire &amp; pour et.": "Write &amp; for and.", "(Il dormait.)": "(He slept.)", "- Viens ! - Non.": "- Come! - No.", "Bora Bora": "Bora Bora", "V. 2 est là.": "V. 2 is here.",
    "He read it on p. 5 of the book.": "Lo leyó en la pág. 5 del libro.", "No. 12 was a hit.": "El núm. 12 fue un éxito.", "It took about 5 hours.": "Duró aprox. 5 horas.",
    "Ms. Torres came with Dr. Ruiz.": "La Sra. Torres vino con la Dra. Ruiz.", "Mr. and Ms. Weber slept.": "Hr. und Frl. Weber schliefen.",
    "It was drawn in 1632. 19th century art followed.": "Fue dibujado en 1632. Siguió el arte del siglo XIX.",
    "1.5 million people live there.": "1.5 Millionen Menschen leben dort.", "He waits…": "Er wartet...", "He waits...": "Il attend...",
    "On 3 May 1999 the old bridge was closed.": "Am 3. Mai 1999 wurde die alte Brücke geschlossen.",
    "In the U.S., people drink more coffee.": "En EE. UU., la gente bebe más café.",
    "World War II ended in the city in 1945.": "Der II. Weltkrieg endete im Jahr 1945 in der Stadt.",
}  # fmt: skip


@pytest.mark.parametrize(("asked", "answer"), GOOD.items())
def test_a_good_answer_is_left_alone(asked, answer):
    assert repaired(answer, asked) == answer
    assert translation_fault(asked, answer, "xx", "xx") is None


def test_no_sentence_of_wikipedia_is_changed_or_rejected():
    sentences = wikipedia_sentences(2000)
    assert [text for text in sentences if repaired(text) != text.strip()] == []
    assert [text for text in sentences if text_fault(text, "") or shape_fault(text, text)] == []
    assert [text for text in sentences if is_loop(text)] == []
    assert [text for text in sentences if trip_fault(text, "", text)] == []


LOOPS = {
    "never again never again never again never again.": True, "He came home, came home, came home.": True, "and so on and so on and so forth": False,
    "(Laughter) (Applause) (Applause) (Laughter) (Applause) (Laughter) (Laughter) (Applause) (Laughter) (Applause) (Applause)": True,
    "no no no no": True, "It was very, very good.": False, "That is that, and this is this.": False, "She had had a long day.": False,
    "一个一个一个一个一个一个一个": True, "the house of the city of the house of the town of the house of the city": True, "Bye bye bye!": False,
    "The king of the hill and the king of the sea met the king of the sky.": False, "We walked along the river and we walked along the river.": False,
}  # fmt: skip


@pytest.mark.parametrize(("text", "loops"), LOOPS.items())
def test_a_loop_of_any_period_is_found(text, loops):
    assert is_loop(text) == loops


# Lists of sentences

ITEMS = [
    "The town is old.",
    "They would not know it.",
    "He was in the 3.5 million.",
    "Did she say so?",
    'It is "new" here.',
]
NUMBERED = "\n".join(f"{n}. {item}" for n, item in enumerate(ITEMS, 1))
HARMONY = "<|channel|>analysis<|message|>Words, then.<|end|><|start|>assistant<|channel|>final<|message|>"


def lines(form, marks="12345"):
    return "\n".join(form.format(mark, item) for mark, item in zip(marks, ITEMS, strict=True))


READ = [
    lines("{1}"), NUMBERED, lines("{0}) {1}"), lines("- {1}"), lines("* {1}"), lines("• {1}"), lines("{1}\n"), lines("{0}. **{1}**"), lines("“{1}”"),
    f"Here are five sentences:\n\n{NUMBERED}", f"{NUMBERED}</s>", f"{NUMBERED}<|im_end|>", f"```\n{NUMBERED}\n```", f"{HARMONY}{NUMBERED}",
    f"<think>The words\nare used.</think>\n{NUMBERED}", f"[THINK]Words.[/THINK]{NUMBERED}", f"<seed:think>\nWords.\n</seed:think>\n{NUMBERED}",
    json.dumps(ITEMS), json.dumps({"sentences": ITEMS}), json.dumps([{"id": n, "sentence": item} for n, item in enumerate(ITEMS)]),
    f"```json\n{json.dumps(ITEMS, indent=1)}\n```", f"\ufeff{NUMBERED}\u200b",
]  # fmt: skip
NO_LIST = [
    "", "\n".join(ITEMS[:4]), lines("{1}") + "\nThese are the sentences.", "These are the sentences.\n" + NUMBERED, NUMBERED + "\nI hope they help!", NUMBERED + "\n6. One more is here.",
    lines("{0}. {1}", "12346"), lines("{0}. {1}", "abcde"), lines("{0}、{1}"), lines("| {0} | {1} |"), lines("<li>{1}</li>"), lines("{0}: {1}"), lines("Sentence {0}: {1}"), lines("({0}) {1}"),
    lines("{0} {1}"), lines("{0},{1}"), lines("{0}\ufe0f\u20e3 {1}"), lines("Example {0}. {1}"), lines("# {1}"), lines("{1}</s>"), lines("[{0}] {1}"), lines("{1} (five words)"), lines("{0}. {1} — with old"),
    lines("{1}  🙂"), lines("«{1}»"), lines("'{1}'"), lines("{1}\nWords used: the, is"), " ".join(f"{n}. {item}" for n, item in enumerate(ITEMS, 1)), f"[INST] Write. [/INST]\n{NUMBERED}", f"◁think▷Words.◁/think▷{lines('{1}')}",
    f"analysisWords, then.assistantfinal{lines('{1}')}", json.dumps(ITEMS[:4]), json.dumps({"sentences": ITEMS, "notes": "x"}), json.dumps([{"a": item, "b": item} for item in ITEMS]), json.dumps([ITEMS]), json.dumps(ITEMS)[:-5],
    json.dumps({"error": "Rate limit exceeded."}), "<html><body>Busy</body></html>", "I'm sorry, but I can't help with that.", "Please log in to continue.", NUMBERED.upper(), NUMBERED.replace("town", "\u202etown\ue000"),
    NUMBERED.replace("town is old.", "town is old"), NUMBERED.replace("town is old.", "town is old. It is."), NUMBERED.replace("town", "tоwn"), NUMBERED.replace("The town", "Assistant: The town"), NUMBERED.replace("town", "town town town town"),
    NUMBERED.replace("The town", "&nbsp;The &lt;b&gt;town"), NUMBERED.replace("town", "{town}"), NUMBERED.replace("The town", "...the town"), NUMBERED.replace("town is old.", "town is..."),
]  # fmt: skip


@pytest.mark.parametrize("completion", READ)
def test_a_whole_list_of_sentences_is_read(completion):
    assert items_in(completion, 5) == ITEMS
    assert completion_fault(completion, "stop", 5) is None


@pytest.mark.parametrize("completion", NO_LIST)
def test_any_other_answer_is_refused_as_a_whole(completion):
    assert completion_fault(completion, "stop", 5) is not None


@pytest.mark.parametrize(
    "reason",
    ["length", "content_filter", "error", "abort", "insufficient_system_resource", "7", "tool_calls"],
)
def test_an_answer_that_did_not_end_by_itself_is_refused(reason):
    assert completion_fault(NUMBERED, reason, 5) in ("cut off", "content filter")
    assert completion_fault(NUMBERED, "STOP", 5) is completion_fault(NUMBERED, "unknown", 5) is None


PLAIN = [
    "The old town is here.",
    "It isn't far, is it?",
    "In 1999 he paid $2.50 for it!",
    "Łódź is a city.",
    "Это город.",
    "She said “yes” to them.",
    "A well-known U.S.-based firm won.",
]


@pytest.mark.parametrize("text", PLAIN)
def test_a_plain_sentence_is_accepted(text):
    assert sentence_fault(text) is None


def test_one_answer_for_different_texts_is_found():
    long = "He went to the town by the river last year"
    other = "Nobody knows why these children read books at night"
    assert repeated([(long, "X"), (other, "X"), ("Yes.", "X"), (other, "Y")]) == {"X"}
    assert repeated([(long, "X"), (f"{long} again", "X"), ("He left.", "Z"), ("She left.", "Z")]) == set()
