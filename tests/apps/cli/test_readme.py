"""Commands of the README and of `docs/cli.md`, run in order in a clean folder."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from gateway.cli.app import COMMANDS, load_command
from tests.apps.cli.running import BIN, Place

ROOT = Path(__file__).parents[3]
_CARD = (ROOT / "docs" / "cli.md").read_text("utf-8")
_PAGES = (ROOT / "README.md").read_text("utf-8") + _CARD
_ELSEWHERE = ("demo ", "console ", "serve ", "login NAME ", "graph propose ")
"""Documented commands that are not run here, because they do not end, or need a person or a model;
other tests run them."""
_CODES = {"usage export --out graph/": 1, "usage show": 1, "usage report": 1, "tune asked.jsonl": 1}
"""Exit codes of commands without data: no call was made, and there are too few requests."""
_PLAN = "provision crawl a web site"
"""Command that is refused with exit code 1 if the machine's installers lead to a server with a
key."""
_FOUND = {
    "search what time is it in Kyiv --explain": "get_current_time",
    "search котра година --normalize gpt-5.4-mini": "get_current_time",
    "search a week in Rome --kind agent": "planner",
    "search what time is it --graph graph/": "get_current_time",
    "discover work with time zones": "convert_time",
    "graph find time zones": "convert_time",
    "tools": "get_current_time",
    "doctor": "server time",
    _PLAN: "name in mcp.json",
}
"""Texts that the outputs of commands must contain, keyed by command."""


def _commands() -> Iterator[list[str]]:
    for block in re.findall(r"```sh\n(.*?)```", _PAGES, re.DOTALL):
        for line in block.splitlines():
            for part in re.split(r"&&|;", re.sub(r"\s+#.*", "", line)):
                words = shlex.split(part)
                if words and words[0] == "gateway":
                    yield words[1:]


def test_documented_commands_succeed(place: Place) -> None:
    card = {"name": "planner", "description": "A week in Rome.", "url": "https://a.example"}
    place.put("agents/planner.json", {**card, "version": "1", "skills": []})
    place.put("skills/report/SKILL.md", "---\nname: report\ndescription: Reports.\n---\nText.\n")
    place.put(".claude.json", {"mcpServers": {"other": {"command": "mcp-server-time"}}})
    home = str(place.folder)
    env = {
        "PATH": str(BIN),
        "HOME": home,
        "XDG_CONFIG_HOME": f"{home}/.config",
        "XDG_DATA_HOME": f"{home}/.data",
        # The address does not answer, so the query is not rewritten.
        "GATEWAY_NORMALIZE_BASE_URL": "http://127.0.0.1:9/v1",
        "GATEWAY_NORMALIZE_API_KEY": "none",
    }
    ended: dict[str, tuple[int, bool]] = {}
    with contextlib.chdir(place.folder):
        for words in _commands():
            command = " ".join(words)
            if command not in ended and not f"{command} ".startswith(_ELSEWHERE):
                ran = place.run(*words, env=env)
                ended[command] = ran.code, _FOUND.get(command, "") in ran.out

    assert len(ended) > 20
    assert ended.pop(_PLAN) in {(0, True), (1, True)}
    assert {item: (_CODES.get(item, 0), True) for item in ended} == ended
    assert _FOUND.keys() | _CODES.keys() <= ended.keys() | {_PLAN}


def test_cli_page_lists_every_command_with_existing_options() -> None:
    listed: set[str] = set()
    for usage, others in re.findall(r"^\| `gateway ([a-z][^`]*)`(.*)$", _CARD, re.MULTILINE):
        name = usage.split()[0]
        group = load_command(name)
        commands = getattr(group, "commands", {"": group})
        named = {word for word in re.findall(r"[a-z]+", f"{usage} {others}") if word in commands}
        options = {
            option
            for command in (commands[word] for word in named or {""})
            for parameter in command.params
            for option in (*parameter.opts, *parameter.secondary_opts)
        }
        listed |= {f"{name} {word}".strip() for word in named or {""}}
        assert set(re.findall(r"`(--[a-z][a-z-]*)", others)) <= options, usage

    assert listed == {
        f"{name} {word}".strip()
        for name in COMMANDS
        for word in getattr(load_command(name), "commands", {"": None})
    }
