"""Detection of secrets in configurations and texts.

Most secrets are recognized by the names of their variables, headers or flags, some by the formats
of well-known keys. A person decides about values that only look random.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

Span = tuple[int, int]

_WORDS = frozenset((
    "key", "apikey", "token", "secret", "password", "passwd", "passphrase", "pass", "pwd", "auth",
    "authorization", "bearer", "credential", "credentials", "cookie", "pat", "jwt", "signature",
))  # fmt: skip
_HARMLESS_ENDS = frozenset((
    "id", "path", "file", "dir", "folder", "name", "url", "uri", "host", "port", "type", "mode",
    "ttl",
))  # fmt: skip
_SETTING = re.compile(r"(?i)true|false|on|off|yes|no|none|null|[\d.]*")
_SPLIT = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])")
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token)\s+(\S+)")
_TOKEN_FORMATS = re.compile(
    r"\b(?:sk-[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|xox[a-z]-[\w-]{10,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|hf_\w{20,}|npm_\w{20,}"
    r"|ntn_\w{20,}|lin_api_\w{20,}|pypi-[\w-]{20,}|SG\.[\w-]{16,}\.[\w-]{16,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+)"
)
_IN_ADDRESS = re.compile(
    r"://[^/\s:@]*:([^/\s@]+)@"
    r"|[?&;][^=&;]*(?:key|token|secret|passw|auth|sig)[^=&;]*=([^&;\s#]+)",
    re.IGNORECASE,
)
_PAIR = re.compile(r"(?:--?)?([A-Za-z][\w.-]*)(?:=|:\s+)(.+)", re.DOTALL)
_FLAG = re.compile(r"--?([A-Za-z][\w-]*)")
_ASSIGNED = re.compile(r"([\w-]+)(\s*[:=]\s*|\s+is\s+)(\S+)")
HIDDEN = "[redacted]"
_RANDOM = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[\w+/=-]{24,}")


def sounds_secret(name: str) -> bool:
    """Return whether a variable, header or flag with this name usually contains a secret."""
    words = [word.lower() for word in _SPLIT.split(name) if word]
    return bool(_WORDS.intersection(words)) and words[-1] not in _HARMLESS_ENDS


def find_secret(name: str, value: str) -> Span | None:
    """Return the start and end of the secret in *value*, or None if it contains none.

    *name* is the name of the variable, header or flag. References are not secrets.
    """
    if "${" in value or value.startswith(("env:", "keyring:")):
        return None
    for pattern in (_TOKEN_FORMATS, _IN_ADDRESS):
        match = pattern.search(value)
        if match is not None:
            group = next((index for index in range(1, pattern.groups + 1) if match[index]), 0)
            return match.span(group)
    scheme = _SCHEME.fullmatch(value)
    if scheme is not None:
        return scheme.span(1)
    if sounds_secret(name) and not _SETTING.fullmatch(value):
        return (0, len(value))
    return None


def redact(text: str) -> str:
    """Return *text* with each recognized secret replaced by ``[redacted]``.

    Words that look random are replaced too, and so are words after a name such as *password* and
    ``:``, ``=`` or *is*.
    """

    def hide(match: re.Match[str]) -> str:
        group = next((index for index in range(1, match.re.groups + 1) if match[index]), 0)
        begin, end = (position - match.start() for position in match.span(group))
        return match[0][:begin] + HIDDEN + match[0][end:]

    def hide_assigned(match: re.Match[str]) -> str:
        return f"{match[1]}{match[2]}{HIDDEN}" if sounds_secret(match[1]) else match[0]

    text = _ASSIGNED.sub(hide_assigned, _IN_ADDRESS.sub(hide, _TOKEN_FORMATS.sub(hide, text)))
    return re.sub(r"\S+", lambda word: HIDDEN if looks_random(word[0]) else word[0], text)


def looks_random(value: str) -> bool:
    """Return whether *value* looks as random as a secret."""
    return "${" not in value and _RANDOM.fullmatch(value) is not None


def find_in_arguments(arguments: Sequence[str]) -> Iterator[tuple[int, str, Span]]:
    """Yield each secret in a command line: index of its argument, its name, and its span.

    Names come from ``--token X``, ``--token=X``, ``NAME=X`` and ``Header: X``.
    """
    flag = ""
    for position, text in enumerate(arguments):
        pair = _PAIR.fullmatch(text)
        span: Span | None = None
        name = flag
        if pair is not None and "://" not in pair[1]:
            inner = find_secret(pair[1], pair[2])
            name = pair[1]
            if inner is not None:
                span = (pair.start(2) + inner[0], pair.start(2) + inner[1])
        elif not text.startswith("-"):
            span = find_secret(flag, text)
        if span is not None:
            yield position, name, span
        flag_match = _FLAG.fullmatch(text)
        flag = flag_match[1] if flag_match is not None else ""
