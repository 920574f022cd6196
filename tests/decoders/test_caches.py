"""Caches are used only if what they were made from has not changed."""

from __future__ import annotations

from pathlib import Path

from mosesplug.decoders import caches


def test_caches_are_valid_only_while_their_sources_do_not_change(tmp_path: Path) -> None:
    source, cache = tmp_path / "source", tmp_path / "cache"
    source.write_text("a")
    cache.write_text("made")
    made_from = {"source": caches.describe_content(source)}
    assert not caches.is_fresh(cache, made_from)
    caches.remember(cache, made_from)
    assert caches.is_fresh(cache, made_from)
    source.write_text("b")
    assert not caches.is_fresh(cache, {"source": caches.describe_content(source)})
    assert not caches.is_fresh(cache, {**made_from, "more": ""})
    cache.unlink()
    assert not caches.is_fresh(cache, made_from)


def test_forgotten_or_damaged_notes(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    caches.remember(cache, {})
    caches.forget(cache)
    assert not caches.is_fresh(cache, {})
    (tmp_path / "cache.made-from.json").write_text("{")
    assert not caches.is_fresh(cache, {})


def test_model_files(tmp_path: Path) -> None:
    config = tmp_path / "moses.ini"
    config.write_text("[feature]\nKind name=X path=table input-factor=0\nLM path=/none/lm\n")
    (tmp_path / "table.gz").write_text("x")
    before = caches.describe_model_files(config, tmp_path)
    assert "table.gz 1 bytes" in before
    (tmp_path / "table.gz").write_text("xy")
    assert caches.describe_model_files(config, tmp_path) != before


def test_lost_models(tmp_path: Path) -> None:
    config = tmp_path / "moses.ini"
    config.write_text(f"[feature]\nA path=table\nB path={tmp_path}/x\nC path=none/x\n")
    (tmp_path / "table.gz").write_text("x")
    assert caches.find_lost_models(config, tmp_path / "work") == ("table",)
    assert caches.find_lost_models(config, tmp_path) == ()
