"""docs/notebook.ipynb, executed cell by cell in a real kernel, and `run.explore()` after its last cell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "notebook.ipynb"
EXPLORE = """
import urllib.request
server = run.explore()
print(len(urllib.request.urlopen(server.link).read()) > 1000)
"""


@pytest.mark.slow
def test_the_notebook_runs(tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient to execute a notebook")
    nbformat = pytest.importorskip("nbformat", reason="needs nbformat to read a notebook")
    for package in ("ipykernel", "pandas", "starlette", "uvicorn"):
        pytest.importorskip(package, reason=f"the notebook needs {package}")
    book = nbformat.read(NOTEBOOK, as_version=4)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in code), "strip the outputs before committing the notebook"
    install = next(cell for cell in code if "install" in cell.metadata.get("tags", ()))
    assert install is code[0]
    install.source = ""  # programs/wheel.py runs it, and every cell on all 16 images under every condition
    for whole, less in (("limit=16", "limit=4"), ("noise@3,blur@3,weather@3,digital@3", "noise@3,fog@3")):
        (cell,) = (cell for cell in code if whole in cell.source)
        cell.source = cell.source.replace(whole, less)
    for cell in code:  # without workers, whose start would take longer than their work
        cell.source = cell.source.replace("conditions=CONDITIONS,", 'conditions=CONDITIONS, engine="local",')
    explore = nbformat.v4.new_code_cell(EXPLORE)
    book.cells.append(explore)
    nbclient.NotebookClient(book, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = {kind for cell in code for output in cell.outputs for kind in output.get("data", {})}
    assert {"image/png", "text/html", "text/plain"} <= shown
    run = next(cell for cell in code if "sp.run(" in cell.source)
    texts = [output.get("data", {}).get("text/plain", "") for output in run.outputs]
    assert any("cells (100%)" in text for text in texts), "progress is one line below the cell"
    assert any("<run runs/street-grid" in text for text in texts)
    assert "<iframe" in code[-1].outputs[-1].data["text/html"]
    assert (tmp_path / "report.html").stat().st_size > 100_000
    html = next(output.data["text/html"] for output in explore.outputs if "data" in output)
    assert re.search(r'<iframe[^>]*src="http://127\.0\.0\.1:\d+/', html.replace("\n", " "))
    assert any(output.get("text", "").strip() == "True" for output in explore.outputs)
