"""Graph documents as the output of a command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import graphs
from gateway.cli.command import Output
from gateway.cli.exit_codes import OK
from gateway.errors import ConfigError


def document_output(
    documents: Sequence[graphs.Document],
    folder: Path | None,
    *,
    force: bool,
    code: int = OK,
    more: Mapping[str, object] | None = None,
) -> Output:
    """Return documents as a bundle that ``--graph`` reads, and as text.

    Args:
        documents: The documents.
        folder: Where they are written instead of being printed, if anywhere.
        force: Overwrite files that are there.
        code: The exit code.
        more: Further members of the bundle.

    Raises:
        ConfigError: A file exists and *force* is not given, or the folder cannot be written.
    """
    texts = [{"path": item.path, "content": graphs.render(item)} for item in documents]
    data = {"version": 1, "documents": texts, **(more or {})}
    if folder is None:
        shown = "\n".join(f"<!-- {item['path']} -->\n{item['content']}" for item in texts)
        return Output(data, shown, found=documents, code=code)
    try:
        existing = [item.path for item in documents if (folder / item.path).exists()]
        if existing and not force:
            raise ConfigError(
                f"{str(folder / existing[0])!r} is there already; nothing was written: name "
                "another folder, or overwrite with --force"
            )
        graphs.write(documents, folder)
    except OSError as error:
        raise ConfigError(f"cannot write to {str(folder)!r}: {error.strerror}") from error
    remark = f"{len(documents)} documents written to {folder}: read them, then --graph {folder}"
    return Output(data, "", found=documents, code=code, notes=(remark,))
