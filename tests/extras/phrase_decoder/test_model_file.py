"""The features of a configuration, and -show-weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.errors import FormatError
from formats.moses.ini import parse_moses_ini, read_moses_ini
from mosesplug.errors import DataError, UsageError
from mosesplug.extras.phrase_decoder.model_file import (
    ModelFeatures,
    find_file,
    read_features,
    show_weights,
)

INI = """\
[feature]
UnknownWordPenalty
WordPenalty
PhrasePenalty tuneable=false
PhraseDictionaryMemory name=TM0 num-features=3 path=table tuneable-components=1,0,true
Distortion
KENLM path=lm.arpa order=3 factor=0
[weight]
WordPenalty0= -1
PhrasePenalty0= 0.2
TM0= 0.1 0.2 0.3
Distortion0= 0.30000001
KENLM0= 5e-1
"""


def read(text: str = INI, overwrite: str = "") -> ModelFeatures:
    return read_features(parse_moses_ini(text.encode(), "moses.ini"), overwrite)


def test_show_weights_lists_features_with_a_state_first() -> None:
    assert show_weights(read()).decode() == (
        "Distortion0= 0.300000\n"
        "KENLM0= 0.500000\n"
        "UnknownWordPenalty0 UNTUNEABLE\n"
        "WordPenalty0= -1.000000\n"
        "PhrasePenalty0 UNTUNEABLE\n"
        "TM0= 0.100000 UNTUNEABLECOMPONENT 0.300000\n"
    )


def test_columns_follow_the_configuration() -> None:
    features = read()
    assert features.weights.tolist() == [1.0, -1.0, 0.2, 0.1, 0.2, 0.3, 0.30000001, 0.5]
    assert features.weights_of("PhraseDictionaryMemory").tolist() == [0.1, 0.2, 0.3]
    assert features.weights_of("LexicalReordering", 6).tolist() == [0.0] * 6


def test_weights_are_overwritten_and_x_keeps_them() -> None:
    features = read(overwrite="TM0= x 7 x WordPenalty0= 2")
    assert features.weights_of("PhraseDictionaryMemory").tolist() == [0.1, 7.0, 0.3]
    assert features.weights_of("WordPenalty").tolist() == [2.0]


@pytest.mark.parametrize(
    "overwrite",
    ["0.5", "TM0= 1 2 3 x", "TM0= one", "LM7= x", "LM7= 1", "TM0= nan", "TM0= 1", "D0= x"],
)
def test_a_faulty_overwrite_is_rejected(overwrite: str) -> None:
    with pytest.raises(UsageError, match="weight-overwrite"):
        read(overwrite=overwrite)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "Distortion\n",
            "OpSequenceModel\n",
            "moses.ini:6: the bundled decoder does not support OpSeq",
        ),
        ("Distortion\n", "Distortion sparse=1\n", "does not support argument sparse of Distortion"),
        ("Distortion\n", "Distortion num-features=2\n", "this feature has 1"),
        ("Distortion\n", "WordPenalty name=other\n", "supports only one WordPenalty"),
        ("factor=0", "factor=1", "supports only factor 0"),
        ("path=table ", "", "PhraseDictionaryMemory needs path"),
        ("num-features=3", "num-features=0", "a number from 1 to 9999"),
        ("num-features=3", "num-features=99999999999", "a number from 1 to 9999"),
        ("num-features=3", "num-features=3 table-limit=few", "table-limit=few: a number"),
        ("1,0,true", "1,0", "tuneable-components=1,0: 3 values"),
        ("tuneable=false", "tuneable=perhaps", "'perhaps': true or false"),
        ("KENLM path=lm.arpa order=3 factor=0\n", "", "[feature] has no KENLM"),
        ("TM0= 0.1 0.2 0.3", "TM0= 0.1 0.2", "TM0 has 3 value(s) and 2 weight(s)"),
        ("WordPenalty0= -1", "WordPenalty1= -1", "WordPenalty0 has 1 value(s) and 0 weight(s)"),
        ("WordPenalty0= -1", "WordPenalty0= -1\nLM0= 1", "weights without a feature: LM0"),
        (
            "Distortion\n",
            "LexicalReordering type=hier-mslr-bidirectional-fe path=x\n",
            "reordering type 'hier-mslr-bidirectional-fe'",
        ),
    ],
)
def test_unsupported_features_are_rejected(old: str, new: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        read(INI.replace(old, new))
    assert message in str(caught.value)


def test_x_needs_a_weight_to_keep() -> None:
    with pytest.raises(UsageError, match="Distortion0 has no weights to keep"):
        read(INI.replace("Distortion0= 0.30000001\n", ""), "Distortion0= x")


@pytest.mark.parametrize("name", ["moses.ini", "demo/moses.ini"])
def test_the_sample_configurations_can_be_read(name: str) -> None:
    path = Path(__file__).parent.parent.parent.parent / "moses-config" / name
    features = read_features(read_moses_ini(path))
    assert len(features.weights) == 15


def test_files_are_looked_up_in_the_current_directory_then_with_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, beside = tmp_path / "here", tmp_path / "beside"
    here.mkdir()
    beside.mkdir()
    ini = parse_moses_ini(INI.encode(), beside / "moses.ini")
    features = read_features(ini)
    feature = features.of_kind("PhraseDictionaryMemory")
    assert feature is not None
    monkeypatch.chdir(here)
    with pytest.raises(DataError, match=r"moses.ini:5: TM0: no file table"):
        find_file(features, feature)
    (beside / "table.gz").touch()
    assert Path(find_file(features, feature)) == beside / "table.gz"
    (here / "table").touch()
    assert Path(find_file(features, feature)).resolve() == here / "table"
