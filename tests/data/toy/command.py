"""The toy decoder as a command: ``command.py WEIGHTS INPUT NBEST SIZE [FAULT] [LAYOUT]``.

WEIGHTS is a file in any format of ``--weights-format``. LAYOUT: ``moses``, ``bare`` (no labels) or
``named`` (``name=value``, only with features of one value).
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import decoder


def read_weights(path):
    """Return ``Name= v v`` words, and sparse weights by name."""
    text = Path(path).read_text()
    if text.startswith("{"):
        parts = json.loads(text)
        sparse = parts.get("sparse", {})
        dense = {n: v if isinstance(v, list) else [v] for n, v in parts["dense"].items()}
        return dense, sparse
    if "[weight]" in text:
        return decoder.read_config(path), {}
    dense, sparse, words, name = {}, {}, text.split(), None
    for word in words:
        if word.endswith("="):
            name = word[:-1]
            dense[name] = []
        elif word.startswith("wt_"):
            name = word
        elif name.startswith("wt_"):
            sparse[name] = float(word)
        else:
            dense[name].append(float(word))
    return dense, sparse


def main():
    weights, source, nbest, size, fault, layout = [*sys.argv[1:], "", ""][:6]
    dense, sparse = read_weights(weights)
    words = [w for name, values in dense.items() for w in (f"{name}=", *map(repr, values))]
    config = Path(f"{nbest}.config")
    config.write_text("[weight]\n" + " ".join(words) + "\n")
    call = ["-config", str(config), "-input-file", source, "-n-best-list", nbest, size, "distinct"]
    call += ["-fault", fault] if fault else []
    if sparse or "sparse" in layout:
        extra = Path(f"{nbest}.sparse")
        extra.write_text("".join(f"{name} {value!r}\n" for name, value in sparse.items()))
        call += ["-sparse", "-weight-file", str(extra)]
    sys.argv[1:] = call
    decoder.main()
    config.unlink()
    if layout == "bare":
        lines = Path(nbest).read_text().splitlines()
        bare = (" ".join(w for w in line.split(" ") if not w.endswith("=")) for line in lines)
        Path(nbest).write_text("".join(f"{line}\n" for line in bare))


if __name__ == "__main__":
    main()
