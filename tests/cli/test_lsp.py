"""The language server, over its protocol: a process, and messages on its stdin and stdout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lftj.language.types import BASE_TYPES
from tests.cli.conftest import Shell
from tests.forked import forks

pytest.importorskip("pygls")

PROGRAM = """\
// who knows whom
.decl edge(a:number, b:number)
.input edge
.type Name <: symbol
.decl name(who:number) -> called:Name
tri(x, y, z) :- edge(x, y), edge(y, z), edge(x, z).  // three of a kind
deg[x] = n :- edge(x, _), n = count : { edge(x, _) }.
text(t) :- tri(x, _, _), t = cat(name[x], "é𝄞"), x > 1.
"""


class Editor:
    """A client: requests are answered in order, and what the server sends by itself is kept."""

    def __init__(self, folder: Path, python: list[str], **capabilities: Any) -> None:
        self.process = subprocess.Popen(
            [*python, "-m", "lftj", "lsp", "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self.watchdog = threading.Timer(120, self.process.kill)
        self.watchdog.start()
        self.folder, self.number = folder, 0
        self.uri = (folder / "tri.dl").as_uri()
        self.received: list[dict[str, Any]] = []
        started = self.ask("initialize", processId=None, rootUri=folder.as_uri(), capabilities=capabilities)
        self.capabilities: dict[str, Any] = started["capabilities"]
        self.tell("initialized")

    def send(self, **message: Any) -> None:
        content = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(content), content))
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        length = 0
        while (line := self.process.stdout.readline()).strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        assert length, "the server is gone"
        message: dict[str, Any] = json.loads(self.process.stdout.read(length))
        return message

    def tell(self, method: str, **params: Any) -> None:
        self.send(method=method, params=params)

    def ask(self, method: str, **params: Any) -> Any:
        answer = self.answer(method, **params)
        assert "error" not in answer, answer
        return answer["result"]

    def answer(self, method: str, **params: Any) -> dict[str, Any]:
        self.number += 1
        self.send(id=self.number, method=method, params=params)
        while (message := self.receive()).get("id") != self.number or "method" in message:
            self.received.append(message)
        return message

    def diagnostics(self) -> list[dict[str, Any]]:
        """The next diagnostics that are sent."""
        while not self.received or self.received[-1].get("method") != "textDocument/publishDiagnostics":
            self.received.append(self.receive())
        found: list[dict[str, Any]] = self.received.pop()["params"]["diagnostics"]
        return found

    # A text

    def open(self, text: str) -> list[dict[str, Any]]:
        self.text, self.version = text, 1
        document = {"uri": self.uri, "languageId": "lftj", "version": 1, "text": text}
        self.tell("textDocument/didOpen", textDocument=document)
        return self.diagnostics()

    def change(self, text: str) -> None:
        self.text = text
        self.version += 1
        document = {"uri": self.uri, "version": self.version}
        self.tell("textDocument/didChange", textDocument=document, contentChanges=[{"text": text}])

    def at(self, before: str, after: str = "") -> dict[str, Any]:
        """The place between two texts that stand beside each other once."""
        assert self.text.count(before + after) == 1
        return self.place(self.text.index(before + after) + len(before))

    def place(self, offset: int) -> dict[str, Any]:
        line = self.text.count("\n", 0, offset)
        column = len(self.text[self.text.rfind("\n", 0, offset) + 1 : offset].encode("utf-16-le")) // 2
        return {"line": line, "character": column}

    def of_text(self, method: str, before: str, after: str = "", **params: Any) -> Any:
        document = {"uri": self.uri}
        return self.ask(f"textDocument/{method}", textDocument=document, position=self.at(before, after), **params)

    def shown(self, place: dict[str, Any]) -> str:
        """The text of a range, with its line from 1."""
        lines = self.text.split("\n")
        start, end = place["start"], place["end"]
        assert start["line"] == end["line"]
        units = lines[start["line"]].encode("utf-16-le")[2 * start["character"] : 2 * end["character"]]
        return f"{start['line'] + 1}:{units.decode('utf-16-le')}"

    def close(self) -> None:
        self.ask("shutdown")
        self.send(method="exit")
        assert self.process.wait(30) == 0


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Editor]:
    made = Editor(tmp_path, forks().python)
    try:
        yield made
        made.close()
    finally:
        made.watchdog.cancel()
        made.process.kill()
        made.process.wait()
        assert made.process.stdin is not None
        assert made.process.stdout is not None
        made.process.stdin.close()
        made.process.stdout.close()


def test_a_right_program_has_no_findings_and_a_wrong_one_all_of_them(editor: Editor) -> None:
    assert editor.open(PROGRAM) == []
    wrong = PROGRAM + "a(q) :- edge(x, y, 1), nobody(x).\n.decl edge(x:number)\n"
    editor.change(wrong)
    found = editor.diagnostics()
    assert [(editor.shown(d["range"]), d["severity"], d["message"].split("\n")[0]) for d in found] == [
        ("9:q", 1, "variable `q` occurs in the head but in no atom of the body"),
        ("9:edge(x, y, 1)", 1, "`edge` has 2 columns, and 3 arguments are given"),
        ("9:y", 2, "variable `y` occurs only once"),
        ("9:nobody(x)", 1, "unknown relation `nobody`"),
        ("10:edge", 1, "relation `edge` is declared twice"),
    ]
    assert {d["source"] for d in found} == {"lftj"}
    assert found[3]["message"].split("\n")[1:] == [
        "why: it is neither declared nor the head of a rule",
        "do: declare it, as in `.decl nobody(c0:number)`",
    ]
    ((related,), (other,)) = (found[1]["relatedInformation"], found[4]["relatedInformation"])
    assert (editor.shown(related["location"]["range"]), related["message"]) == ("2:edge", "declared here")
    assert (editor.shown(other["location"]["range"]), other["location"]["uri"]) == ("2:edge", editor.uri)
    editor.change(PROGRAM)
    assert editor.diagnostics() == []


def test_only_the_last_of_quick_changes_is_checked(editor: Editor) -> None:
    editor.open(PROGRAM)
    for end in ("p(", "p(x", "p(1)", "p(1)."):
        editor.change(PROGRAM + end)
    assert editor.diagnostics() == []
    editor.tell("textDocument/didClose", textDocument={"uri": editor.uri})
    assert editor.diagnostics() == []


def test_a_broken_program_gives_what_it_can(editor: Editor) -> None:
    broken = PROGRAM.replace("edge(x, z).", "edge(x, z)") + "p(x) :- tri(x, _, _), e(x).\n"
    found = editor.open(broken)
    assert [(editor.shown(d["range"]), d["message"].split("\n")[0]) for d in found] == [
        ("7:deg", "syntax error: expected `,`, `;` or `.` after a condition of the body, found `deg`"),
        ("9:e(x)", "unknown relation `e`"),
    ]
    assert "y = count : { ... }" in editor.of_text("hover", "co", "unt")["contents"]["value"]
    (place,) = editor.of_text("definition", "tri(x, y, z) :- ed", "ge")
    assert editor.shown(place["range"]) == "2:edge"


def hovered(editor: Editor, before: str, after: str) -> str:
    text: str = editor.of_text("hover", before, after)["contents"]["value"]
    return text


def test_hover(editor: Editor) -> None:
    (editor.folder / "facts").mkdir()
    (editor.folder / "facts" / "edge.facts").write_text("1\t2\n2\t3")
    editor.open(PROGRAM)
    assert hovered(editor, ".input ed", "ge") == (
        "```lftj\n.decl edge(a:number, b:number)\n```\n\nwho knows whom\n\n`edge.facts`: 2 lines"
    )
    assert hovered(editor, "text(t) :- t", "ri") == (
        "```lftj\ntri(x:number, y:number, z:number)\n```\n\nthree of a kind\n\n1 rule"
    )
    assert hovered(editor, "", "deg[x] = n") == "```lftj\ndeg(x:number) -> n:number\n```\n\n1 rule"
    assert hovered(editor, "tri(", "x, y, z)") == "```lftj\nx:number\n```"
    assert hovered(editor, "tri(x, _, _), ", "t =") == "```lftj\nt:symbol\n```"
    assert hovered(editor, "called:", "Name") == "```lftj\n.type Name <: symbol\n```"
    assert hovered(editor, "t = ", "cat(") == (
        "```lftj\ncat(symbol, ...):symbol\n```\n\nThe arguments joined into one text.\n\n"
        '```lftj\ncat("a", "b", "c") = "abc"\n```'
    )
    assert editor.of_text("hover", "three of", " a kind") is None


def test_places_count_utf_16_units(editor: Editor) -> None:
    editor.open(PROGRAM)
    answer = editor.of_text("hover", '"é𝄞"), ', "x > 1")
    assert editor.shown(answer["range"]) == "8:x"
    assert answer["range"]["end"]["character"] - answer["range"]["start"]["character"] == 1


def test_places_in_units_that_the_client_asks_for(tmp_path: Path) -> None:
    editor = Editor(tmp_path, [sys.executable], general={"positionEncodings": ["utf-32"]})
    try:
        assert editor.capabilities["positionEncoding"] == "utf-32"
        editor.open(PROGRAM)
        column = PROGRAM.split("\n")[7].index("x > 1")
        answer = editor.ask(
            "textDocument/hover", textDocument={"uri": editor.uri}, position={"line": 7, "character": column}
        )
        assert answer["range"]["start"] == {"line": 7, "character": column}
        editor.close()
    finally:
        editor.watchdog.cancel()
        editor.process.communicate()


def test_definitions_and_references(editor: Editor) -> None:
    editor.open(PROGRAM)

    def places(method: str, before: str, after: str = "", **params: Any) -> list[str]:
        return [editor.shown(place["range"]) for place in editor.of_text(method, before, after, **params)]

    assert places("definition", "edge(x, y), ed", "ge(y") == ["2:edge"]
    assert places("definition", "text(t) :- t", "ri") == ["6:tri"]
    assert places("definition", "called:N", "ame") == ["4:Name"]
    assert places("definition", "x, y, ", "z) :- edge") == ["6:z"]
    assert places("definition", "c", "at(name") == []
    everywhere = {"context": {"includeDeclaration": True}}
    uses = ["3:edge", "6:edge", "6:edge", "6:edge", "7:edge", "7:edge"]
    assert places("references", ".decl e", "dge", **everywhere) == ["2:edge", *uses]
    assert places("references", ".decl e", "dge", context={"includeDeclaration": False}) == uses
    assert places("references", "tri(x", ", y, z)", **everywhere) == ["6:x"] * 3


def renamed(editor: Editor, before: str, after: str, name: str) -> str:
    """The text with the edits of a rename."""
    edit = editor.of_text("rename", before, after, newName=name)
    lines = editor.text.split("\n")
    for change in sorted(edit["changes"][editor.uri], key=lambda e: -e["range"]["start"]["character"]):
        start, end = change["range"]["start"], change["range"]["end"]
        line = lines[start["line"]].encode("utf-16-le")
        parts = line[: 2 * start["character"]], change["newText"].encode("utf-16-le"), line[2 * end["character"] :]
        lines[start["line"]] = b"".join(parts).decode("utf-16-le")
    return "\n".join(lines)


def test_rename(editor: Editor) -> None:
    editor.open(PROGRAM)
    assert renamed(editor, ".input ed", "ge", "arc") == PROGRAM.replace("edge", "arc")
    assert renamed(editor, "tri(", "x, y", "first") == PROGRAM.replace(
        "tri(x, y, z) :- edge(x, y), edge(y, z), edge(x, z).",
        "tri(first, y, z) :- edge(first, y), edge(y, z), edge(first, z).",
    )
    assert renamed(editor, ", ", "x > 1", "_w") == PROGRAM.replace(
        'tri(x, _, _), t = cat(name[x], "é𝄞"), x > 1', 'tri(_w, _, _), t = cat(name[_w], "é𝄞"), _w > 1'
    )
    assert renamed(editor, "called:", "Name", "Label") == PROGRAM.replace("Name", "Label")
    assert editor.shown(editor.of_text("prepareRename", "ed", "ge(a:")) == "2:edge"
    assert editor.of_text("prepareRename", "c", "at(name") is None


@pytest.mark.parametrize(
    ("place", "name", "reason"),
    [
        (("ed", "ge(a"), "tri", "there is another relation `tri` in this program"),
        (("ed", "ge(a"), "count", "`count` has a meaning of its own, and cannot name a relation"),
        (("ed", "ge(a"), "1x", "`1x` is no name"),
        (("tri(", "x, y"), "z", "there is another variable `z` in this rule"),
        (("c", "at(name"), "dog", "`cat` is a word of the language, which cannot be renamed"),
        (("who:n", "umber"), "int", "`number` is a word of the language, which cannot be renamed"),
    ],
)
def test_refused_names(editor: Editor, place: tuple[str, str], name: str, reason: str) -> None:
    editor.open(PROGRAM)
    document = {"uri": editor.uri}
    answer = editor.answer("textDocument/rename", textDocument=document, position=editor.at(*place), newName=name)
    assert answer["error"]["message"].startswith(reason)


def test_no_rename_across_a_clause_that_does_not_parse(editor: Editor) -> None:
    editor.open(PROGRAM + "p(x) :- edge(x, .\n")
    document = {"uri": editor.uri}
    answer = editor.answer("textDocument/rename", textDocument=document, position=editor.at(".input ed"), newName="arc")
    assert answer["error"]["message"] == "the clause of line 9 names `edge` and does not parse: correct it first"


def offered(editor: Editor, text: str) -> dict[str, dict[str, Any]]:
    """What may stand at the end of the program and a text."""
    editor.change(PROGRAM + text)
    position = editor.place(len(editor.text))
    document = {"uri": editor.uri}
    items = editor.ask("textDocument/completion", textDocument=document, position=position)
    return {item["label"]: item for item in items}


def test_completion(editor: Editor) -> None:
    editor.open(PROGRAM)
    body = offered(editor, "new(first, sec) :- edge(first, second), t")
    assert {"first", "second", "sec", "edge", "tri", "name", "deg", "count", "cat", "contains", "match"} <= set(body)
    assert "t" not in body
    assert body["edge"]["detail"] == "edge(a:number, b:number)"
    assert body["edge"]["documentation"]["value"] == "who knows whom"
    assert body["name"]["detail"] == "name(who:number) -> called:Name"
    assert "joined into one text" in body["cat"]["documentation"]["value"]
    assert body["tri"]["textEdit"]["range"] == {
        "start": editor.place(len(editor.text) - 1),
        "end": editor.place(len(editor.text)),
    }
    assert set(offered(editor, ".")) == {".decl", ".type", ".input", ".output", ".printsize"}
    assert ".decl" in offered(editor, "\n.de")
    assert set(offered(editor, ".decl p(x:")) == {*BASE_TYPES, "Name"}
    assert set(offered(editor, ".output t")) == {"edge", "name", "tri", "deg", "text"}
    assert "first" in offered(editor, ".output tri\nq(first) :- tri(f")
    for silent in ("// ed", 'p(x) :- x = "e', ".decl p", "/* e"):
        assert offered(editor, silent) == {}


def test_symbols(editor: Editor) -> None:
    editor.open(PROGRAM + "one(1). one(2).\n")
    found = editor.ask("textDocument/documentSymbol", textDocument={"uri": editor.uri})
    assert [(symbol["name"], symbol.get("detail"), editor.shown(symbol["selectionRange"])) for symbol in found] == [
        ("edge", "edge(a:number, b:number)", "2:edge"),
        ("Name", "symbol", "4:Name"),
        ("name", "name(who:number) -> called:Name", "5:name"),
        ("tri(x, y, z)", None, "6:tri"),
        ("deg[x] = n", None, "7:deg"),
        ("text(t)", None, "8:text"),
        ("one(1)", None, "9:one"),
    ]


def test_formatting(editor: Editor) -> None:
    editor.open(PROGRAM)

    def edits() -> Any:
        options = {"tabSize": 4, "insertSpaces": True}
        return editor.ask("textDocument/formatting", textDocument={"uri": editor.uri}, options=options)

    assert edits() == []
    editor.change(PROGRAM.replace(", ", ",  "))
    (edit,) = edits()
    assert edit["newText"] == PROGRAM
    assert edit["range"] == {"start": {"line": 0, "character": 0}, "end": {"line": 8, "character": 0}}
    editor.change("p(")
    assert edits() is None


def test_without_pygls_it_says_what_to_install(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygls.lsp.server", None)
    assert shell("lsp") == (
        2,
        "",
        "lftj: error: the language server needs pygls\n"
        "  why: a plain installation does not have it\n"
        "  do: install it with `pip install 'lftj[lsp]'`\n",
    )


def test_the_server_loads_no_engine() -> None:
    code = "import sys, lftj.cli.language_server; print({'numba', 'numpy', 'pyarrow'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
