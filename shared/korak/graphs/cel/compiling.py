"""cel-python's syntax tree to closures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from korak.errors import KorakError
from korak.graphs import patterns
from korak.graphs.cel.frame import Failure, Node
from korak.graphs.cel.functions import FUNCTIONS, METHODS
from korak.graphs.cel.macros import MACROS, Macro, as_bool
from korak.graphs.cel.nodes import as_key, connect, get, is_there, read
from korak.graphs.cel.operators import BY_RULE, check_number, negate
from korak.graphs.cel.parsing import Source, malformed
from korak.graphs.paths import ROOTS, Path

if TYPE_CHECKING:
    from lark import Token, Tree

    Syntax: TypeAlias = Tree[Token]

MAX_NESTING: Final = 64

_PLAIN = frozenset(
    {
        "expr",
        "conditionalor",
        "conditionaland",
        "relation",
        "addition",
        "multiplication",
        "unary",
        "member",
        "primary",
        "paren_expr",
    }
)
"""Rules that mean what their only child means."""


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled expression: its code, how many variables it needs, and the paths that it reads and tests by has()."""

    code: Node
    slots: int
    reads: tuple[Path, ...]
    tests: tuple[Path, ...]


def compile_source(source: Source) -> Program:
    """Raises Malformed("invalid_expression") for an unknown name or function, or too deep a nesting."""
    return _Compiler(source).run()


class _Compiler:
    """One compilation: the variables in scope, and what was seen so far."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._variables: dict[str, int] = {}
        self._slots = 0
        self._nesting = 0
        self._nodes = 0
        self._reads: dict[Path, None] = {}
        self._tests: dict[Path, None] = {}
        self._rules: dict[str, Callable[[Syntax], Node]] = {
            "expr": self._choice,
            "conditionalor": self._or,
            "conditionaland": self._and,
            "relation": self._binary,
            "addition": self._binary,
            "multiplication": self._binary,
            "unary": self._unary,
            "member_dot": self._member,
            "member_index": self._member,
            "member_dot_arg": self._method,
            "ident": self._member,
            "ident_arg": self._call,
            "literal": self._literal,
            "list_lit": self._list,
            "map_lit": self._map,
        }

    def run(self) -> Program:
        code = self._compile(self._source.tree)
        return Program(code, self._slots, tuple(self._reads), tuple(self._tests))

    def _compile(self, tree: Syntax) -> Node:
        tree = _strip(tree)
        rule = self._rules.get(tree.data)
        if rule is None:
            raise malformed(f"An expression may not hold a {tree.data.replace('_', ' ')} here.")
        self._nodes += 1
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise malformed(f"The expression is nested more than {MAX_NESTING} deep.")
        try:
            return rule(tree)
        finally:
            self._nesting -= 1

    def _choice(self, tree: Syntax) -> Node:
        test, then, otherwise = (self._compile(_tree(child)) for child in tree.children)
        return lambda frame: then(frame) if as_bool(test(frame)) else otherwise(frame)

    def _or(self, tree: Syntax) -> Node:
        return connect(self._operands(tree), decisive=True)

    def _and(self, tree: Syntax) -> Node:
        return connect(self._operands(tree), decisive=False)

    def _operands(self, tree: Syntax) -> tuple[Node, ...]:
        """The operands of a chain of one operator, so that a long chain isn't a deep one."""
        operands: list[Syntax] = []
        rest = tree
        while rest.data == tree.data and len(rest.children) == 2:
            operands.append(_tree(rest.children[1]))
            rest = _tree(rest.children[0])
        return tuple(self._compile(operand) for operand in (rest, *reversed(operands)))

    def _binary(self, tree: Syntax) -> Node:
        head, tail = _tree(tree.children[0]), _tree(tree.children[1])
        operator = BY_RULE[head.data]
        left, right = self._compile(_tree(head.children[0])), self._compile(tail)
        return lambda frame: operator(frame, left(frame), right(frame))

    def _unary(self, tree: Syntax) -> Node:
        sign, operand = _tree(tree.children[0]), self._compile(_tree(tree.children[1]))
        if sign.data == "unary_not":
            return lambda frame: not as_bool(operand(frame))
        return lambda frame: negate(operand(frame))

    def _member(self, tree: Syntax) -> Node:
        path = self._get_path(tree)
        if path is not None:
            self._reads[path] = None
            return read(path)
        if tree.data == "ident":
            return self._variable(str(tree.children[0]))
        target = self._compile(_tree(tree.children[0]))
        if tree.data == "member_dot":
            name = str(tree.children[1])
            return lambda frame: get(target(frame), name)
        index = self._compile(_tree(tree.children[1]))
        return lambda frame: get(target(frame), index(frame))

    def _variable(self, name: str) -> Node:
        slot = self._variables.get(name)
        if slot is None:
            raise malformed(f"{name} is no name that an expression knows: {', '.join(sorted(ROOTS))}.")
        return lambda frame: frame.slots[slot]

    def _get_path(self, tree: Syntax) -> Path | None:
        """The path that the syntax spells, where it is one from a root."""
        parts: list[str | int] = []
        tree = _strip(tree)
        while tree.data in ("member_dot", "member_index"):
            last = tree.children[1]
            part = str(last) if tree.data == "member_dot" else self._get_constant(_tree(last))
            if type(part) not in (str, int) or (type(part) is int and part < 0):
                return None
            parts.append(part)
            tree = _strip(_tree(tree.children[0]))
        name = str(tree.children[0]) if tree.data == "ident" else ""
        if name not in ROOTS or name in self._variables:
            return None
        return (name, *reversed(parts))

    def _get_constant(self, tree: Syntax) -> Any:
        tree = _strip(tree)
        return self._read_literal(_token(tree.children[0])) if tree.data == "literal" else None

    def _call(self, tree: Syntax) -> Node:
        name, arguments = str(tree.children[0]), _get_arguments(tree, 1)
        if name == "has":
            return self._has(arguments)
        if name == "dyn" and len(arguments) == 1:
            return self._compile(arguments[0])
        return self._apply(FUNCTIONS, name, arguments)

    def _method(self, tree: Syntax) -> Node:
        target, name, arguments = _tree(tree.children[0]), str(tree.children[1]), _get_arguments(tree, 2)
        if name in MACROS:
            return self._macro(name, target, arguments)
        return self._apply(METHODS, name, [target, *arguments])

    def _apply(self, known: dict[str, tuple[Callable[..., Any], int, int]], name: str, arguments: list[Syntax]) -> Node:
        function, least, most = known.get(name, (None, 0, 0))
        if function is None:
            raise malformed(f"There is no function {name}.")
        if not least <= len(arguments) <= most:
            raise malformed(f"{name} doesn't take {len(arguments)} arguments.")
        if name == "matches" and isinstance(pattern := self._get_constant(arguments[1]), str):
            patterns.compile_pattern(pattern)
        nodes = tuple(self._compile(argument) for argument in arguments)
        if len(nodes) == 1:
            only = nodes[0]
            return lambda frame: function(frame, only(frame))
        return lambda frame: function(frame, *(node(frame) for node in nodes))

    def _has(self, arguments: list[Syntax]) -> Node:
        tree = _strip(arguments[0]) if len(arguments) == 1 else None
        if tree is None or tree.data not in ("member_dot", "member_index"):
            raise malformed("has() takes one path, such as has(state.total).")
        path = self._get_path(tree)
        if path is not None:
            self._tests[path] = None
        member = self._compile(tree)
        return lambda frame: is_there(frame, member)

    def _macro(self, name: str, target: Syntax, arguments: list[Syntax]) -> Node:
        run, counts = MACROS[name]
        variable = _strip(arguments[0]) if len(arguments) in counts else None
        if variable is None or variable.data != "ident":
            raise malformed(f"{name} takes a variable and an expression, such as list.{name}(x, x > 1).")
        over = self._compile(target)
        slot = len(self._variables)
        self._slots = max(self._slots, slot + 1)
        outer, before = self._variables, self._nodes
        self._variables = {**outer, str(variable.children[0]): slot}
        if len(self._variables) == len(outer):
            raise malformed(f"The variable {variable.children[0]} is in use further out.")
        bodies = tuple(self._compile(argument) for argument in arguments[1:])
        self._variables = outer
        macro = Macro(over, slot, bodies, 1 + self._nodes - before)
        return lambda frame: run(macro, frame)

    def _literal(self, tree: Syntax) -> Node:
        value = self._read_literal(_token(tree.children[0]))
        return lambda frame: value

    def _read_literal(self, token: Token) -> Any:
        match token.type:
            case "STRING_LIT" | "MLSTRING_LIT":
                return self._source.literals[token.start_pos or 0]
            case "BOOL_LIT":
                return token == "true"
            case "NULL_LIT":
                return None
            case "INT_LIT" | "UINT_LIT" | "FLOAT_LIT":
                return _read_number(token)
        raise malformed("Bytes are no JSON.")

    def _list(self, tree: Syntax) -> Node:
        members = tuple(self._compile(member) for member in _get_arguments(tree, 0))
        return lambda frame: [member(frame) for member in members]

    def _map(self, tree: Syntax) -> Node:
        inits = [self._compile(_tree(child)) for child in _tree(tree.children[0]).children] if tree.children else []
        pairs = tuple(zip(inits[::2], inits[1::2], strict=True))
        return lambda frame: {as_key(key(frame)): value(frame) for key, value in pairs}


def _read_number(token: Token) -> float:
    text = token.rstrip("uU")
    try:
        if token.type == "FLOAT_LIT":
            return check_number(float(text))
        return check_number(int(text, 16 if "x" in text else 10))
    except (Failure, ValueError):
        raise malformed(f"The number {text[:40]} is out of range.") from None


def _strip(tree: Syntax) -> Syntax:
    while len(tree.children) == 1 and tree.data in _PLAIN:
        tree = _tree(tree.children[0])
    return tree


def _get_arguments(tree: Syntax, position: int) -> list[Syntax]:
    if len(tree.children) <= position:
        return []
    return [_tree(child) for child in _tree(tree.children[position]).children]


def _tree(child: Syntax | Token) -> Syntax:
    if isinstance(child, str):
        raise KorakError(message="the grammar of cel-python has changed")
    return child


def _token(child: Syntax | Token) -> Token:
    if not isinstance(child, str):
        raise KorakError(message="the grammar of cel-python has changed")
    return child
