"""A small invented language, Tarvian, and a grammar that says things in it and in English.

Tarvian puts the verb last, adjectives behind nouns and prepositions behind their phrases; it marks
the definite article by an ending, does not mark number on verbs, and uses some words for what
English calls by several. So a translation system has to move words, to insert words, and to
choose words by their neighbours: what the features of a phrase-based system are for.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Sentence", "random_sentence"]

# English singular, plural, Tarvian stem, class. One stem may stand for several English nouns.
NOUNS = (
    ("farmer", "farmers", "borik", "person"),
    ("woman", "women", "selma", "person"),
    ("man", "men", "tor", "person"),
    ("child", "children", "pili", "person"),
    ("teacher", "teachers", "odrun", "person"),
    ("doctor", "doctors", "medar", "person"),
    ("soldier", "soldiers", "garok", "person"),
    ("neighbour", "neighbours", "vecin", "person"),
    ("horse", "horses", "huvo", "animal"),
    ("dog", "dogs", "kan", "animal"),
    ("cat", "cats", "miru", "animal"),
    ("cow", "cows", "bulo", "animal"),
    ("bird", "birds", "tavi", "animal"),
    ("car", "cars", "vogen", "vehicle"),
    ("truck", "trucks", "lastar", "vehicle"),
    ("bicycle", "bicycles", "dorad", "mount"),
    ("donkey", "donkeys", "osal", "mount"),
    ("bread", "breads", "lebo", "food"),
    ("soup", "soups", "zuppa", "food"),
    ("apple", "apples", "jablo", "food"),
    ("cheese", "cheeses", "sirek", "food"),
    ("coffee", "coffees", "kavo", "drink"),
    ("tea", "teas", "chai", "drink"),
    ("milk", "milks", "moloko", "drink"),
    ("hat", "hats", "kapa", "clothes"),
    ("coat", "coats", "palto", "clothes"),
    ("shirt", "shirts", "rubak", "clothes"),
    ("bag", "bags", "torba", "load"),
    ("box", "boxes", "korob", "load"),
    ("stone", "stones", "kameno", "load"),
    ("book", "books", "knig", "text"),
    ("letter", "letters", "karta", "text"),
    ("card", "cards", "karta", "gift"),
    ("flower", "flowers", "floro", "gift"),
    ("garden", "gardens", "sado", "in"),
    ("kitchen", "kitchens", "kukna", "in"),
    ("house", "houses", "domo", "in"),
    ("bank", "banks", "banta", "in"),
    ("forest", "forests", "lesu", "in"),
    ("bench", "benches", "banta", "on"),
    ("roof", "roofs", "tetto", "on"),
    ("street", "streets", "ulik", "on"),
    ("bridge", "bridges", "mosto", "on"),
    ("market", "markets", "rinok", "at"),
    ("station", "stations", "stanik", "at"),
    ("school", "schools", "skola", "at"),
)
# English base, third person, past, Tarvian stem, classes of the object. Again stems are shared.
VERBS = (
    ("eat", "eats", "ate", "jed", ("food",)),
    ("drink", "drinks", "drank", "pij", ("drink",)),
    ("cook", "cooks", "cooked", "varn", ("food",)),
    ("ride", "rides", "rode", "mel", ("mount", "animal")),
    ("drive", "drives", "drove", "mel", ("vehicle",)),
    ("wear", "wears", "wore", "gor", ("clothes",)),
    ("carry", "carries", "carried", "gor", ("load",)),
    ("buy", "buys", "bought", "kup", ("food", "drink", "vehicle", "clothes", "gift", "text")),
    ("sell", "sells", "sold", "prod", ("food", "vehicle", "clothes", "gift", "animal")),
    ("read", "reads", "read", "chit", ("text",)),
    ("write", "writes", "wrote", "pish", ("text",)),
    ("see", "sees", "saw", "vid", ("person", "animal", "vehicle", "load")),
    ("find", "finds", "found", "nasht", ("load", "animal", "gift")),
    ("feed", "feeds", "fed", "korm", ("animal", "mount")),
    ("help", "helps", "helped", "pom", ("person",)),
    ("visit", "visits", "visited", "gost", ("person",)),
    ("repair", "repairs", "repaired", "chin", ("vehicle",)),
    ("steal", "steals", "stole", "krad", ("vehicle", "load", "gift", "mount")),
)
INTRANSITIVE = (
    ("sleep", "sleeps", "slept", ("spat",)),
    ("sing", "sings", "sang", ("pev",)),
    ("work", "works", "worked", ("rab",)),
    ("wait", "waits", "waited", ("zhd",)),
    ("dance", "dances", "danced", ("tanz",)),
    ("laugh", "laughs", "laughed", ("smej",)),
    # Idioms: no word of theirs means what the whole means.
    ("give up", "gives up", "gave up", ("ruko", "mel")),
    ("fall asleep", "falls asleep", "fell asleep", ("sono", "jed")),
    ("run away", "runs away", "ran away", ("piat", "kup")),
    ("tell lies", "tells lies", "told lies", ("luna", "prod")),
)
# English, Tarvian, classes of the noun.
ADJECTIVES = (
    ("old", "star", ()),
    ("young", "mlad", ("person", "animal")),
    ("small", "piko", ()),
    ("red", "ruj", ("vehicle", "clothes", "load", "gift", "mount")),
    ("blue", "sinij", ("vehicle", "clothes", "load", "mount")),
    ("white", "bel", ("animal", "clothes", "in")),
    ("heavy", "tarn", ("load",)),
    ("strong", "tarn", ("person", "drink")),
    ("hot", "goral", ("food", "drink")),
    ("sunny", "goral", ("in", "on", "at")),
    ("cheap", "dush", ("food", "drink", "clothes", "vehicle")),
    ("stupid", "dush", ("person", "animal")),
    ("new", "nov", ("vehicle", "clothes", "text", "in", "mount")),
    ("quiet", "tik", ("person", "on", "at")),
)
LARGE = (("big", "large"), "grand")
ADVERBS = (
    ("yesterday", "vcera", "past"),
    ("last week", "semana vor", "past"),
    ("every day", "kazden", "present"),
    ("today", "segod", "present"),
    ("tomorrow", "zavra", "future"),
    ("next year", "godo pos", "future"),
)
NAMES = ("Milo", "Anka", "Petru", "Zora", "Ivo", "Lenka", "Bruno", "Dasha", "Orest", "Tilda")
CONJUNCTIONS = (("and", "ke"), ("but", "ama"), ("because", "pochto"))
POSTPOSITION = {"in": "na", "on": "na", "at": "na"}


@dataclass(frozen=True)
class Sentence:
    """A sentence pair; ``links`` are (Tarvian position, English position)."""

    tarvian: tuple[str, ...]
    english: tuple[str, ...]
    links: tuple[tuple[int, int], ...]


def word(tarvian: str, english: str) -> Sentence:
    """A unit whose words all belong together; either side may be empty."""
    left, right = tuple(tarvian.split()), tuple(english.split())
    return Sentence(left, right, tuple((i, j) for i in range(len(left)) for j in range(len(right))))


def join(tarvian_order: Sequence[Sentence], english_order: Sequence[Sentence]) -> Sentence:
    """The parts in one order for Tarvian, in another for English (the same objects)."""
    tarvian_start = _starts(tarvian_order, [len(part.tarvian) for part in tarvian_order])
    english_start = _starts(english_order, [len(part.english) for part in english_order])
    links = [
        (tarvian_start[id(part)] + i, english_start[id(part)] + j)
        for part in tarvian_order
        for i, j in part.links
    ]
    return Sentence(
        tuple(token for part in tarvian_order for token in part.tarvian),
        tuple(token for part in english_order for token in part.english),
        tuple(sorted(links)),
    )


def _starts(parts: Sequence[Sentence], lengths: Sequence[int]) -> dict[int, int]:
    starts, position = {}, 0
    for part, length in zip(parts, lengths, strict=True):
        starts[id(part)] = position
        position += length
    return starts


@dataclass(frozen=True)
class Phrase:
    """A noun phrase and its number."""

    words: Sentence
    plural: bool


def noun_phrase(
    rng: random.Random, classes: Sequence[str], names: Sequence[str], owner_chance: float = 0.1
) -> Phrase:
    """A name, or article, adjectives and noun; perhaps with an owner."""
    if "person" in classes and rng.random() < 0.15:
        name = rng.choice(names)
        return Phrase(word(name, name), False)
    singular, plurals, stem, kind = rng.choice([noun for noun in NOUNS if noun[3] in classes])
    plural = rng.random() < 0.3 and kind not in ("food", "drink")
    definite = rng.random() < 0.55
    noun = word(
        stem + ("i" if plural else "") + ("t" if definite else ""), plurals if plural else singular
    )
    adjectives = [adjective(rng, kind) for _ in range(rng.choice((0, 0, 0, 1, 1, 2)))]
    if len(adjectives) == 2 and adjectives[0].tarvian == adjectives[1].tarvian:
        adjectives.pop()
    if rng.random() < owner_chance:
        owner = noun_phrase(rng, ("person",), names, owner_chance=0.0)
        mark = word("ge", "'s")
        parts = [owner.words, mark, *adjectives, noun]
        return Phrase(join([owner.words, mark, noun, *adjectives[::-1]], parts), plural)
    head = join([noun, *adjectives[::-1]], [*adjectives, noun])
    article = "the" if definite else "" if plural or kind in ("food", "drink") else "a"
    if article == "a" and head.english[0][0] in "aeio":
        article = "an"
    inserted = word("", article)
    return Phrase(join([inserted, head], [inserted, head]), plural)


def adjective(rng: random.Random, kind: str) -> Sentence:
    """An adjective that goes with nouns of a class."""
    if rng.random() < 0.2:
        return word(LARGE[1], rng.choice(LARGE[0]))
    fitting = [item for item in ADJECTIVES if not item[2] or kind in item[2]]
    english, tarvian, _ = rng.choice(fitting)
    return word(tarvian, english)


def place(rng: random.Random, names: Sequence[str]) -> Sentence:
    """Where: the preposition depends on the noun in English, and is one word in Tarvian."""
    preposition = rng.choice(("in", "in", "on", "at"))
    where = noun_phrase(rng, (preposition,), names)
    mark = word(POSTPOSITION[preposition], preposition)
    return join([where.words, mark], [mark, where.words])


def verb(
    rng: random.Random, forms: Sequence[str], stems: Sequence[str], tense: str, plural: bool
) -> tuple[list[Sentence], list[Sentence]]:
    """The parts of a verb in Tarvian and in English order; English adds auxiliaries."""
    base, third, past = forms
    *before, stem = stems
    negative = rng.random() < 0.15
    ending = {"past": "ul", "present": "a", "future": "av"}[tense]
    tarvian = " ".join([*before, stem + ending])
    if tense == "future":
        auxiliary = "will"
    elif negative:
        auxiliary = "did" if tense == "past" else "do" if plural else "does"
    else:
        auxiliary = ""
    form = base if auxiliary else past if tense == "past" else base if plural else third
    main, helper = word(tarvian, form), word("", auxiliary)
    if not negative:
        return [main, helper], [helper, main]
    negation = word("ne", "not")
    return [negation, main, helper], [helper, negation, main]


def clause(rng: random.Random, names: Sequence[str]) -> Sentence:
    """One clause: Tarvian (time) subject (place) object verb; English subject verb object ..."""
    adverb = rng.choice(ADVERBS) if rng.random() < 0.4 else None
    tense = adverb[2] if adverb else rng.choice(("past", "past", "present"))
    when = [word(adverb[1], adverb[0])] if adverb else []
    where = [place(rng, names)] if rng.random() < 0.4 else []
    if rng.random() < 0.1:
        return existential(rng, names)
    if rng.random() < 0.65:
        *forms, stem, classes = rng.choice(VERBS)
        stems: tuple[str, ...] = (str(stem),)
        thing = [noun_phrase(rng, list(classes), names).words]
    else:
        *forms, stems = rng.choice(INTRANSITIVE)
        thing = []
    subject = noun_phrase(rng, ("person",) if rng.random() < 0.8 else ("animal",), names)
    forms = [str(form) for form in forms]
    tarvian_verb, english_verb = verb(rng, forms, stems, tense, subject.plural)
    return join(
        [*when, subject.words, *where, *thing, *tarvian_verb],
        [subject.words, *english_verb, *thing, *where, *when],
    )


def existential(rng: random.Random, names: Sequence[str]) -> Sentence:
    """``there is``: Tarvian says place, thing, ``es``."""
    thing = noun_phrase(rng, ("animal", "vehicle", "load", "gift"), names)
    where = place(rng, names)
    there, copula = word("", "there"), word("es", "are" if thing.plural else "is")
    return join([where, thing.words, there, copula], [there, copula, thing.words, where])


def random_sentence(rng: random.Random, names: Sequence[str] = NAMES) -> Sentence:
    """A sentence of one or two clauses, with its full stop."""
    stop = word(".", ".")
    first = clause(rng, names)
    if rng.random() < 0.75:
        return join([first, stop], [first, stop])
    english, tarvian = rng.choice(CONJUNCTIONS)
    comma, conjunction, second = word(",", ","), word(tarvian, english), clause(rng, names)
    parts = [first, comma, conjunction, second, stop]
    return join(parts, parts)
