"""Messages for users: errors, diagnostics and the texts of the command line.

`docs/messages.md` lists the messages of the code by room, and `test_messages.py` compares the two.
This command writes the page:

    python -m tests.messages
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, product
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "messages.md"
_HEAD = """# Messages

For reviewers: all messages of errors, diagnostics and commands, by room. `python -m tests.messages`
writes this page.
"""
_CLI = "gateway/cli/"
_BASES = ("gateway/errors.py", "graphs/errors.py")
"""Modules with the base classes of errors."""
_MIN_WORDS = 2
_MAX_PLACEHOLDER_CHARS = 30
_WORD = re.compile(r"[^\W\d_]{2,}")
_HEADING = re.compile(r"([\w @]+)=[\w.]+")
"""Pattern of a column for `gateway.cli.tables.table`: its heading (group 1) and its path."""
_STYLE = "bold "
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = Mapping[str, Sequence[ast.expr]]
"""Values of variables, keyed by name."""


@dataclass(frozen=True, order=True, slots=True)
class Message:
    """A text for users and its position."""

    room: str
    module: str
    line: int
    kind: str
    """Name of the error class, code of the diagnostic, or kind of text of the command line."""
    text: str
    """The text with its placeholders in braces."""


@dataclass(frozen=True, slots=True)
class _Module:
    path: str
    tree: ast.Module
    constants: _Scope


@dataclass(frozen=True, slots=True)
class _Helper:
    """A function that passes a parameter on as a message."""

    kind: str
    parameter: str
    index: int


@dataclass(slots=True)
class _Catalog:
    """Error classes and helper functions, collected before messages."""

    errors: set[str] = field(default_factory=set)
    helpers: dict[tuple[str, str], _Helper] = field(default_factory=dict)
    """Keyed by (path of the module, name of the function)."""


def _assignments(body: ast.AST) -> _Scope:
    """Return the values assigned to each name below *body*."""
    values: dict[str, list[ast.expr]] = defaultdict(list)
    for node in ast.walk(body):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr | ast.AugAssign):
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Name) and (value := getattr(node, "value", None)):
                values[target.id].append(value)
    return values


def _read_modules() -> list[_Module]:
    modules = []
    for folder in ("gateway", "graphs"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            constants = _assignments(ast.Module(_statements(tree), []))
            modules.append(_Module(file.relative_to(ROOT).as_posix(), tree, constants))
    return modules


def _statements(tree: ast.Module) -> list[ast.stmt]:
    return [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]


def _error_classes(modules: Iterable[_Module]) -> set[str]:
    classes = {
        node.name: {base.id for base in node.bases if isinstance(base, ast.Name)}
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    }
    names = {
        node.name
        for module in modules
        if module.path in _BASES
        for node in module.tree.body
        if isinstance(node, ast.ClassDef) and node.name.endswith("Error")
    }
    while more := {name for name, bases in classes.items() if bases & names} - names:
        names |= more
    return names


def _placeholder(value: ast.FormattedValue) -> str:
    text = ast.unparse(value.value)
    text = f"{{{text}}}" if len(text) <= _MAX_PLACEHOLDER_CHARS and "{" not in text else "{…}"
    return f"'{text}'" if value.conversion == ord("r") else text


def _templates(node: ast.expr, scopes: tuple[_Scope, ...]) -> Iterator[str]:
    """Yield the possible texts of an expression, with placeholders."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(map(_part, parts))
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            for first, last in product(*(_texts(side, scopes) for side in (left, right))):
                yield first + last
        case ast.Name(id=name):
            yield from _assigned_texts(name, scopes)
        case _:
            for part in _alternatives(node):
                yield from _templates(part, scopes)


def _texts(node: ast.expr, scopes: tuple[_Scope, ...]) -> list[str]:
    return list(_templates(node, scopes)) or ["{…}"]


def _alternatives(node: ast.expr) -> list[ast.expr]:
    """Return the alternative expressions of *node*."""
    match node:
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case ast.BoolOp(values=values):
            return values
        case ast.Call(func=ast.Attribute(value=template, attr="format")):
            return [template]
    return []


def _assigned_texts(name: str, scopes: tuple[_Scope, ...]) -> Iterator[str]:
    """Yield the texts of a variable in its innermost scope."""
    for position, scope in enumerate(scopes):
        if name in scope:
            for value in scope[name]:
                # Only outer scopes, so that the search ends.
                yield from _templates(value, scopes[position + 1 :])
            return


def _part(node: ast.expr) -> str:
    return _placeholder(node) if isinstance(node, ast.FormattedValue) else str(_constant(node))


def _constant(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else ""


def _is_message(text: str) -> bool:
    plain = _PLACEHOLDER.sub("", text).strip()
    return len(_WORD.findall(plain)) >= _MIN_WORDS and " " in plain


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Name):
        return call.func.id
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((item.value for item in call.keywords if item.arg == name), None)


class _Visitor(ast.NodeVisitor):
    """Collects the messages and helper functions of one module."""

    def __init__(self, module: _Module, catalog: _Catalog) -> None:
        self._module = module
        self._catalog = catalog
        self._functions: list[_Function] = []
        self._classes: list[str] = []
        self.messages: set[tuple[int, str, str]] = set()
        """(line, kind, text) of each message."""
        self.helpers: dict[tuple[str, str], _Helper] = {}
        self._imports = {
            alias.asname or alias.name: f"{node.module.replace('.', '/')}.py"
            for node in ast.walk(module.tree)
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        }

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._classes.append(node.name)
        self.generic_visit(node)
        self._classes.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_function(node)

    def _visit_function(self, node: _Function) -> None:
        self._functions.append(node)
        self.generic_visit(node)
        self._functions.pop()

    def visit_Call(self, node: ast.Call) -> None:
        for kind, argument in self._messages_of(node):
            self._collect(node.lineno, kind, argument)
        self.generic_visit(node)

    def _messages_of(self, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
        name = _called(call)
        if name in self._catalog.errors:
            yield from ((name, argument) for argument in _arguments(call))
        elif name == "__init__" and self._classes and self._classes[-1] in self._catalog.errors:
            yield from ((self._classes[-1], argument) for argument in _arguments(call))
        elif name == "Diagnostic":
            code = _keyword(call, "code")
            detail = _keyword(call, "detail")
            if detail is not None:
                yield f"diagnostic {_constant(code)}" if code else "diagnostic", detail
        elif helper := self._helper(call, name):
            values = [_keyword(call, helper.parameter), *call.args[helper.index :][:1]]
            yield from ((helper.kind, value) for value in values if value is not None)

    def _helper(self, call: ast.Call, name: str) -> _Helper | None:
        home = self._module.path
        if isinstance(call.func, ast.Name):
            home = self._imports.get(name, home)
        return self._catalog.helpers.get((home, name))

    def _collect(self, line: int, kind: str, argument: ast.expr) -> None:
        scopes = tuple(_assignments(function) for function in reversed(self._functions))
        for text in _templates(argument, (*scopes, self._module.constants)):
            if _is_message(text):
                self.messages.add((line, kind.strip(), " ".join(text.split())))
        self._note_helper(kind, argument)

    def _note_helper(self, kind: str, argument: ast.expr) -> None:
        if not self._functions:
            return
        function = self._functions[-1]
        parameters = [item.arg for item in (*function.args.posonlyargs, *function.args.args)]
        is_method = parameters[:1] in (["self"], ["cls"])
        for node in ast.walk(argument):
            # A formatted object is part of another message.
            if isinstance(node, ast.Name) and node.id in {"detail", "message", "reason", "text"}:
                names = [*parameters, *(item.arg for item in function.args.kwonlyargs)]
                if node.id in names:
                    index = parameters.index(node.id) if node.id in parameters else len(names)
                    helper = _Helper(kind, node.id, index - is_method)
                    self.helpers[self._module.path, function.name] = helper


def _help_texts(module: _Module) -> Iterator[tuple[int, str, str]]:
    """Yield (line, kind, text) of commands, options and outputs of a module."""
    skipped: set[int] = set()
    for node in ast.walk(module.tree):
        match node:
            case ast.Expr(value=ast.Constant()):
                skipped.add(id(node.value))
            case ast.JoinedStr():
                skipped |= {id(part) for part in ast.walk(node)} - {id(node)}
            case ast.FunctionDef() if _is_command(node):
                yield node.lineno, "command help", ast.get_docstring(node) or ""
            case ast.Subscript(value=ast.Name(id="Annotated")):
                skipped |= {id(part) for part in ast.walk(node.slice)}
                yield from _option_texts(node.slice)
    for node in ast.walk(module.tree):
        if id(node) not in skipped and isinstance(node, ast.Constant | ast.JoinedStr):
            yield from _output_texts(node)


def _option_texts(annotation: ast.expr) -> Iterator[tuple[int, str, str]]:
    for part in ast.walk(annotation):
        text = _constant(part) if isinstance(part, ast.expr) else None
        if isinstance(part, ast.Constant) and isinstance(text, str) and _is_message(text):
            yield part.lineno, "option help", text


def _output_texts(node: ast.Constant | ast.JoinedStr) -> Iterator[tuple[int, str, str]]:
    for text in filter(_is_message, _templates(node, ())):
        if heading := _HEADING.fullmatch(text):
            yield node.lineno, "table heading", heading[1]
        elif not text.startswith(_STYLE):
            yield node.lineno, "output", text


def _is_command(function: ast.FunctionDef) -> bool:
    decorators = (item.func for item in function.decorator_list if isinstance(item, ast.Call))
    return any(isinstance(item, ast.Name) and item.id == "command" for item in decorators)


def _room(path: str) -> str:
    parts = path.split("/")[:-1]
    return "/".join(parts[: 3 if parts[:2] == ["gateway", "plugins"] else 2])


def collect_messages() -> list[Message]:
    """Return all messages, sorted by room, module and line."""
    modules = _read_modules()
    catalog = _Catalog(_error_classes(modules))
    visitors: list[tuple[_Module, _Visitor]] = []
    size = -1
    while size < len(catalog.helpers):
        # Repeated, because helpers may call each other.
        size = len(catalog.helpers)
        visitors = [(module, _Visitor(module, catalog)) for module in modules]
        for module, visitor in visitors:
            visitor.visit(module.tree)
            catalog.helpers |= visitor.helpers
    messages = []
    for module, visitor in visitors:
        items = set(visitor.messages)
        if module.path.startswith(_CLI):
            collected_texts = {text for _, _, text in items}
            helps = (
                (line, kind, " ".join(text.split())) for line, kind, text in _help_texts(module)
            )
            items |= {item for item in helps if item[2] and item[2] not in collected_texts}
        messages += [Message(_room(module.path), module.path, *item) for item in items]
    return sorted(messages)


def render() -> str:
    parts = [_HEAD]
    for room, messages in groupby(collect_messages(), key=lambda message: message.room):
        lines = []
        for module, items in groupby(messages, key=lambda message: message.module):
            texts = dict.fromkeys((item.kind, item.text) for item in items)
            lines += [f"\n{module}", *(f"  {kind}: {text}" for kind, text in texts)]
        body = "\n".join(lines).strip()
        parts.append(f"## `{room}`\n\n```text\n{body}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
