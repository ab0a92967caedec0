r"""Directives, carried out: `.input`, `.output` and `.printsize` read and write the files they name, as Souffle does.

    .input edge                            <facts>/edge.facts -> the facts of `edge`
    .output tri(filename="t.csv")          `tri`, evaluated   -> <output>/t.csv
    .printsize tri                         stdout: tri\t1612010

What a directive says is read and checked with the program (`lftj.language.directives`); here it meets the files. The
facts of all `.input`s are loaded or, if one fails, none; all relations to be written are evaluated before the first
file is touched, and a file appears whole or not at all. An error names the directive's place in the program and the
file.

To stdout (`IO=stdout`, or everything with the output folder "-") a relation goes in Souffle's layout, and with "-" its
columns are named:

    ---------------
    tri
    x	y	z
    ===============
    1	2	3
    ===============

Beyond Souffle: a file with more columns than the relation needs `columns=` (Souffle drops the rest), or with
`headers=true` a header that holds the declared names, by which columns are matched in any order and others passed over
with a note; Parquet, Arrow and Zstandard files are recognised by their extensions.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lftj import arguments
from lftj.errors import DataError, Diagnostic
from lftj.io import find_files
from lftj.io.file import File, MissingFileError
from lftj.io.formats import TEXT, Format, format_of
from lftj.io.rejects import Rejects
from lftj.io.write import UnwritableFileError, check_can_be_written, check_name, write
from lftj.language.clause import Directive
from lftj.language.directives import ANOTHER_FILE, WHY_ONE

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import numpy as np
    from numpy.typing import NDArray

    from lftj.store.stored import StoredRelation
    from lftj.values.schema import Schema
    from lftj.values.symbols import SymbolTable

STDOUT = "-"
_GZIP = b"\x1f\x8b"
_PROGRAM_WORDS = (
    ("header=True", "headers=true"),
    ("header=False", "headers=false"),
    ("quoting=False", "rfc4180=false"),
    ("rfc4180=True", "rfc4180=true"),
)


class DirectiveError(DataError):
    """A directive could not be carried out. `directive` says which; `__cause__` is what the file or its rows raised."""

    def __init__(self, directive: Directive, what: str, *, why: str, remedy: str) -> None:
        self.directive = directive
        super().__init__(what, where=str(directive.span), why=why, remedy=remedy)

    def render(self) -> str:
        """The message, with the directive's source line."""
        return Diagnostic(self.what, self.directive.span, why=self.why, remedy=self.remedy).render()


class Written(Protocol):
    """What directives write: a `Relation`."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def columns(self) -> dict[str, str]:
        """Its columns by name."""

    def __len__(self) -> int: ...

    def _held(self) -> tuple[Schema, Sequence[NDArray[np.int64]], SymbolTable, int]: ...


class Target(Protocol):
    """What directives read into and write from: a `Database`."""

    @property
    def directives(self) -> tuple[Directive, ...]:
        """The directives of all programs."""

    @property
    def rejects(self) -> dict[str, Rejects | None]:
        """Per relation, the rows that its last load put into quarantine."""

    @property
    def load(self) -> Callable[..., Rejects | None]:
        """Add the rows of a source to the facts of a relation."""

    def evaluate(self, *names: str) -> None:
        """Bring relations up to date."""

    def __getitem__(self, name: str) -> Written: ...

    def _stored(self, name: str) -> StoredRelation: ...

    def _restoring(self) -> AbstractContextManager[None]: ...


# --- input ------------------------------------------------------------------------------------------------------------


def input_path(directive: Directive, directory: str | os.PathLike[str]) -> Path | None:
    """The file (or glob) that an `.input` reads; None for stdin."""
    return None if directive.io == "stdin" else arguments.folder(directory) / arguments.file_name(directive.filename)


def read_inputs(
    db: Target,
    directory: str | os.PathLike[str] = ".",
    *,
    on_error: str = "raise",
    skip: Collection[Directive] = (),
) -> dict[str, Rejects]:
    """Load what the `.input` directives of `db` name, but for those in `skip`: all of it or nothing.

    Returns the bad rows by relation; there are none unless `on_error="quarantine"`. The folder must be there even if
    nothing is read from it: a program without `.input` and a wrong folder would otherwise look like a success.
    """
    folder = arguments.folder(directory)
    if not folder.is_dir():
        raise MissingFileError(
            "there is no such folder to read facts from",
            where=str(folder),
            why="the files of `.input` directives are read from it; nothing was loaded",
            remedy="name the folder that holds the files of the `.input` directives",
        )
    wanted = [d for d in db.directives if d.kind == "input" and d not in skip]
    _check_one_reader(wanted)
    bad: dict[str, Rejects] = {}
    with db._restoring():
        for directive in wanted:
            rejects = _read(db, directive, folder, on_error)
            for reject in rejects or ():
                bad.setdefault(directive.relation, Rejects()).append(reject)
    for name, rejects in bad.items():
        db.rejects[name] = rejects
    return bad


def _check_one_reader(directives: list[Directive]) -> None:
    readers = [d for d in directives if d.io == "stdin"]
    if len(readers) > 1:
        raise DirectiveError(
            readers[1],
            f"`{readers[1].relation}` and `{readers[0].relation}` are both to be read from stdin",
            why="stdin can be read once; the second would find nothing",
            remedy="read one of them from a file",
        )


def _read(db: Target, directive: Directive, directory: Path, on_error: str) -> Rejects | None:
    names = db._stored(directive.relation).given.names
    columns = None if directive.columns is None else dict(zip(names, directive.columns, strict=True))
    given = dict(directive.options)
    binary = directive.io == "file" and _without_text(Path(directive.filename)) is not None
    with _as_directive_error(directive, "read"):
        source = _source(directive, directory, None if binary and "delimiter" not in given else directive.delimiter)
        return db.load(
            directive.relation,
            source,
            columns=columns,
            header=None if binary and "headers" not in given else directive.headers,
            quoting=None if binary and "rfc4180" not in given else directive.rfc4180,
            on_error=on_error,
        )


def _without_text(path: Path) -> Format | None:
    """The format that a name tells, if that says itself what its columns are; every other name is one of text."""
    kind = format_of(path).format
    return None if kind is None or kind.text else kind


def _source(directive: Directive, directory: Path, delimiter: str | None) -> list[File]:
    path = input_path(directive, directory)
    if path is not None:
        return [_as_gzip_if_it_is(file) for file in find_files.find(path, delimiter)]
    assert delimiter is not None, "stdin is text"
    content = b"" if sys.stdin is None else sys.stdin.buffer.read()  # closed, it has no rows
    return [_as_gzip_if_it_is(File(Path("<stdin>"), TEXT, delimiter, None, content))]


def _as_gzip_if_it_is(file: File) -> File:
    """Souffle tells gzip by its first bytes, whatever the name."""
    if file.format != TEXT or file.compression:
        return file
    with file.reading(), file.open() as stream:
        return replace(file, compression="gzip") if stream.read(len(_GZIP)) == _GZIP else file


# --- output -----------------------------------------------------------------------------------------------------------


def write_outputs(db: Target, directory: str | os.PathLike[str] = ".") -> None:
    """Evaluate and write what the `.output` and `.printsize` directives of `db` name, in their order.

    The folder is made if it is missing (its parent must exist), even if nothing is to be written; "-" is stdout.
    """
    folder = arguments.folder(directory)
    everything_to_stdout = os.fspath(directory) == STDOUT
    wanted = [d for d in db.directives if d.kind != "input"]
    check_outputs(wanted, directory)
    if wanted:
        db.evaluate(*dict.fromkeys(d.relation for d in wanted))
    if not everything_to_stdout:
        _make(folder)
    for directive in wanted:
        relation = db[directive.relation]
        if directive.kind == "printsize":
            to_stdout(f"{relation.name}\t{len(relation)}\n".encode())
        elif directive.io == "stdout" or everything_to_stdout:
            with _as_directive_error(directive, "written"):
                named = bool(directive.headers) or everything_to_stdout
                print_rows(relation, directive.delimiter, named=named, rfc4180=directive.rfc4180)
        else:
            _write(relation, directive, folder)


def check_outputs(directives: Iterable[Directive], directory: str | os.PathLike[str]) -> None:
    """Refuse `.output`s that cannot be written to a folder, as far as that shows before anything is evaluated."""
    if os.fspath(directory) == STDOUT:
        return
    folder = arguments.folder(directory)
    _check_can_be_made(folder)
    writers: dict[Path, Directive] = {}
    for directive in directives:
        if directive.kind != "output" or directive.io == "stdout":
            continue
        path = _output_path(directive, folder)
        with _as_directive_error(directive, "written"):
            check_name(path)
        path = path.resolve()
        if folder.is_dir() or path.parent != folder.resolve():
            with _as_directive_error(directive, "written"):
                check_can_be_written(path)
        first = writers.setdefault(path, directive)
        # One program has no two such directives; several have, and links.
        if first.relation != directive.relation and (path.is_file() or not path.exists()):
            what = f"`{first.relation}` and `{directive.relation}` are both written to {path}"
            raise DirectiveError(directive, what, why=WHY_ONE, remedy=ANOTHER_FILE)


def _check_can_be_made(folder: Path) -> None:
    """Refuse an output folder that is no folder, or cannot become one."""
    check_name(folder)
    parent = folder.absolute().parent
    if folder.is_dir() or (parent.is_dir() and not folder.exists()):
        return
    raise UnwritableFileError(
        "the output folder cannot be made",
        where=str(folder),
        why="it is a file" if folder.exists() else f"there is no folder {str(parent)!r} to make it in",
        remedy="name a folder that exists, or one that can be made",
    )


def made_folder(directory: str | os.PathLike[str]) -> Path:
    """A folder for outputs, made if it is missing (its parent must exist)."""
    folder = arguments.folder(directory)
    _check_can_be_made(folder)
    _make(folder)
    return folder


def _make(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise UnwritableFileError(
            "the output folder cannot be made",
            where=str(folder),
            why=error.strerror or str(error),
            remedy="name a folder that exists, or one that can be made",
        ) from error


def print_rows(given: Written, delimiter: str, *, named: bool = True, rfc4180: bool = False) -> None:
    """The layout of Souffle's WriteCoutCSV; a relation without columns has an empty line of names there, and here."""
    names = f"{delimiter.join(given.columns)}\n" if named else ""
    to_stdout(f"---------------\n{given.name}\n{names}===============\n".encode())
    schema, columns, symbols, rows = given._held()
    write(schema, columns, symbols, sys.stdout.buffer, delimiter=delimiter, rfc4180=rfc4180, rows=rows)
    to_stdout(b"===============\n")


def to_stdout(line: bytes) -> None:
    """Write bytes to stdout at once, after what was printed before."""
    if sys.stdout is None:
        raise UnwritableFileError(
            "stdout is closed",
            why="what is to be written there has nowhere to go",
            remedy="write to a file, or leave stdout open",
        )
    sys.stdout.flush()
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def _output_path(directive: Directive, folder: Path) -> Path:
    return Path(os.path.expanduser(folder / arguments.file_name(directive.filename)))


def _write(relation: Written, directive: Directive, directory: Path) -> None:
    path = _output_path(directive, directory)
    given = dict(directive.options)
    options: dict[str, Any] = {
        "delimiter": directive.delimiter,
        "headers": directive.headers,
        "rfc4180": directive.rfc4180,
        "compress": directive.compress,
        "format": TEXT,
    }
    if (kind := _without_text(path)) is not None:
        options = {name: value for name, value in options.items() if name in given} | {"format": kind.name}
    with _as_directive_error(directive, "written"):
        schema, columns, symbols, rows = relation._held()
        write(schema, columns, symbols, path, rows=rows, **options)


# --- errors -----------------------------------------------------------------------------------------------------------


@contextmanager
def _as_directive_error(directive: Directive, verb: str) -> Iterator[None]:
    """Turn what a file or its rows raise into a `DirectiveError`, its remedy in the words of directives."""
    try:
        yield
    except DirectiveError:
        raise
    except DataError as error:
        place = f"{error.where}: " if error.where else ""
        raise DirectiveError(
            directive,
            f"`{directive.relation}` cannot be {verb}: {place}{error.what}",
            why=error.why,
            remedy=_in_program_words(error.remedy, directive),
        ) from error


def _in_program_words(remedy: str, directive: Directive) -> str:
    if remedy.startswith("check the name"):
        return "check the name, and the folder that the facts are read from"
    for python, program in _PROGRAM_WORDS:
        remedy = remedy.replace(python, program)

    def columns(found: re.Match[str]) -> str:
        positions = re.findall(r": (\d+)", found[0])
        if positions:
            return f'columns="{":".join(positions)}"'
        return f"columns=, the positions in the file (from 0) of what `{directive.relation}` holds, as in 2:0"

    return re.sub(r"columns=\{[^}]*\}", columns, remedy)
