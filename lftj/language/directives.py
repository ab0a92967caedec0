"""Directives: the options of `.input`, `.output` and `.printsize`, read, checked and filled with Souffle's defaults.

    .input edge                                   edge.facts, tab separated
    .input edge(filename="e.csv", delimiter=",")  that file, columns in order
    .output tri(headers=true, compress=true)      tri.csv.gz, tab separated, first line the column names

An option that lftj does not know is an error, never ignored.
"""

from __future__ import annotations

import posixpath
import re

from lftj.language import ast
from lftj.language.clause import Directive
from lftj.language.diagnostics import Findings, did_you_mean
from lftj.language.names import Names

_FILE_OPTIONS = ("IO", "filename", "delimiter", "headers", "rfc4180", "compress")
OPTIONS = {
    "input": (*_FILE_OPTIONS, "columns"),
    "output": _FILE_OPTIONS,
    "printsize": ("IO",),
}
# Of two relations that are written to one file.
WHY_ONE = "a file holds one relation: the second would take the place of the first"
ANOTHER_FILE = "give one of them a filename= of its own"
_IO = {"input": ("file", "stdin"), "output": ("file", "stdout"), "printsize": ("stdout",)}
_REFUSED_IO = ("sqlite", "json", "dbg")
_REFUSED_OPTIONS = {
    "format": "option `format`",
    "params": "option `params`",
    "types": "option `types`",
    "dbname": "SQLite (`dbname`)",
    "attributeNames": "option `attributeNames`",
    "message": "option `message`",
}


def check_directives(program: ast.Program, names: Names, findings: Findings) -> tuple[Directive, ...]:
    """The directives of a program, read; findings for those that make no sense."""
    read: list[Directive] = []
    seen: dict[tuple[str, str, str, str], ast.Directive] = {}
    writers: dict[str, ast.Directive] = {}
    for item in program.items:
        if not isinstance(item, ast.Directive):
            continue
        directive = _read(item, names, findings)
        if directive is None:
            continue
        file = posixpath.normpath(directive.filename)  # ./x.csv is x.csv
        key = (item.kind, item.relation, directive.io, file)
        if key in seen:
            goes = {"input": "read from", "output": "written to"}.get(item.kind)
            target = f" {goes} `{directive.filename or directive.io}`" if goes else " printed"
            verb = f"`{item.relation}` is{target} twice" if goes else f"the size of `{item.relation}` is printed twice"
            findings.error(
                verb,
                item.span,
                why="the second does what the first has done",
                remedy="drop one of the two directives",
                predicate=item.relation,
                related=(("first here", seen[key].span),),
            )
            continue
        if directive.kind == "output" and directive.io == "file" and not file.startswith("/dev/"):
            first = writers.setdefault(file, item)
            if first is not item:
                findings.error(
                    f"`{first.relation}` and `{item.relation}` are both written to `{directive.filename}`",
                    item.span,
                    why=WHY_ONE,
                    remedy=ANOTHER_FILE,
                    predicate=item.relation,
                    related=(("first here", first.span),),
                )
                continue
        seen[key] = item
        read.append(directive)
    return tuple(read)


def _read(item: ast.Directive, names: Names, findings: Findings) -> Directive | None:
    relation = names.relations.get(item.relation)
    if relation is None:
        if "." in item.relation:
            findings.unsupported(f"component relation `{item.relation}`", item.span)
        elif item.relation not in names.opaque and not names.open:
            findings.error(
                f"`.{item.kind}` names an unknown relation `{item.relation}`",
                item.span,
                why="it is neither declared nor the head of a rule",
                remedy=did_you_mean(
                    item.relation, names.named(), f"declare it, as in `.decl {item.relation}(x:number)`"
                ),
                predicate=item.relation,
            )
        return None
    options: dict[str, str] = {}
    good = True
    for name, value in item.options:
        known = OPTIONS[item.kind]
        if name in _REFUSED_OPTIONS:
            if name not in ("dbname", "format") or not _refused_io(item):
                findings.unsupported(f"{_REFUSED_OPTIONS[name]} in `.{item.kind} {item.relation}`", item.span)
            good = False
        elif name not in known:
            listed = ", ".join(f"`{option}`" for option in known)
            findings.error(
                f"unknown option `{name}` in `.{item.kind} {item.relation}`",
                item.span,
                why=f"the options of `.{item.kind}` are {listed}",
                remedy=did_you_mean(name, known, f"the options are {listed}"),
                predicate=item.relation,
            )
            good = False
        elif name in options:
            findings.error(
                f"option `{name}` is given twice in `.{item.kind} {item.relation}`",
                item.span,
                why="only one of its values could hold",
                remedy="drop one",
            )
            good = False
        options[name] = value
    if not good and _refused_io(item) is None:
        return None
    return _resolved(item, options, relation.arity, findings)


def _refused_io(item: ast.Directive) -> str | None:
    io = dict(item.options).get("IO", "file").lower()
    return io if io in _REFUSED_IO else None


def _resolved(item: ast.Directive, options: dict[str, str], arity: int, findings: Findings) -> Directive | None:
    where = f"`.{item.kind} {item.relation}`"
    refused = _refused_io(item)
    if refused:
        findings.unsupported(f"`IO={refused}` in {where}", item.span, remedy="use a file: `IO=file`")
        return None
    allowed = _IO[item.kind]
    io = options.get("IO", allowed[0]).lower()
    if io not in allowed:
        listed = " or ".join(f"`IO={value}`" for value in allowed)
        findings.error(
            f"unknown `IO={options['IO']}` in {where}",
            item.span,
            why=f"`.{item.kind}` has {listed} only",
            remedy=f"write {listed}",
        )
        return None
    flags: dict[str, bool] = {}
    for name in ("headers", "rfc4180", "compress"):
        value = options.get(name, "false").lower()
        if value not in ("true", "false"):
            what = f"option `{name}` in {where} is `{options[name]}`"
            findings.error(
                what, item.span, why="it is switched on or off", remedy=f"write `{name}=true` or `{name}=false`"
            )
            return None
        flags[name] = value == "true"
    delimiter = options.get("delimiter", "," if flags["rfc4180"] else "\t")
    if not delimiter:
        findings.error(
            f"option `delimiter` in {where} is empty",
            item.span,
            why="it is what stands between two fields of a line",
            remedy='name a character, as in `delimiter=","`',
        )
        return None
    columns = _columns(options["columns"], arity, item, findings) if "columns" in options else None
    if "columns" in options and columns is None:
        return None
    filename = ""
    if io == "file" and item.kind != "printsize":
        suffix = ".facts" if item.kind == "input" else ".csv.gz" if flags["compress"] else ".csv"
        filename = options.get("filename", item.relation + suffix)
    return Directive(
        kind=item.kind,
        relation=item.relation,
        io=io,
        filename=filename,
        delimiter=delimiter,
        headers=flags["headers"],
        rfc4180=flags["rfc4180"],
        compress=flags["compress"],
        columns=columns,
        options=item.options,
        span=item.span,
    )


def _columns(text: str, arity: int, item: ast.Directive, findings: Findings) -> tuple[int, ...] | None:
    if re.fullmatch(r"\d{1,6}(:\d{1,6})*", text) and text.count(":") + 1 == arity:
        return tuple(int(part) for part in text.split(":"))
    findings.error(
        f"option `columns` in `.{item.kind} {item.relation}` is `{text}`",
        item.span,
        why=f"`{item.relation}` has {arity} columns, and each needs the number of its column in the file",
        remedy=f'write {arity} numbers from 0, as in `columns="{":".join(str(i) for i in range(arity))}"`',
        predicate=item.relation,
    )
    return None
