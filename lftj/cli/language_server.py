"""`lftj lsp`: a language server over stdin and stdout, by pygls.

It answers for the text that the editor holds, saved or not:

    diagnostics   all findings of the checker, each with its cause, its remedy and the other places that take part
    hover         types, comments, facts and input files of relations; types of variables; what functors do
    definition, references, rename      of relations and types, and of variables within their rule
    completion    relations, variables of the rule, functors and aggregates, types, directives
    symbols       what the program declares and derives
    formatting    as `lftj fmt`

What it says is computed in `editor_answers.py`; here it becomes messages of the protocol. Places count lines and
columns from 0, columns in the units that the client asked for, UTF-16 if it asked for none.

No request loads the engine: neither numba nor numpy is imported.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from lftj import __version__
from lftj.cli import editor_answers as answers
from lftj.errors import Diagnostic, ProgramError, Span
from lftj.language.analysis import Analysis, analyse
from lftj.language.formatting import formatted
from lftj.language.occurrences import Occurrence
from lftj.language.source import Source

# Seconds after a keystroke before the text is checked: another one begins the wait anew.
PAUSE = 0.15
_SEVERITIES = {"error": lsp.DiagnosticSeverity.Error, "warning": lsp.DiagnosticSeverity.Warning}
_KINDS = {
    "relation": lsp.CompletionItemKind.Class,
    "variable": lsp.CompletionItemKind.Variable,
    "functor": lsp.CompletionItemKind.Function,
    "type": lsp.CompletionItemKind.Struct,
    "keyword": lsp.CompletionItemKind.Keyword,
}
_SYMBOLS = {"relation": lsp.SymbolKind.Class, "type": lsp.SymbolKind.Struct, "rule": lsp.SymbolKind.Function}
_BYTES = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


class Server(LanguageServer):
    """The server, with what was found of every open text. `facts`: the folder of the input files, if it was named."""

    def __init__(self, facts: str | None) -> None:
        super().__init__("lftj", __version__, text_document_sync_kind=lsp.TextDocumentSyncKind.Full)
        self.facts = facts
        self._analyses: dict[str, Analysis] = {}

    def analysis(self, uri: str) -> Analysis:
        """What is found of the text as it is now."""
        text = self.workspace.get_text_document(uri).source
        before = self._analyses.get(uri)
        if before is None or before.source.text != text:
            before = self._analyses[uri] = analyse(text, to_fs_path(uri) or uri, before)
        return before

    def forget(self, uri: str) -> None:
        """Drop what was found of a closed text, and its diagnostics."""
        self._analyses.pop(uri, None)
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    def publish(self, uri: str) -> None:
        """Send the diagnostics of a text."""
        analysis = self.analysis(uri)
        version = self.workspace.get_text_document(uri).version
        found = [self._diagnostic(finding, analysis, uri) for finding in analysis.findings]
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, found, version))

    def _diagnostic(self, finding: Diagnostic, analysis: Analysis, uri: str) -> lsp.Diagnostic:
        related = [
            lsp.DiagnosticRelatedInformation(lsp.Location(uri, self.span(span, analysis.source)), word)
            for word, span in finding.related
        ]
        return lsp.Diagnostic(
            range=self.span(finding.span, analysis.source),
            message=answers.message(finding),
            severity=_SEVERITIES[finding.severity],
            source="lftj",
            related_information=related or None,
        )

    # Places

    def _units(self) -> tuple[str, int]:
        """The encoding whose units count columns, and the bytes of one."""
        chosen = self.workspace.position_encoding or lsp.PositionEncodingKind.Utf16
        return _BYTES[lsp.PositionEncodingKind(chosen).value]

    def position(self, offset: int, source: Source) -> lsp.Position:
        """A character offset in lines and units of the client."""
        line, column = source.position(offset)
        before = source.text[offset - column + 1 : offset]
        encoding, size = self._units()
        return lsp.Position(line - 1, len(before.encode(encoding, "surrogatepass")) // size)

    def offset(self, position: lsp.Position, source: Source) -> int:
        """The character offset of a place that the client names; the end of the line if it is beyond."""
        start, end = source.offset(position.line + 1, 1), source.offset(position.line + 1, 1 << 30)
        encoding, size = self._units()
        units = source.text[start:end].encode(encoding, "surrogatepass")[: position.character * size]
        return start + len(units.decode(encoding, "ignore"))

    def range(self, start: int, end: int, source: Source) -> lsp.Range:
        """A pair of character offsets as a range."""
        return lsp.Range(self.position(start, source), self.position(end, source))

    def span(self, span: Span, source: Source) -> lsp.Range:
        """The range of a span."""
        return self.range(*source.bounds(span), source)

    def found(self, params: Any) -> tuple[Analysis, int, Occurrence | None]:
        """What is found of the text of a request, the offset of its place, and the name there."""
        analysis = self.analysis(params.text_document.uri)
        offset = self.offset(params.position, analysis.source)
        return analysis, offset, analysis.at(offset)

    def locations(self, uri: str, places: list[Occurrence], source: Source) -> list[lsp.Location]:
        """Occurrences as places of a text."""
        return [lsp.Location(uri, self.range(place.start, place.end, source)) for place in places]


def _made(facts: str | None) -> Server:
    """A server with all its features."""
    server = Server(facts)

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(ls: Server, params: lsp.DidOpenTextDocumentParams) -> None:
        ls.publish(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(ls: Server, params: lsp.DidChangeTextDocumentParams) -> None:
        uri, version = params.text_document.uri, params.text_document.version
        await asyncio.sleep(PAUSE)
        if uri in ls.workspace.text_documents and ls.workspace.get_text_document(uri).version == version:
            ls.publish(uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(ls: Server, params: lsp.DidCloseTextDocumentParams) -> None:
        ls.forget(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(ls: Server, params: lsp.HoverParams) -> lsp.Hover | None:
        analysis, _, name = ls.found(params)
        text = name and answers.hover(analysis, name, _folders(ls, params.text_document.uri))
        if not name or not text:
            return None
        place = ls.range(name.start, name.end, analysis.source)
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text), place)

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def definition(ls: Server, params: lsp.DefinitionParams) -> list[lsp.Location]:
        analysis, _, name = ls.found(params)
        places = analysis.definitions(name) if name else []
        return ls.locations(params.text_document.uri, places, analysis.source)

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def references(ls: Server, params: lsp.ReferenceParams) -> list[lsp.Location]:
        analysis, _, name = ls.found(params)
        places = analysis.all_of(name) if name else []
        if not params.context.include_declaration and name:
            defined = analysis.definitions(name)
            places = [place for place in places if place not in defined]
        return ls.locations(params.text_document.uri, places, analysis.source)

    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare_rename(ls: Server, params: lsp.PrepareRenameParams) -> lsp.Range | None:
        analysis, _, name = ls.found(params)
        if name is None or not answers.can_be_renamed(analysis, name):
            return None
        return ls.range(name.start, name.end, analysis.source)

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    def rename(ls: Server, params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        analysis, _, name = ls.found(params)
        if name is None:
            return None
        if refusal := answers.rename_refusal(analysis, name, params.new_name):
            raise JsonRpcInvalidParams(refusal)
        places = ls.locations(params.text_document.uri, analysis.all_of(name), analysis.source)
        return lsp.WorkspaceEdit(
            {params.text_document.uri: [lsp.TextEdit(place.range, params.new_name) for place in places]}
        )

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=[".", ":"]))
    def completion(ls: Server, params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        analysis, offset, _ = ls.found(params)
        start, offered = answers.completions(analysis, offset)
        place = ls.range(start, offset, analysis.source)
        return [
            lsp.CompletionItem(
                label=item.label,
                kind=_KINDS[item.kind],
                detail=item.detail or None,
                documentation=lsp.MarkupContent(lsp.MarkupKind.Markdown, item.documentation)
                if item.documentation
                else None,
                sort_text=f"{item.rank}{item.label}",
                text_edit=lsp.TextEdit(place, item.label),
            )
            for item in offered
        ]

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(ls: Server, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        analysis = ls.analysis(params.text_document.uri)
        return [
            lsp.DocumentSymbol(
                name=symbol.name,
                kind=_SYMBOLS[symbol.kind],
                range=ls.range(symbol.start, symbol.end, analysis.source),
                selection_range=ls.range(symbol.start, symbol.start + symbol.width, analysis.source),
                detail=symbol.detail or None,
            )
            for symbol in answers.symbols(analysis)
        ]

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def formatting(ls: Server, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
        source = ls.analysis(params.text_document.uri).source
        try:
            made = formatted(source.text, source.name)
        except ProgramError:  # its diagnostics are there already
            return None
        return [lsp.TextEdit(ls.range(0, len(source.text), source), made)] if made != source.text else []

    return server


def _folders(server: Server, uri: str) -> list[Path]:
    """Where input files are looked for."""
    path = to_fs_path(uri)
    beside = Path(path).parent if path else Path()
    return [beside / server.facts] if server.facts else [beside, beside / "facts"]


def serve(facts: str | None) -> None:
    """Answer on stdin and stdout until the client says that it is done."""
    logging.basicConfig(stream=sys.stderr, level=logging.ERROR)
    # pygls closes what it is given.
    with os.fdopen(os.dup(sys.stdin.fileno()), "rb") as asked, os.fdopen(os.dup(sys.stdout.fileno()), "wb") as said:
        _made(facts).start_io(asked, said)
