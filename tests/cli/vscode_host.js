// The extension in a host that stands in for VS Code: it opens a program, asks all providers, and prints the answers.
// Arguments: the folder of the extension, that of the program, its text, and the command of lftj as JSON.

"use strict";

const path = require("path");
const Module = require("module");
const { pathToFileURL } = require("url");

const [extension, folder, text, command] = process.argv.slice(2);
const answers = { warnings: [] };
const providers = {};
const listeners = {};
const record = (...names) =>
  class {
    constructor(...values) {
      names.forEach((name, number) => (this[name] = values[number]));
    }
  };

class WorkspaceEdit {
  changes = [];
  replace(uri, place, newText) {
    this.changes.push({ place, newText });
  }
}

let diagnosed;
const diagnoses = [];
const uriOf = (uri) => ({ toString: () => uri, fsPath: uri });
const document = {
  uri: uriOf(pathToFileURL(path.join(folder, "tri.dl")).href),
  languageId: "lftj",
  version: 1,
  getText: () => document.text,
  text,
};

const vscode = {
  Position: record("line", "character"),
  Range: record("start", "end"),
  Location: record("uri", "range"),
  MarkdownString: record("value"),
  Diagnostic: record("range", "message", "severity"),
  DiagnosticRelatedInformation: record("location", "message"),
  CompletionItem: record("label", "kind"),
  DocumentSymbol: record("name", "detail", "kind", "range", "selectionRange"),
  Hover: record("contents", "range"),
  TextEdit: record("range", "newText"),
  WorkspaceEdit,
  Uri: { parse: uriOf },
  window: { showWarningMessage: (message) => answers.warnings.push(message) },
  commands: { registerCommand: (name, run) => (providers[name] = run) },
  workspace: {
    textDocuments: [document],
    workspaceFolders: [{ uri: { fsPath: folder } }],
    getConfiguration: () => ({ get: (name) => (name === "command" ? JSON.parse(command) : "") }),
    onDidOpenTextDocument: (listen) => (listeners.open = listen),
    onDidChangeTextDocument: (listen) => (listeners.change = listen),
    onDidCloseTextDocument: (listen) => (listeners.close = listen),
  },
  languages: new Proxy(
    {
      createDiagnosticCollection: () => ({
        set: (uri, found) => {
          diagnoses.push(found);
          if (diagnosed) diagnosed();
        },
        clear: () => {},
      }),
    },
    {
      get: (known, name) =>
        known[name] || ((selector, provider) => (providers[name] = provider)),
    }
  ),
};

const load = Module._load;
Module._load = (name, ...others) => (name === "vscode" ? vscode : load(name, ...others));

const diagnosis = () =>
  diagnoses.length ? diagnoses.shift() : new Promise((resolve) => (diagnosed = () => resolve(diagnoses.shift())));

async function main() {
  const { activate, deactivate } = require(path.join(extension, "extension.js"));
  await activate({ subscriptions: [] });
  if (!answers.warnings.length) {
    answers.diagnostics = await diagnosis();
    document.text = `${text}tri(1) :- edge(x, 1).\n`;
    document.version = 2;
    listeners.change({ document });
    answers.changed = await diagnosis();
    document.text = text;
    document.version = 3;
    listeners.change({ document });
    await diagnosis();
    const place = { line: 1, character: 15 }; // in `edge`, of the body
    answers.hover = await providers.registerHoverProvider.provideHover(document, place);
    answers.definition = await providers.registerDefinitionProvider.provideDefinition(document, place);
    answers.references = await providers.registerReferenceProvider.provideReferences(document, place, {
      includeDeclaration: true,
    });
    answers.prepared = await providers.registerRenameProvider.prepareRename(document, place);
    answers.renamed = await providers.registerRenameProvider.provideRenameEdits(document, place, "arc");
    answers.refused = await providers.registerRenameProvider
      .provideRenameEdits(document, place, "1")
      .catch((error) => error.message);
    answers.completed = await providers.registerCompletionItemProvider.provideCompletionItems(document, place);
    answers.symbols = await providers.registerDocumentSymbolProvider.provideDocumentSymbols(document);
    answers.formatted = await providers.registerDocumentFormattingEditProvider.provideDocumentFormattingEdits(document, {
      tabSize: 4,
      insertSpaces: true,
    });
    await providers["lftj.restart"]();
    answers.restarted = await diagnosis();
  }
  await deactivate();
  console.log(JSON.stringify(answers));
}

main();
