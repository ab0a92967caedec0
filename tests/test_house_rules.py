"""The rules of the house, checked by program on every file.

Who imports whom, how kernels are made, what is written where.
"""

from __future__ import annotations

import ast
import gc
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("scantree", "sensitivity", "lftj", "spark_bridge")  # each may import itself and those to its left
KERNEL_DECORATORS = {"kernel", "inlined", "shared"}  # both of scantree/_jit.py
MAX_LINES = 600


def files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@cache
def nodes(path: Path) -> list[ast.AST]:
    """All of a file, which a dozen tests look through. Kept for good, they are nothing for the collector to look at."""
    found = list(ast.walk(tree(path)))
    gc.freeze()
    return found


def imported_roots(path: Path) -> Iterator[tuple[str, int]]:
    """Top-level names of everything a file imports, wherever in it, with the line."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.split(".")[0], node.lineno
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield relative(path).split("/")[0], node.lineno
            elif node.module:
                yield node.module.split(".")[0], node.lineno
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
            yield ast.unparse(node.args[0]).strip("'\"").split(".")[0], node.lineno


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def decorators(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    names = set()
    for node in function.decorator_list:
        target = node.func if isinstance(node, ast.Call) else node
        names.add(ast.unparse(target).split(".")[-1])
    return names


def is_kernel(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return bool(decorators(function) & KERNEL_DECORATORS)


PRODUCT = files(*PACKAGES)
EVERYTHING = [*PRODUCT, *files("bench", "examples", "tests")]


def test_the_checks_see_the_project() -> None:
    assert {relative(path).split("/")[0] for path in PRODUCT} == set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_point_one_way(package: str) -> None:
    forbidden = {*PACKAGES[PACKAGES.index(package) + 1 :], "tests", "bench"}
    wrong = [
        f"{relative(path)}:{line} imports {name}"
        for path in files(package)
        for name, line in imported_roots(path)
        if name in forbidden
    ]
    assert wrong == []


# The rooms of lftj/, from the ground up: each may import those before it, lazily and for types as well.
ROOMS = (
    ("errors.py", "progress.py", "arguments.py", "html.py"),
    ("values",),
    ("language",),
    ("join",),
    ("plan",),
    ("store",),
    ("program",),
    ("evaluate",),
    ("recursion",),
    ("paths",),
    ("triggers",),
    ("maintain",),
    ("explain",),
    ("io",),
    ("results",),
    ("streams", "durable"),
    ("sql",),
    ("transaction.py", "snapshot.py", "database.py"),
    ("__init__.py",),
    ("demo",),
    ("cli",),
    ("__main__.py",),
)


def room_of(module: str) -> str:
    """The entry of `lftj/` that holds the dotted `module`."""
    parts = module.split(".")
    if len(parts) == 1:
        return "__init__.py"
    if (ROOT / "lftj" / f"{parts[1]}.py").exists():
        return f"{parts[1]}.py"
    return parts[1] if (ROOT / "lftj" / parts[1]).is_dir() else "__init__.py"


def imports_of(path: Path) -> Iterator[tuple[str, int]]:
    """The modules of lftj that a file imports, wherever in it, with the line."""
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "lftj":
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno
        elif isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names if alias.name.split(".")[0] == "lftj")


def test_every_part_of_lftj_is_a_room() -> None:
    named = {name for floor in ROOMS for name in floor}
    there = {path.name for path in (ROOT / "lftj").iterdir() if path.name not in ("__pycache__", "py.typed")}
    assert there == named


def test_the_picture_shows_every_room() -> None:
    picture = (ROOT / "docs" / "rooms.svg").read_text(encoding="utf-8")
    rooms = {name for floor in ROOMS for name in floor if not name.startswith("__")}
    assert {room for room in rooms if f">{room}</text>" not in picture} == set()


def test_rooms_import_one_way() -> None:
    floors = {name: floor for floor, names in enumerate(ROOMS) for name in names}
    wrong = []
    for path in files("lftj"):
        own = path.relative_to(ROOT / "lftj").parts[0]
        for module, line in imports_of(path):
            other = room_of(module)
            if other != own and floors[other] > floors[own]:
                wrong.append(f"{relative(path)}:{line} imports {module}")
    assert wrong == []


def test_no_files_import_each_other_in_a_circle() -> None:
    """Lazy imports count; what is imported for its type alone does not."""
    paths = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in PRODUCT}

    def imported(node: ast.AST) -> Iterator[str]:
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.If) and ast.unparse(part.test) == "TYPE_CHECKING":
                continue
            if isinstance(part, ast.ImportFrom):
                yield from (f"{part.module}.{alias.name}" for alias in part.names)
                yield str(part.module)
            elif isinstance(part, ast.Import):
                yield from (alias.name for alias in part.names)
            yield from imported(part)

    read = {name: paths.keys() & set(imported(tree(path))) - {name} for name, path in paths.items()}
    assert sum(map(len, read.values())) > 1000
    TopologicalSorter(read).prepare()  # raises `CycleError`, which names the files


def test_bench_does_not_import_tests() -> None:
    wrong = [
        f"{relative(path)}:{line}" for path in files("bench") for name, line in imported_roots(path) if name == "tests"
    ]
    assert wrong == []


def test_kernels_are_made_in_one_way() -> None:
    """Only scantree/_jit.py talks to numba's compiler; everything else uses the decorators it offers."""
    compilers = {"njit", "jit", "vectorize", "guvectorize", "jitclass", "cfunc", "generated_jit", "stencil"}
    wrong = []
    for path in PRODUCT:
        if relative(path) == "scantree/_jit.py":
            continue
        for node in nodes(path):
            name = (
                node.attr
                if isinstance(node, ast.Attribute)
                else node.id
                if isinstance(node, ast.Name)
                else node.name.split(".")[-1]
                if isinstance(node, ast.alias)
                else ""
            )
            if name in compilers:
                wrong.append(f"{relative(path)}:{getattr(node, 'lineno', '?')} uses {name}")
    assert wrong == []


def test_kernels_are_documented() -> None:
    wrong = [
        f"{relative(path)}:{function.lineno} {function.name}"
        for path in PRODUCT
        for function in functions(path)
        if is_kernel(function) and not ast.get_docstring(function)
    ]
    assert wrong == []


def test_kernels_count_from_the_front() -> None:
    """An index below 0 is before an array (scantree/_lowering.py); of a tuple, as `shape` is, it is the last one."""
    wrong = []
    for path in PRODUCT:
        for node in (node for function in functions(path) if is_kernel(function) for node in ast.walk(function)):
            if not isinstance(node, ast.Subscript) or ast.unparse(node.value).endswith(".shape"):
                continue
            indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if any(isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub) for index in indices):
                wrong.append(f"{relative(path)}:{node.lineno} {ast.unparse(node)}")
    assert wrong == []


def test_all_but_kernels_is_annotated() -> None:
    """mypy is lenient in files with kernels (their types are dtypes and shapes); this is not."""
    wrong = []
    for path in PRODUCT:
        kernels = {node for function in functions(path) if is_kernel(function) for node in ast.walk(function)}
        for function in functions(path):
            if function in kernels:
                continue
            a = function.args
            named = [x for x in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if x is not None]
            bare = [x.arg for x in named if x.annotation is None and x.arg not in ("self", "cls")]
            if bare or function.returns is None:
                wrong.append(f"{relative(path)}:{function.lineno} {function.name} {bare}")
    assert wrong == []


def test_modules_open_with_a_docstring() -> None:
    wrong = [relative(path) for path in EVERYTHING if tree(path).body and not ast.get_docstring(tree(path))]
    assert wrong == []


def test_nothing_prints_but_the_command_line() -> None:
    wrong = [
        f"{relative(path)}:{node.lineno}"
        for path in PRODUCT
        if not relative(path).startswith(("lftj/cli/", "lftj/cli.py", "lftj/demo/"))
        for node in nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert wrong == []


TOP_LEVEL = {
    *("pyproject.toml", "README.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "mkdocs.yml", ".gitignore", ".ci"),
    *("scantree", "sensitivity", "lftj", "spark_bridge", "docs", "examples", "tests", "bench"),
}


def test_the_top_level_holds_nothing_else() -> None:
    """The output of a run was committed."""
    listed = subprocess.run(["git", "ls-files", "--error-unmatch", "."], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("needs a checkout of git")
    assert {path.split("/")[0] for path in listed.stdout.splitlines()} <= TOP_LEVEL


def test_no_bare_except() -> None:
    wrong = [
        f"{relative(path)}:{node.lineno}"
        for path in EVERYTHING
        for node in nodes(path)
        if isinstance(node, ast.ExceptHandler) and node.type is None
    ]
    assert wrong == []


def test_files_stay_readable() -> None:
    lengths = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in EVERYTHING}
    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}


def test_files_are_named_after_what_they_hold() -> None:
    vague = ("utils", "helpers", "misc", "common")
    assert [relative(path) for path in EVERYTHING if any(word in path.stem for word in vague)] == []


# Names that stand more than once in the packages. Nothing may be added; what is renamed is taken out.
SHARED_FILES = {"delta.py", "scan.py"}
SHARED_CLASSES = {"Condition", "Delta", "Relation", "Scan", "Staged", "Trace"}
# Nodes of the syntax tree, which are always written `ast.Rule`.
SYNTAX = "lftj/language/ast.py"


def repeated(places: Iterator[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, place in places:
        found.setdefault(name, []).append(place)
    return {name: where for name, where in found.items() if len(where) > 1}


def test_no_two_files_have_one_name() -> None:
    found = repeated((path.name, relative(path)) for path in PRODUCT if not path.name.startswith("__"))
    assert {name: where for name, where in found.items() if name not in SHARED_FILES} == {}
    assert set(found) == SHARED_FILES


def test_no_two_classes_have_one_name() -> None:
    classes = (
        (node.name, f"{relative(path)}:{node.lineno}")
        for path in PRODUCT
        if relative(path) != SYNTAX
        for node in nodes(path)
        if isinstance(node, ast.ClassDef)
    )
    found = repeated(classes)
    assert {name: where for name, where in found.items() if name not in SHARED_CLASSES} == {}
    assert set(found) == SHARED_CLASSES


# A file as prose names it: `retraction.py`, `lftj/join/trie.py`, `docs/rules.md`; not `FILE.py` of a usage.
NAMED = re.compile(r"(?<![\w./$<*-])((?:[\w.-]+/)*)((?:[a-z][\w-]*\.(?:py|md|txt)|[A-Z]+\.md))\b(?![.(*])")


def prose(path: Path, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """The lines of the docstrings and comments of a file in which the pattern is found."""
    for node in nodes(path):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node, clean=False
        ):
            text = node.body[0]
            assert isinstance(text, ast.Expr)
            assert isinstance(text.value, ast.Constant)
            lines = enumerate(str(text.value.value).splitlines(), text.lineno)
            yield from ((number, line) for number, line in lines if pattern.search(line))
    source = path.read_text(encoding="utf-8")
    # Tokens take long; there is a comment with it only if it is behind some `#`.
    if not any(pattern.search(line, line.index("#")) for line in source.splitlines() if "#" in line):
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and pattern.search(token.string):
            yield token.start[0], token.string


@cache
def names_of_files() -> set[str]:
    """Of a checkout: files that were made since are not looked at."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "lftj").rglob("*.md")]
    return {path.name for path in (*EVERYTHING, *pages)}


def missing(folder: str, name: str, path: Path) -> bool:
    """Whether what prose in `path` names is nowhere; data beside the checkout is allowed to be elsewhere."""
    if folder.startswith("../shared/data"):
        return False
    if folder:
        return not any((base / folder / name).exists() for base in (ROOT, ROOT / "lftj", path.parent))
    return name not in names_of_files()


def test_files_that_are_named_in_words_are_there() -> None:
    """Docstrings named files that had been renamed, or never shipped, and whoever followed them found nothing."""
    wrong = [
        f"{relative(path)}:{number} names {folder}{name}"
        for path in EVERYTHING
        for number, line in prose(path, NAMED)
        for folder, name in NAMED.findall(line)
        if missing(folder, name, path)
    ]
    assert wrong == []


def test_prose_cites_nothing_that_readers_lack() -> None:
    """A section of a design that does not ship says nothing to who reads the code."""
    unseen = re.compile(r"\bdesign,? section|\bspec/", re.IGNORECASE)
    wrong = [f"{relative(path)}:{number}" for path in EVERYTHING for number, _ in prose(path, unseen)]
    assert [where for where in wrong if not where.startswith("tests/test_house_rules.py")] == []


def imported_by(statement: str) -> set[str]:
    """Top-level modules loaded in a fresh interpreter after `statement`."""
    code = f"import sys\n{statement}\nsys.stdout.write(' '.join({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_lftj_is_light() -> None:
    heavy = {"numba", "llvmlite", "pyarrow", "pandas", "polars", "lark", "rich", "typer"}
    assert imported_by("import lftj") & heavy == set()


def test_import_lftj_compiles_nothing() -> None:
    assert "scantree" not in imported_by("import lftj")


def words_of(path: Path) -> tuple[set[str], set[str]]:
    """(the names that a file reads or its texts speak of, those that it imports or asks modules for)."""
    inside, elsewhere = set[str](), set[str]()
    for node in nodes(path):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            inside.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            inside.update(re.findall(r"\w+", node.value))
        elif isinstance(node, ast.Attribute):
            elsewhere.add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            elsewhere.update(alias.name for alias in node.names)
    return inside, elsewhere


def test_module_level_names_are_read() -> None:
    """But for enumerations, which have all their values."""
    words = {path: words_of(path) for path in EVERYTHING}
    asked_for = set[str]().union(*(elsewhere for _, elsewhere in words.values()))
    unread = []
    for path in PRODUCT:
        for node in tree(path).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
            names = {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
            if isinstance(node, ast.Assign | ast.AnnAssign) and len(names) <= 3:
                unread += [f"{relative(path)}: {name}" for name in names - words[path][0] - asked_for]
    assert not [name for name in unread if "__" not in name]
