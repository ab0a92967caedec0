"""`lftj lsp`: start the language server, or say what it needs."""

from __future__ import annotations

from lftj.cli.outcome import Code, UsageError


def serve_editor(facts: str | None) -> int:
    """Answer an editor on stdin and stdout until it says that it is done. `facts`: the folder of the input files."""
    try:
        import pygls.lsp.server  # noqa: F401
    except ImportError:
        raise UsageError(
            "the language server needs pygls",
            why="a plain installation does not have it",
            remedy="install it with `pip install 'lftj[lsp]'`",
        ) from None
    from lftj.cli.language_server import serve

    serve(facts)
    return Code.DONE
