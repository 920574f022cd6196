"""Read the sentences that Sockeye writes (``--output-type json``).

They get the form of ``json_objects``. One sentence a line, numbered from 1, with costs, whose signs
are changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from formats.nbest.entry import Place
from formats.nbest.json_values import is_number

_SOCKEYE = frozenset(("sentence_id", "translation", "score"))
"""The keys of every object that Sockeye writes."""


def is_sentence_of_sockeye(parsed: Mapping[str, Any]) -> bool:
    """Return whether an object is a sentence as Sockeye writes it."""
    return parsed.keys() >= _SOCKEYE


def convert_sockeye(parsed: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """Return a sentence of Sockeye in the form of ``json_objects``.

    Without alternatives there is only the translation, as that of an empty sentence. What the
    caller of Sockeye passed through, such as ``text``, is ignored.
    """
    if not is_sentence_of_sockeye(parsed):
        missing = min(_SOCKEYE - parsed.keys())
        raise place.error(
            f"the object has no {missing}, unlike the first one",
            'Sockeye writes: {"sentence_id": 1, "translation": "a b", "score": 0.5, '
            '"translations": ["a b", "a"], "scores": [[0.5], [0.75]]}',
        )
    number = parsed["sentence_id"]
    if isinstance(number, int) and not isinstance(number, bool):
        if number < 1:
            raise place.error(f"sentence_id is {number}", "Sockeye counts sentences from 1")
        number -= 1
    texts, costs = parsed.get("translations"), parsed.get("scores")
    if texts is None:
        texts, costs = [parsed["translation"]], [parsed["score"]]
    if not (isinstance(texts, list) and isinstance(costs, list) and len(texts) == len(costs)):
        raise place.error(
            "the object has not one of scores for each of translations",
            "Give the output of sockeye-translate --output-type json --nbest-size N",
        )
    rows = [
        {"text": text, "scores": {name: _negate(value) for name, value in _name_costs(cost)}}
        for text, cost in zip(texts, costs, strict=True)
    ]
    return {"id": number, "hyps": rows}


def _name_costs(cost: Any) -> Iterator[tuple[str, Any]]:
    """Yield the costs of a translation and of its target factors with their names."""
    for number, value in enumerate(cost if isinstance(cost, list) else [cost]):
        yield f"factor{number}_score" if number else "score", value


def _negate(value: Any) -> Any:
    return 0.0 - value if is_number(value) else value
