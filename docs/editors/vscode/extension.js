// The extension: starts `lftj lsp` and passes on what the editor asks. Without a server, highlighting is left.

"use strict";

const vscode = require("vscode");
const { Connection } = require("./connection");

const LANGUAGE = { language: "lftj" };
let connection; // undefined if no server runs
let findings;

// --- from the protocol to the editor ---------------------------------------------------------------------------------

const position = (place) => new vscode.Position(place.line, place.character);
const range = (place) => new vscode.Range(position(place.start), position(place.end));
const location = (place) => new vscode.Location(vscode.Uri.parse(place.uri), range(place.range));
const markdown = (content) => content && new vscode.MarkdownString(content.value);

function diagnostic(found) {
  const made = new vscode.Diagnostic(range(found.range), found.message, found.severity - 1);
  made.source = found.source;
  made.relatedInformation = (found.relatedInformation || []).map(
    (related) => new vscode.DiagnosticRelatedInformation(location(related.location), related.message)
  );
  return made;
}

function completion(item) {
  const made = new vscode.CompletionItem(item.label, item.kind - 1);
  made.detail = item.detail;
  made.documentation = markdown(item.documentation);
  made.sortText = item.sortText;
  made.range = range(item.textEdit.range);
  made.insertText = item.textEdit.newText;
  return made;
}

function symbol(found) {
  return new vscode.DocumentSymbol(
    found.name, found.detail || "", found.kind - 1, range(found.range), range(found.selectionRange)
  );
}

// --- from the editor to the protocol ---------------------------------------------------------------------------------

const named = (document) => ({ textDocument: { uri: document.uri.toString() } });
const at = (document, place) => ({ ...named(document), position: { line: place.line, character: place.character } });

// Ask the server; `fallback` if there is none.
async function ask(method, params, fallback) {
  if (connection === undefined) return fallback;
  return (await connection.request(`textDocument/${method}`, params)) || fallback;
}

const providers = {
  registerHoverProvider: {
    async provideHover(document, place) {
      const hover = await ask("hover", at(document, place));
      return hover && new vscode.Hover(markdown(hover.contents), range(hover.range));
    },
  },
  registerDefinitionProvider: {
    provideDefinition: async (document, place) => (await ask("definition", at(document, place), [])).map(location),
  },
  registerReferenceProvider: {
    async provideReferences(document, place, context) {
      const asked = { ...at(document, place), context: { includeDeclaration: context.includeDeclaration } };
      return (await ask("references", asked, [])).map(location);
    },
  },
  registerRenameProvider: {
    async prepareRename(document, place) {
      const found = await ask("prepareRename", at(document, place));
      if (!found) throw new Error("there is no name of the program here");
      return range(found);
    },
    async provideRenameEdits(document, place, newName) {
      const edit = new vscode.WorkspaceEdit();
      const answer = await ask("rename", { ...at(document, place), newName }, { changes: {} });
      for (const [uri, changes] of Object.entries(answer.changes)) {
        for (const change of changes) edit.replace(vscode.Uri.parse(uri), range(change.range), change.newText);
      }
      return edit;
    },
  },
  registerDocumentSymbolProvider: {
    provideDocumentSymbols: async (document) => (await ask("documentSymbol", named(document), [])).map(symbol),
  },
  registerDocumentFormattingEditProvider: {
    async provideDocumentFormattingEdits(document, options) {
      const edits = await ask("formatting", { ...named(document), options }, []);
      return edits.map((edit) => new vscode.TextEdit(range(edit.range), edit.newText));
    },
  },
};

const completions = {
  provideCompletionItems: async (document, place) =>
    (await ask("completion", at(document, place), [])).map(completion),
};

// --- the server and the texts -----------------------------------------------------------------------------------------

function opened(document) {
  if (connection === undefined || document.languageId !== "lftj") return;
  const { uri } = named(document).textDocument;
  const text = document.getText();
  connection.notify("textDocument/didOpen", {
    textDocument: { uri, languageId: "lftj", version: document.version, text },
  });
}

function changed({ document }) {
  if (connection === undefined || document.languageId !== "lftj") return;
  const { uri } = named(document).textDocument;
  connection.notify("textDocument/didChange", {
    textDocument: { uri, version: document.version },
    contentChanges: [{ text: document.getText() }],
  });
}

function closed(document) {
  if (connection === undefined || document.languageId !== "lftj") return;
  connection.notify("textDocument/didClose", named(document));
}

async function start() {
  const settings = vscode.workspace.getConfiguration("lftj");
  const facts = settings.get("facts");
  const folder = (vscode.workspace.workspaceFolders || [])[0];
  const command = [...settings.get("command"), "lsp", ...(facts ? ["-F", facts] : [])];
  const handlers = {
    "textDocument/publishDiagnostics": ({ uri, diagnostics }) =>
      findings.set(vscode.Uri.parse(uri), diagnostics.map(diagnostic)),
  };
  const options = folder ? { cwd: folder.uri.fsPath } : {};
  const made = new Connection(command, options, handlers, (reason) => {
    connection = undefined;
    findings.clear();
    vscode.window.showWarningMessage(`lftj: no language server (${command.join(" ")}): ${reason}`);
  });
  const capabilities = { textDocument: { rename: { prepareSupport: true } } };
  try {
    await made.request("initialize", { processId: process.pid, rootUri: null, capabilities });
  } catch {
    return; // told at the end of the process
  }
  made.notify("initialized", {});
  connection = made;
  vscode.workspace.textDocuments.forEach(opened);
}

async function stop() {
  const running = connection;
  connection = undefined;
  if (running) await running.stop();
}

async function activate(context) {
  findings = vscode.languages.createDiagnosticCollection("lftj");
  context.subscriptions.push(
    findings,
    vscode.workspace.onDidOpenTextDocument(opened),
    vscode.workspace.onDidChangeTextDocument(changed),
    vscode.workspace.onDidCloseTextDocument(closed),
    vscode.commands.registerCommand("lftj.restart", async () => {
      await stop();
      await start();
    }),
    ...Object.entries(providers).map(([register, provider]) => vscode.languages[register](LANGUAGE, provider)),
    vscode.languages.registerCompletionItemProvider(LANGUAGE, completions, ".", ":")
  );
  await start();
}

module.exports = { activate, deactivate: stop };
