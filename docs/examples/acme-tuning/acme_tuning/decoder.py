"""A decoder that translates word by word: ``plugin:lexicon:FILE``.

A line of FILE has a source word, a target word and the logarithm of a probability.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from mosesplug.decoders.batch import ModelWeights
from mosesplug.decoders.plugin import DecoderPlugin, Hypothesis
from mosesplug.errors import UsageError


class Lexicon:
    """An open decoder: target words with their values, by source word."""

    def __init__(self, argument: str) -> None:
        if not Path(argument).is_file():
            raise UsageError(f"plugin:lexicon:{argument}: give a file, as plugin:lexicon:FILE")
        self.words: dict[str, list[tuple[str, float]]] = {}
        for line in Path(argument).read_text(encoding="utf-8").splitlines():
            source, target, value = line.split()
            self.words.setdefault(source, []).append((target, float(value)))

    def decode(
        self, sentences: Sequence[bytes], weights: ModelWeights, nbest: int
    ) -> Iterator[list[Hypothesis]]:
        """Yield the best combinations of at most two target words for each source word."""
        weight = {group.name: group.values[0] or 0.0 for group in weights.groups}
        for sentence in sentences:
            choices = [
                self.words.get(word, [(word, -10.0)])[:2] for word in sentence.decode().split()[:8]
            ]
            found = []
            for pairs in product(*choices):
                text = " ".join(target for target, _ in pairs)
                features = {
                    "Lexicon": sum(value for _, value in pairs),
                    "Letters": float(len(text)),
                }
                score = sum(weight[name] * value for name, value in features.items())
                found.append(Hypothesis(text, features, score))
            yield sorted(found, key=lambda each: (-each.score, each.text))[:nbest]

    def close(self) -> None:
        """Hold nothing."""


LEXICON = DecoderPlugin("lexicon", "Word by word, with a lexicon", Lexicon)
