"""Kinds of wrong answers of a translator, and the general check that keeps each out of the training text.

A server translates a dozen sentences right, but for one kind of fault; the pipeline's own functions make a corpus of the
answers. A repaired text is trained on, a wrong one never. docs/provenance.md lists the checks.
"""

# ruff: noqa: RUF001  (marks of many scripts)
import html
from difflib import get_close_matches

import pytest

from benchmarks.material import minilm
from tests.rooms.apis.conftest import make  # noqa: F401  (a fixture)
from tests.rooms.data.test_round_trips import LIMITS, base_of
from tests.support.fault_server import FaultServer, translations
from workflow_scripts.apis.ledger import Ledger
from workflow_scripts.columns import TRIP_COSINES
from workflow_scripts.data.round_trip_corpora import to_train_on
from workflow_scripts.data.round_trips import round_trips, usable_answers
from workflow_scripts.data.tables import table_of
from workflow_scripts.errors import DataError
from workflow_scripts.jobs.compare_round_trips import compare
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.settings.corpora import Shape, Thresholds
from workflow_scripts.settings.readouts import Pooling

TRIPS = [
    ("The farmer sold his brown horse at the market last spring.", "El granjero vendió su caballo marrón en el mercado la primavera pasada.", "The farmer sold his brown horse in the market in the past spring."),
    ("Heavy rain flooded the narrow streets of the old harbour.", "La fuerte lluvia inundó las calles estrechas del viejo puerto.", "The strong rain flooded the narrow streets of the old port."),
    ("Her sister plays the violin in a small orchestra.", "Su hermana toca el violín en una pequeña orquesta.", "Her sister plays violin in a little orchestra."),
    ("The museum closes at six and opens again on Monday.", "El museo cierra a las seis y vuelve a abrir el lunes.", "The museum closes at six and opens again Monday."),
    ("Scientists discovered a new species of frog in the forest in 1987.", "Los científicos descubrieron una nueva especie de rana en el bosque en 1987.", "The scientists discovered a new species of frog in the wood in 1987."),
    ("My uncle repairs clocks and radios in his garage.", "Mi tío repara relojes y radios en su garaje.", "My uncle fixes clocks and radios in his garage."),
    ("The committee rejected the budget after a long debate.", "El comité rechazó el presupuesto después de un largo debate.", "The committee rejected the budget after a lengthy debate."),
    ("Nobody knew why the train to the coast was delayed.", "Nadie sabía por qué el tren a la costa se había retrasado.", "No one knew why the train to the coast had been late."),
    ("Children under ten may swim here without a ticket.", "Los niños menores de diez años pueden nadar aquí sin entrada.", "Children younger than ten years can swim here without a ticket."),
    ("The bakery on the corner sells warm bread every morning.", "La panadería de la esquina vende pan caliente todas las mañanas.", "The bakery of the corner sells hot bread every morning."),
    ("Our teacher read a poem about the sea to the class.", "Nuestro profesor leyó a la clase un poema sobre el mar.", "Our teacher read the class a poem about the sea."),
    ("An eagle built its nest on top of the lighthouse.", "Un águila construyó su nido en lo alto del faro.", "An eagle made its nest high on the lighthouse."),
]  # fmt: skip
SENTENCES, PIVOTS, BACKS = map(list, zip(*TRIPS, strict=True))
FORTH, BACK = dict(zip(SENTENCES, PIVOTS, strict=True)), dict(zip(PIVOTS, BACKS, strict=True))


def wrong(text, right, n, target):
    """Kinds of answers by name: what a server says of a text, its right translation, its number, and the language."""
    words, there, back = right.split(), target == "es", target == "en"
    other = (PIVOTS if there else BACKS)[(n + 1) % 12]
    body, shy = right[:-1], right.replace("o", "о", 1)
    return {
        # repaired
        "plain": right, "entities": html.escape(f"{right}").replace("o", "&#111;"), "entities twice": right.replace("o", "&amp;#111;"),
        "mojibake": right.encode().decode("latin-1"), "mojibake of Windows": right.encode().decode("cp1252", "replace") if there and "í" not in right and "Á" not in right else right,
        "zero width": right.replace(" ", " \u200b"), "byte order mark": f"\ufeff{right}", "direction": f"\u202b{right}\u202c", "soft hyphens": right.replace("r", "r\u00ad"),
        "word joiners": right.replace("a", "a\u2060"), "blanks around": f"\n  {right} \t", "decomposed": right.replace("á", "a\u0301").replace("é", "e\u0301").replace("í", "i\u0301").replace("ó", "o\u0301").replace("ú", "u\u0301").replace("ñ", "n\u0303"),
        # characters
        "a look-alike": shy, "full width": right.replace("a", "ａ"), "lost letters": right.replace("o", "?", 2), "replaced letters": right.replace("o", "\ufffd"),
        "private use": f"{right[:3]}\ue000{right[3:]}", "control": f"{right[:3]}\x07{right[3:]}", "emoji": f"{right} \U0001f60a", "unknown": right.replace(words[2], "⁇"),
        "tag": f"<p>{right}</p>", "span": right.replace(words[1], f"<span class='x'>{words[1]}</span>"), "bold": right.replace(words[1], f"**{words[1]}**"), "code": f"`{right}`",
        "entities without end": right.replace(" ", " &quot "), "LaTeX": f"\\text{{{right}}}", "arrow": f"{text} → {right}", "table": f"| {text} | {right} |", "heading": f"# {right}",
        "JSON": f'{{"translation": "{right}"}}', "list of JSON": f'["{right}"]', "placeholder": right.replace(words[1], "{0}"), "token": f"{right}</s>", "tokens": f"<|im_start|>{right}<|im_end|>",
        "a stray hash": right.replace(words[1], f"{words[1]}#"), "two lines": f"{right}\n{right}", "form feed": f"{right}\x0c",
        # around it
        "label": f"Translation: {right}", "role": f"Assistant: {right}", "language": f"{'Spanish' if there else 'English'}: {right}", "code of it": f"[{target}] {right}", "chat": f"Sure, here is your translation: {right}",
        "number": f"1. {right}", "number in brackets": f"(1) {right}", "bullet": f"- {right}", "dots before": f"...{right}", "quotes": f'"{right}"', "guillemets": f"«{right}»", "single quotes": f"'{right}'", "corner brackets": f"「{right}」",
        "note": f"{body} (a free translation).", "note after": f"{right} (Literally.)", "alternative": f"{body} [or: the same].", "credit": f"{right} Translated by a machine.", "question": f"{right} Anything else?", "score": f"{right} 0.98",
        "confidence": f"{body} 0.98.", "address": f"{right} https://mt.example", "tail": f"{right} |||", "slash": f"{body} / {body}.", "full width colon": f"译文：{right}", "advertisement": f"{right} Upgrade to our Pro plan for more.",
        # length, ends, loops, case
        "nothing": "", "blanks": "  \n ", "marks": "...", "null": "null", "None": "None", "undefined": "undefined", "NaN": "nan", "one word": words[0], "cut end": " ".join(words[: len(words) // 2]), "cut end with dots": " ".join(words[: len(words) // 2]) + "...",
        "cut and closed": " ".join(words[: len(words) // 2]) + ".", "cut start": f"{' '.join(words[len(words) * 6 // 10 :])}", "last words": f"{' '.join(words[-2:])}", "twice": f"{right} {right}", "thrice": f"{body}, {body}, {body}.", "loop": f"{body} {' '.join(words[-2:])[:-1]} {' '.join(words[-2:])[:-1]} {' '.join(words[-2:])}", "word loop": f"{body} {'muy ' * 4}bien.",
        "letters": f"{right[:-3]}{'ja' * 20}.", "capitals": right.upper(), "doubled words": " ".join(f"{word} {word}" for word in body.split()) + ".", "long": f"{body}, {' and so on'.join(map(str, range(90)))}.",
        # language
        "the text itself": text, "German": "Der Bauer verkaufte im letzten Frühling auf dem Markt sein braunes Pferd an einen Nachbarn.", "other alphabet": "Фермер продал свою коричневую лошадь на рынке прошлой весной.",
        "half": " ".join([*words[: len(words) // 3], *text.split()[len(words) // 3 :]]), "some words": right if there else " ".join(word if i % 2 else own for i, (word, own) in enumerate(zip(words, text.split(), strict=False))) + ".", "answer in the other": f"{(text if back else right)}",
        # meaning
        "shift": other, "shift forth": other if there else right, "shift back": other if back else right, "swap": PIVOTS[n ^ 1] if there else right, "swap of two": (PIVOTS if there else BACKS)[n ^ 1] if n < 2 and there else right,
        "refusal": f"I would rather not say anything about the {' '.join(text.split()[1:3])}." if back else right, "apology": f"I am sorry, but I cannot help you with request number {n}." if back else right,
        "maintenance": f"The service is down for maintenance and will be back soon, friend {text.split()[1]}." if back else right, "instructions": f"Translate the text from Spanish to English and write only line {text.split()[1]}." if back else right,
        "reply": f"What a nice thing to say, thank you very much for telling me, {text.split()[1]}." if back else right, "system prompt": f"You are a helpful assistant that translates {text.split()[1]} for users." if back else right,
        "quota": "Has agotado tu cuota diaria, vuelve mañana por favor." if there else right, "quota in English": "You have used all free translations of this day." if back else right, "captcha": "Confirm that you are not a robot to continue." if back else right,
        "error": f"Error 503: the service has no answer {n}.", "numbers": right.replace("1987", "1978"), "Greek": right.replace(words[1], "λόγος"),
    }  # fmt: skip


REPAIRED = [
    "plain", "entities", "entities twice", "mojibake", "mojibake of Windows", "zero width", "byte order mark", "direction", "soft hyphens", "word joiners", "blanks around", "decomposed", "form feed",
]  # fmt: skip
KINDS = [*wrong(SENTENCES[0], PIVOTS[0], 0, "es")]


@pytest.fixture(scope="module")
def vectors_of():
    readout = Pooling(kind="pooling", pooler="avg", layers=None)
    encoder = SentenceEncoder(
        load_backbone(minilm()), load_tokenizer(minilm()), readout, head=False, head_at_test=False
    )
    return lambda texts: encoder.encode(texts, 128)


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "answers.sqlite") as opened:
        yield opened


@pytest.fixture
def corpus_of(make, vectors_of):  # noqa: F811
    """A function that gives the pairs of a corpus made from a server's answers, and what was dropped."""

    def corpus(answer):
        numbers = {text: n for texts in (SENTENCES, PIVOTS) for n, text in enumerate(texts)}

        def translate(text, target):
            right = FORTH.get(text) or BACK.get(text)
            if right is None:  # of a wrong pivot, whose translation is right again
                text = get_close_matches(text, PIVOTS, 1, 0)[0]
                right = BACK[text]
            return answer(text, right, numbers[text], target)

        with FaultServer(translations(translate)) as server:
            forth, back = (make("libretranslate", server, pair) for pair in (("en", "es"), ("es", "en")))
            pivots = forth.ask([forth.request(text) for text in SENTENCES])
            kept = usable_answers(pivots)
            backs = [back.ask([back.request(text)])[0] if text else None for text in kept]
        trips = round_trips(range(12), SENTENCES, pivots, backs, LIMITS)
        usable = [row for row in trips.to_pylist() if row["outcome"] in ("paraphrase", "unchanged")]
        own, other = compare([r["sentence"] for r in usable], [r["back"] for r in usable], vectors_of)
        rows = zip([r["row"] for r in usable], own.tolist(), other.tolist(), strict=True)
        thresholds = Thresholds(minimum=0.5, rejected_share=0.999)
        cosines = table_of(rows, TRIP_COSINES)
        shape = Shape(training_text="pairs", unchanged="keep")
        try:
            pairs, dropped = to_train_on(trips, base_of(SENTENCES), shape, cosines, thresholds)
        except DataError:  # all are rejected
            return [], {"rejected: by meaning": 12}
        return [(row["anchor"], row["positive"]) for row in pairs.to_pylist()], dropped

    return corpus


@pytest.mark.parametrize("kind", KINDS)
def test_no_wrong_text_is_trained_on(corpus_of, kind):
    pairs, dropped = corpus_of(lambda text, right, n, target: wrong(text, right, n, target)[kind])
    right = {sentence: back for sentence, _, back in TRIPS}
    assert [pair for pair in pairs if pair[1] != right[pair[0]]] == []
    assert len(pairs) == 12 if kind in REPAIRED else dropped
