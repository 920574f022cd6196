"""Launchers: where they go, what they leave alone, and a round of mert-moses.pl with them."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from mosesplug.cli.main import main as mosesplug
from mosesplug.cli.moses.install import (
    LAUNCHERS,
    TOOLKITS,
    find_toolkit,
    launcher,
    write_launchers,
)
from mosesplug.errors import UsageError

NAMES = {
    *("extractor", "mert", "pro", "kbmira", "evaluator", "sentence-bleu", "sentence-bleu-nbest"),
    *("hgdecode", "megam_i686.opt", "mert-moses.pl"),
}
TRAVATAR = {"batch-tune", "rescorer"}


def start(program: Path, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *words], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("peer", "name"),
    [(peer, name) for peer in TOOLKITS for name in sorted(find_toolkit(peer).launchers)],
)
def test_the_function_of_every_launcher_helps(
    peer: str, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module, function = find_toolkit(peer).launchers[name]
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit) as ended:
        getattr(importlib.import_module(module), function)()
    assert not ended.value.code
    assert capsys.readouterr().out.startswith("usage: ")


def test_install(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "new" / "tools"
    with pytest.raises(SystemExit) as ended:
        mosesplug(["install-tools", str(directory)])
    assert ended.value.code == 0
    assert {path.name for path in directory.iterdir()} == NAMES == set(LAUNCHERS)
    umask = os.umask(0)
    os.umask(umask)
    assert {path.stat().st_mode & 0o777 for path in directory.iterdir()} == {0o777 & ~umask}
    said = capsys.readouterr().out
    assert f"--mertdir {directory}" in said
    # Again, over what is there already.
    write_launchers(directory)


def test_install_for_travatar(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        mosesplug(["install-tools", "--peer", "travatar", str(tmp_path)])
    assert ended.value.code == 0
    programs = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert programs == {*TRAVATAR, *(f"src/bin/{name}" for name in TRAVATAR)}
    assert f"TRAVATAR_DIR={tmp_path} ..." in capsys.readouterr().out
    (tmp_path / "src" / "bin" / "rescorer").write_bytes(b"\x7fELF")
    with pytest.raises(UsageError, match=r"rescorer in .*--force"):
        write_launchers(tmp_path, peer="travatar")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "src").write_text("x")
    with pytest.raises(UsageError, match=r"other/src is not a directory"):
        write_launchers(tmp_path / "other", peer="travatar")


def test_odd_characters_in_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = tmp_path / 'it\'s a "dir" $HOME;\\n'
    odd.mkdir()
    python = odd / "python"
    python.write_text(f'#!/bin/sh\necho odd >&2\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    write_launchers(odd / "tools")
    done = start(odd / "tools" / "hgdecode", "-g", "no such file")
    assert done.returncode == 1
    assert done.stderr.startswith("odd\nhgdecode: no such file: cannot be read")


def test_modules_in_the_current_directory_are_not_imported(tmp_path: Path) -> None:
    write_launchers(tmp_path / "tools")
    for name in ("numpy", "formats", "mosesplug", "getopt", "typing"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('taken')\n")
    done = start(tmp_path / "tools" / "hgdecode", "-g", "none", cwd=tmp_path)
    assert done.stderr.startswith("hgdecode: none: cannot be read")


def test_foreign_files_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "mert").write_bytes(b"\x7fELF")
    target = tmp_path / "elsewhere"
    target.write_bytes(launcher("mosesplug.cli.moses.pro", "main"))
    (tmp_path / "pro").symlink_to(target)
    (tmp_path / "kbmira").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"mert, pro, kbmira in .*--force"):
        write_launchers(tmp_path)
    assert not (tmp_path / "extractor").exists()
    write_launchers(tmp_path, force=True)
    assert not (tmp_path / "pro").is_symlink()
    assert b"moses.pro" in target.read_bytes()
    assert b"moses.mert" in (tmp_path / "mert").read_bytes()
    assert not (tmp_path / "nowhere").exists()
    write_launchers(tmp_path)


def test_unwritable_targets_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="is not a directory"):
        write_launchers(tmp_path / "file")
    (tmp_path / "mert").mkdir()
    with pytest.raises(UsageError, match="mert is a directory"):
        write_launchers(tmp_path, force=True)
    assert not (tmp_path / "extractor").exists()


TEXT = "the cat sat on a mat and looked at some small red birds in trees"


def make_lists(directory: Path) -> None:
    """A list of ten sentences with eight hypotheses each, whose second feature counts errors."""
    vocabulary = TEXT.split()
    references, lines = [], []
    for sentence in range(10):
        reference = [vocabulary[(sentence * 5 + k * 3) % len(vocabulary)] for k in range(9)]
        references.append(" ".join(reference) + "\n")
        for number in range(8):
            words = list(reference)
            for k in range(number):
                words[(3 * k + sentence) % 9] = f"w{k}"
            noise = (7 * number + 3 * sentence) % 5
            values = f"LM0= {-noise} TM0= {-number} {0.5 * noise} wt_x= {number % 2}"
            lines.append(f"{sentence} ||| {' '.join(words)} ||| {values} ||| 0\n")
    (directory / "references").write_text("".join(references))
    (directory / "run1.out").write_text("".join(lines))
    (directory / "run1.dense").write_text("LM0= 0.3\nTM0= 0.3\nTM0= 0.3\n")
    (directory / "init.opt").write_text("0.3 0.3 0.3\n0 0 0\n1 1 1\n")


def read_dense_and_sparse(text: str) -> tuple[list[float], dict[str, float]]:
    """Weights as mert-moses.pl reads them from MIRA and from the classifier, normalized."""
    dense, sparse = [0.0] * 3, {}
    for line in text.splitlines():
        if match := re.match(r"F(\d+) ([\-\.\de]+)", line):
            dense[int(match[1])] = float(match[2])
        elif match := re.match(r"(.+_.+) ([\-\.\de]+)", line):
            sparse[match[1]] = float(match[2])
    total = sum(map(abs, dense))
    return [weight / total for weight in dense], {k: v / total for k, v in sparse.items()}


class Printed(NamedTuple):
    """Return what a program prints."""

    stdout: str
    stderr: str


def test_a_round_of_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The commands of an iteration, and their results as the script parses them.

    The functions that the launchers run are called in this process.
    """
    make_lists(tmp_path)
    monkeypatch.chdir(tmp_path)

    def call(name: str, words: str) -> Printed:
        module, function = LAUNCHERS[name]
        monkeypatch.setattr(sys, "argv", [name, *words.split()])
        with pytest.raises(SystemExit) as ended:
            getattr(importlib.import_module(module), function)()
        printed = Printed(*capfd.readouterr())
        assert not ended.value.code, printed.stderr
        return printed

    files = "--scfile run1.scores.dat --ffile run1.features.dat"
    metric = "--sctype BLEU --scconfig case:true"
    call("extractor", f"{metric} {files} -r references -n run1.out")
    said = call("mert", f"-d 3 {metric} {files} --ifile init.opt -n 3 -r 1000 --threads 2").stderr
    found = re.search(r"Best point:\s*([\s\d\.\-e]+?)\s*=> ([\-\d\.]+)", said)
    assert found is not None
    assert (tmp_path / "weights.txt").read_text().split() == found[1].split()
    assert float(found[2]) == pytest.approx(1.0)

    mira = f"--dense-init run1.dense -r 1000 {files} -o mira.out -J 5"
    scores = re.findall(r"Best BLEU = ([\-\d\.]+)", call("kbmira", mira).stderr)
    assert float(scores[-1]) > 0.9
    call("pro", f"-r 1000 {files} -o run1.pro.data")
    classified = call("megam_i686.opt", "-fvals -maxi 30 -nobias binary run1.pro.data").stdout
    check_learned((tmp_path / "mira.out").read_text())
    check_learned(classified)

    dense, sparse = read_dense_and_sparse(classified)
    (tmp_path / "merge").write_text("".join(f"{name} {w}\n" for name, w in sparse.items()))
    point = " ".join(map(repr, dense))
    (tmp_path / "init.pro").write_text(f"{point} 1\n0 0 0 0\n1 1 1 1\n")
    words = f"-d 3 {metric} {files} --ifile init.pro -n 2 -r 1 --sparse-weights merge"
    found = re.search(r"Best point:\s*([\s\d\.\-e]+?)\s*=> ", call("mert", words).stderr)
    assert found is not None
    assert len(found[1].split()) == 4

    best = call("evaluator", f"--reference references {metric} --nbest run1.out").stdout
    assert float(best.splitlines()[0]) == pytest.approx(1.0)


def check_learned(text: str) -> None:
    """The feature that counts errors got the largest weight."""
    dense, sparse = read_dense_and_sparse(text)
    assert dense[1] == max(dense) > 0.0
    assert list(sparse) == ["wt_x"]
