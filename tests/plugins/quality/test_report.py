from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.errors import ConfigError, InvalidRequestError
from gateway.plugins.quality import (
    EvalReport,
    catalog_digest,
    list_reports,
    load_report,
    newest_report,
    read_report,
    save_report,
    write_report,
)
from tests.plugins.quality.conftest import Evaluate


@pytest.fixture
def report(run: Evaluate) -> EvalReport:
    """A report with one found and one missed tool."""
    return run({"a flight": "book_flight", "weather forecast": "play_music"})


def test_saved_report_is_listed_and_loaded(report: EvalReport, tmp_path: Path) -> None:
    """Only the owner may read the file."""
    older, newer = (save_report(report, tmp_path / "reports") for _ in range(2))
    listed = list_reports(tmp_path / "reports")

    assert older.name < newer.name
    assert [older.name, newer.name] == [stored.name for stored in listed]
    assert [stored.time.replace("-", "").replace(":", "")[:15] for stored in listed] == [
        older.name[:15],
        newer.name[:15],
    ]
    assert (2, 12, catalog_digest(report.catalog), 0.5, "") == (
        listed[0].requests,
        listed[0].tools,
        listed[0].catalog,
        listed[0].figures["hit@1"],
        listed[0].error,
    )
    assert report == load_report(tmp_path / "reports", older.name)
    assert report == newest_report(tmp_path / "reports")
    if os.name == "posix":
        assert 0o600 == older.stat().st_mode & 0o777


def test_unreadable_report_files_are_listed_with_an_error(
    report: EvalReport, tmp_path: Path
) -> None:
    saved_path = save_report(report, tmp_path)
    (tmp_path / "zero.json").write_text("", "utf-8")
    (tmp_path / "notes.txt").write_text("no report", "utf-8")
    (tmp_path / "poor.json").write_text('{"catalog": {}}', "utf-8")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe")
    half = tmp_path / "half.json"
    half.write_text(write_report(report).replace('"outcomes"', '"other"'), "utf-8")
    errors = {stored.name: stored.error for stored in list_reports(tmp_path)}

    assert {saved_path.name, "zero.json", "poor.json", "binary.json", "half.json"} == {*errors}
    assert "zero.json is not a report of 'gateway eval run'" == errors["zero.json"]
    assert "poor.json: 'summary' is missing" == errors["poor.json"]
    assert "save it as UTF-8" in errors["binary.json"]
    assert ("", "") == (errors[saved_path.name], errors["half.json"])
    with pytest.raises(ConfigError, match=r"half.json: 'outcomes' is missing"):
        load_report(tmp_path, "half.json")
    assert report == load_report(tmp_path, saved_path.name)

    saved_path.write_text("gone", "utf-8")
    with pytest.raises(ConfigError, match="is not a report"):
        load_report(tmp_path, saved_path.name)


def test_load_report_accepts_only_listed_names(report: EvalReport, tmp_path: Path) -> None:
    saved_path = save_report(report, tmp_path / "reports")
    (tmp_path / "other.json").write_text(write_report(report), "utf-8")

    for name in (
        "../other.json",
        "",
        ".",
        str(tmp_path / "other.json"),
        f"./../reports/{saved_path}",
    ):
        with pytest.raises(InvalidRequestError, match="no such report"):
            load_report(tmp_path / "reports", name)
    assert ((), None) == (list_reports(tmp_path / "none"), newest_report(tmp_path / "none"))


def test_report_cannot_be_saved_in_an_unwritable_folder(report: EvalReport, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("", "utf-8")

    with pytest.raises(ConfigError, match="cannot be written"):
        save_report(report, file)


def test_errors_of_invalid_reports_do_not_contain_their_values() -> None:
    with pytest.raises(ConfigError, match=r"^a.json: catalog must be an object$"):
        read_report('{"catalog": "s3cr3t"}', where="a.json")
