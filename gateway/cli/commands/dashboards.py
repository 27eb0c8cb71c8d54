"""`gateway dashboards`: files for Grafana and Prometheus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from gateway.cli.command import Output, command, command_group
from gateway.cli.tables import table
from gateway.errors import ConfigError
from gateway.runtime.atomic_file import write_atomically

FILES = Path(__file__).parents[1] / "dashboards"
"""Exported files. The top-level folder `dashboards` generates those of Grafana."""
_FILE_MODE = 0o644
"""Readable by everybody, because Grafana and Prometheus run as other users."""

app = command_group("dashboards")


@app.callback()
def _group() -> None:
    """Write dashboards for Grafana and alerts for Prometheus as files."""


@command(app)
def export(
    folder: Annotated[Path, "Folder to write to; created if it is missing."],
    *,
    replace: Annotated[bool, "Overwrite files that differ."] = False,
) -> Output:
    """Write two dashboards for Grafana, alerts for Prometheus, and a compose file that runs both.

    Identical files are left alone. If a file differs, nothing is written without --replace.
    """
    texts = {
        path.relative_to(FILES).as_posix(): path.read_text("utf-8")
        for path in sorted(FILES.rglob("*"))
        if path.is_file()
    }
    try:
        rows = [
            {"file": name, "outcome": _outcome(folder / name, text)} for name, text in texts.items()
        ]
        changed = [row["file"] for row in rows if row["outcome"] == "replaced"]
        if changed and not replace:
            raise ConfigError(
                f"these files differ: {', '.join(changed)}; --replace overwrites them"
            )
        for row in rows:
            if row["outcome"] != "there":
                path = folder / row["file"]
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, texts[row["file"]], mode=_FILE_MODE)
    except OSError as error:
        raise ConfigError(f"{str(folder)!r} cannot be written: {error.strerror}") from error
    next_steps = (
        "gateway serve --http --metrics",
        f"docker compose -f {folder / 'compose.yaml'} up -d, then http://127.0.0.1:3000",
    )
    data = {"folder": str(folder), "files": rows, "next": next_steps}
    return Output(
        data, table(rows, "file", "outcome"), notes=[f"next: {step}" for step in next_steps]
    )


def _outcome(path: Path, text: str) -> str:
    if not path.exists():
        return "written"
    return "there" if path.read_bytes() == text.encode() else "replaced"
