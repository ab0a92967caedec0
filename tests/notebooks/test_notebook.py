"""The tutorial notebook in a real kernel; and what only a kernel does: tracebacks, completion, the progress line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).resolve().parent.parent.parent / "examples" / "tutorial.ipynb"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
pytest.importorskip("ipykernel", reason="ipykernel is not installed: pip install 'lftj[dev]'")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install 'lftj[dev]'")
pytestmark = pytest.mark.jit_only  # interpreted, a kernel of numba takes as long as its time-out


def test_it_is_kept_without_outputs() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 10
    assert [(cell["outputs"], cell["execution_count"]) for cell in code] == [([], None)] * len(code)


# -- the tutorial ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cells() -> dict[str, list[dict[str, Any]]]:
    """The outputs of the tutorial's cells once it has run, by the text of the cell."""
    pytest.importorskip("pandas")
    import nbformat

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    return {cell["source"]: cell["outputs"] for cell in notebook.cells if cell["cell_type"] == "code"}


def outputs(cells: dict[str, list[dict[str, Any]]], start: str) -> list[dict[str, Any]]:
    """The outputs of the cell that begins so."""
    (found,) = [held for source, held in cells.items() if source.startswith(start)]
    return found


def shown(cells: dict[str, list[dict[str, Any]]], start: str) -> str:
    """The HTML that the cell which begins so shows last."""
    found: str = outputs(cells, start)[-1]["data"]["text/html"]
    return found


def test_every_cell_but_one_succeeds(cells: dict[str, list[dict[str, Any]]]) -> None:
    failed = [source for source, held in cells.items() for out in held if out["output_type"] == "error"]
    assert failed == ['db.query("may($who, act, folder)", whom="bo")']


def test_what_the_tutorial_shows(cells: dict[str, list[dict[str, Any]]]) -> None:
    database = shown(cells, "import lftj")
    assert "member(who:symbol, team:symbol)" in database
    assert database.count("evaluated when read") == 2
    assert "<td>ann</td><td>write</td><td>payroll</td>" in shown(cells, "import pandas")
    assert "<td>write</td><td>engine</td>" in shown(cells, 'db.query("may($who, act, folder)", who="bo")')
    assert "$but" in shown(cells, "may = db.prepare_query")
    assert "payroll" in shown(cells, 'may(who="ann"')
    preview = shown(cells, "with db.transaction() as tx:")
    assert 'class="inserted"' in preview
    assert 'class="erased"' in preview
    assert shown(cells, "tx.delta").count("<table>") == 4
    assert outputs(cells, "before = db.snapshot()")[-1]["text"] == (
        "cy may no longer: read home, write engine\n11 rows in the snapshot, 9 now\n"
    )
    assert "key order" in shown(cells, 'db.explain("may")')
    counted = outputs(cells, "db.metrics()")[-1]["data"]["text/plain"]
    assert counted == "(1, {'member': 1, 'within': 1, 'may': 1})"


def test_a_traceback_has_the_users_frames_only(cells: dict[str, list[dict[str, Any]]]) -> None:
    (error,) = [out for held in cells.values() for out in held if out["output_type"] == "error"]
    trace = COLOUR.sub("", "\n".join(error["traceback"]))
    assert error["ename"] == "ArgumentError"
    assert "Cell In[" in trace
    assert "whom" in trace
    assert "did you mean `who`?" in trace
    assert "lftj/results" not in trace
    assert ".py" not in trace


# -- a kernel ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kernel() -> Iterator[Any]:
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    try:
        run(client, "import lftj, time\ndb = lftj.Database('.decl edge(a:number)  .decl edges(a:number)')")
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def run(client: Any, code: str) -> list[tuple[str, dict[str, Any]]]:
    """The messages that a cell sends: (type, content)."""
    found: list[tuple[str, dict[str, Any]]] = []
    client.execute_interactive(
        code, timeout=120, output_hook=lambda message: found.append((message["msg_type"], message["content"]))
    )
    return found


def test_names_of_relations_are_completed(kernel: Any) -> None:
    run(kernel, "with db.transaction() as tx: tx.insert('edge', [(1,)])\ndelta = tx.delta")
    for text, names in (('db["', {"edge", "edges"}), ("x = db['ed", {"edge", "edges"}), ('delta["', {"edge"})):
        assert set(kernel.complete(text, reply=True, timeout=60)["content"]["matches"]) == names


def test_the_progress_line_comes_and_goes(kernel: Any) -> None:
    code = (
        "import lftj.progress\nlftj.progress.PATIENCE = 0.05\nwith db._progress.step('loading edge'): time.sleep(1.5)\n"
    )
    sent = [content for kind, content in run(kernel, code) if kind in ("display_data", "update_display_data")]
    texts = [content["data"]["text/plain"] for content in sent]
    assert texts[0].startswith("lftj: loading edge, ")
    assert texts[0].endswith(" (interrupt the kernel to stop)")
    assert texts[-1] == ""
    assert len({content["transient"]["display_id"] for content in sent}) == 1


def test_errors_in_every_mode(kernel: Any) -> None:
    run(kernel, "def mine():\n    return db['edgy']")
    for mode in "Context", "Plain", "Verbose", "Minimal":
        run(kernel, f"%xmode {mode}")
        ((_, error),) = [message for message in run(kernel, "mine()") if message[0] == "error"]
        trace = COLOUR.sub("", "\n".join(error["traceback"]))
        assert error["ename"] == "UnknownRelationError"
        assert "did you mean `edges`?" in trace or "did you mean `edge`?" in trace
        assert "answers.py" not in trace
        assert ("mine" in trace) == (mode != "Minimal")
    run(kernel, "%xmode Context")


def test_an_error_of_a_callback_keeps_the_users_frames(kernel: Any) -> None:
    code = "def inner():\n    with db.transaction() as tx:\n        tx.insert('nowhere', [(1,)])\ninner()"
    ((_, error),) = [message for message in run(kernel, code) if message[0] == "error"]
    trace = COLOUR.sub("", "\n".join(error["traceback"]))
    assert "inner()" in trace
    assert "transaction.py" not in trace
