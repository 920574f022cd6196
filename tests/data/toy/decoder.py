"""A decoder for tests: answers to Moses' command line from a toy model, quickly and repeatably.

The translation of a sentence is the sentence itself; the hypotheses are spoiled copies, drawn from
a generator seeded by the sentence. Features tell the spoilt from the sound, some better than
others, so that tuning raises BLEU. ``-fault WHAT`` makes it misbehave in one of many ways.

Tests start it a thousand times: it imports little.
"""

# pathlib and random take longer to import than everything else here.
# ruff: noqa: PTH103, PTH118, PTH123

import os
import sys
import time
import zlib
from _operator import mul
from _random import Random
from itertools import chain

GROUPS = (("Distortion0", 1), ("LM0", 1), ("WordPenalty0", 1), ("TranslationModel0", 3))
POOL = 60
WORDS = "ein eine der die das und mit auf in von zu rot blau klein hund katze mann frau"
WORDS = tuple(WORDS.split())


class Chance(Random):
    """Draws what ``random.Random`` draws with the same seed."""

    def below(self, end):
        bits = end.bit_length()
        while (number := self.getrandbits(bits)) >= end:
            pass
        return number

    def choice(self, values):
        return values[self.below(len(values))]


def options(arguments):
    """Flags with their values; a flag is a word that begins with a dash and no digit."""
    found, name = {}, None
    for word in arguments:
        if word.startswith("-") and not word[1:2].isdigit():
            name = word.lstrip("-")
            found[name] = []
        else:
            found[name].append(word)
    return found


def parse_weights(words):
    """``Name= v v Name= v`` as a dictionary of lists."""
    weights, name = {}, None
    for word in words:
        if word.endswith("="):
            name = word[:-1]
            weights[name] = []
        else:
            weights[name].append(float(word))
    return weights


def read_config(path):
    """The weights of a ``moses.ini``."""
    sections, name = {}, ""
    with open(path) as file:
        for line in file:
            line = line.strip()
            if line.startswith("[") and line.endswith("]"):
                name = line[1:-1]
            elif line and not line.startswith("#"):
                sections.setdefault(name, []).append(line)
    return parse_weights(" ".join(sections["weight"]).split())


def read_lines(path):
    """The lines of a file."""
    with open(path) as file:
        return file.read().splitlines()


def read_constraints(path, find):
    """The references of each sentence in the files of ``ConstrainedDecoding``; None without any.

    ``find`` returns the path of a file that the configuration names.
    """
    for line in read_lines(path):
        if line.startswith("ConstrainedDecoding "):
            files = line.partition(" path=")[2].split()[0].split(",")
            rows = [row.split("\t") for file in files for row in read_lines(find(file))]
            return {(int(number), text) for number, text in rows}
    return None


def hypotheses(sentence):
    """Distinct spoiled copies of a sentence with their features."""
    chance = Chance(zlib.crc32(sentence.encode()))
    pool = {}
    for _ in range(POOL):
        words, errors, moves = sentence.split(), 0, 0
        for _ in range(chance.below(6)):
            kind = chance.below(4)
            place = chance.below(len(words)) if words else 0
            if kind == 0 and words:
                words[place] = chance.choice(WORDS)
            elif kind == 1 and words:
                del words[place]
            elif kind == 2:
                words.insert(place, chance.choice(WORDS))
            elif len(words) > 1:
                other = chance.below(len(words))
                words[place], words[other] = words[other], words[place]
                moves += 1
            errors += 1
        text = " ".join(words)
        features = {
            "Distortion0": [-moves],
            "LM0": [round(-len(words) - errors * chance.random() - 3 * chance.random(), 4)],
            "WordPenalty0": [-len(words)],
            "TranslationModel0": [
                round(-errors - 2 * chance.random(), 5),
                round(errors * chance.random() - 4 * chance.random(), 5),
                round(-3 * chance.random(), 5),
            ],
        }
        sparse = {f"wt_{word}": words.count(word) for word in sorted(set(words)) if word in WORDS}
        pool.setdefault(text, (features, sparse))
    return pool


def write_graph(directory, number, scored, sparse_on, fault):
    """The search graph of a sentence: an edge for each hypothesis, between those of its borders."""
    nodes = [["<s> |||  ||| 0"], [], ["[1] </s> |||  ||| 1"]]
    for _, text, features, sparse in scored:
        pairs = [("UnknownWordPenalty0", -100.0 * (number % 2))]
        for name, width in GROUPS:
            names = [name] if width == 1 else [f"{name}_{k}" for k in range(1, width + 1)]
            pairs += zip(names, features[name], strict=True)
        pairs += sparse.items() if sparse_on else ()
        pairs += [("Surprise0", 1.0)] if fault == "surprise" else []
        spelled = " ".join(f"{name}={value:.6f}" for name, value in pairs)
        nodes[1].append(f"[0] {text}  ||| {spelled}  ||| 1")
    lines = ["# target ||| features ||| source-covered", f"3 {len(nodes[1]) + 2}"]
    for node, edges in enumerate(nodes):
        lines += [f"# node {node}", str(len(edges)), *edges]
    if fault == "cut":
        lines = lines[:5]
    import gzip  # only for graphs

    with gzip.open(f"{directory}/{number}.gz", "wt", compresslevel=1) as file:
        file.write("\n".join([*lines, ""]))


def main(arguments=None, directory="", out=None, err=None):
    """Answer to a command line, that of the program by default.

    A test that needs no process of its own passes the arguments, the directory that is to be the
    current one, and files for what the program prints.
    """
    given = options(sys.argv[1:] if arguments is None else arguments)

    def find(path):
        return os.path.join(directory, path)

    fault = given.get("fault", [""])[0]
    weights = read_config(find(given["config"][0]))
    constraints = read_constraints(find(given["config"][0]), find)
    sparse_on = "sparse" in given
    if "show-weights" in given:
        if fault == "no-weights":
            sys.exit("cannot load the model")
        if fault.startswith("no-table"):
            sys.exit(1 if fault == "no-table-silent" else "Exception: Could not open table.gz.")
        for name, values in weights.items():
            if name == "UnknownWordPenalty0":
                print(name, "UNTUNEABLE", file=out)
            else:
                print(f"{name}=", *(f"{value:.6f}" for value in values), file=out)
        if sparse_on:
            print("wt=", file=out)
        return
    for word in given.get("weight-overwrite", []):
        weights.update(parse_weights(word.split()))
    dense = [weight for name, _ in GROUPS for weight in weights[name]]
    sparse_weights = {}
    if "weight-file" in given:
        with open(find(given["weight-file"][0])) as file:
            sparse_weights = {name: float(value) for name, value in map(str.split, file)}
    graphs = given.get("output-search-graph-hypergraph", ("", "", None))[2]
    path, size = ("/dev/null", 0) if graphs else given.get("n-best-list", ("/dev/null", 0))[:2]
    if graphs:
        graphs = find(graphs)
        os.makedirs(graphs, exist_ok=True)
        open(f"{graphs}/weights", "w").close()
    with open(find(given["input-file"][0])) as file:
        sentences = [line.strip() for line in file]
    order = GROUPS[::-1] if fault == "order" else GROUPS
    print("loaded", file=err or sys.stderr)
    with open(find(path), "w") as lists:
        for number, sentence in enumerate(sentences):
            if number == 3 and fault == "die":
                sys.exit("assertion failed: the beam is empty")
            if number == 3 and fault == "hang":
                time.sleep(600)
            if number == 3 and fault == "short":
                break
            if number == 3 and fault == "gap":
                print("ein hund", file=out, flush=True)
                continue
            if number == 3 and fault == "unparsed":
                print(file=out, flush=True)
                continue
            time.sleep(float(given.get("delay", ["0"])[0]))
            scored = []
            for text, (features, sparse) in hypotheses(sentence).items():
                score = sum(map(mul, dense, chain.from_iterable(features.values())))
                if sparse_on:
                    score += sum(sparse_weights.get(name, 0.0) * f for name, f in sparse.items())
                scored.append((-score, text, features, sparse))
            scored.sort(key=lambda entry: entry[:2])
            if constraints is not None:
                scored = [entry for entry in scored if (number, entry[1]) in constraints]
            if not scored:
                print(file=out, flush=True)
                continue
            print(scored[0][1], file=out, flush=True)
            if fault == "empty":
                continue
            if graphs:
                write_graph(graphs, number, scored, sparse_on, fault)
            for score, text, features, sparse in scored[: int(size)]:
                if fault == "nan" and number == 2:
                    features["LM0"] = ["nan"]
                fields = [f"{n}= {' '.join(map(str, features[n]))}" for n, _ in order]
                if sparse_on:
                    fields += [f"{name}= {value}" for name, value in sparse.items()]
                text = text.replace(" k", "k@@ ") if "subwords" in given else text
                lists.write(f"{number} ||| {text} ||| {' '.join(fields)} ||| {-score:.6g}\n")
    if "lattice-samples" in given:
        path, size = given["lattice-samples"]
        with open(find(path), "w") as samples:
            for number, sentence in enumerate(sentences):
                pool = sorted(hypotheses(sentence).items())
                for text, (features, _) in pool[: int(size)]:
                    fields = [f"{n}= {' '.join(map(str, features[n]))}" for n, _ in order]
                    print(number, text, " ".join(fields), "0", sep=" ||| ", file=samples)


def make(directory, sentences):
    """Write ``input``, ``reference0``, ``reference1`` and ``moses.ini`` into a directory."""
    chance = Chance(7)
    lines = []
    for _ in range(sentences):
        size = 4 + chance.below(8)
        lines.append(" ".join(WORDS[int(chance.random() * len(WORDS))] for _ in range(size)))
    with open(f"{directory}/input", "w") as file:
        file.writelines(line + "\n" for line in lines)
    for number in (0, 1):
        with open(f"{directory}/reference{number}", "w") as file:
            for line in lines:
                words = line.split()
                if number:
                    words[chance.below(len(words))] = chance.choice(WORDS)
                file.write(" ".join(words) + "\n")
    with open(f"{directory}/moses.ini", "w") as file:
        file.write("# toy model\n\n[input-factors]\n0\n\n[distortion-limit]\n6\n\n[feature]\n")
        file.write("".join(f"Toy name={name} num-features={n}\n" for name, n in GROUPS))
        file.write("UnknownWordPenalty\n\n[weight]\nUnknownWordPenalty0= 1\n")
        file.write("Distortion0= 0.3\nLM0= 0.5\nWordPenalty0= -1\n")
        file.write("TranslationModel0= 0.2 0.2 0.2\n")


if __name__ == "__main__":
    if sys.argv[1] == "--make":
        make(sys.argv[2], int(sys.argv[3]))
    else:
        main()
