"""A page of `stormproof explore` in a browser, and the runs that its tests explore."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from helpers.scored_models import MODELS
from helpers.visits import AXE

BOXES, MASKS = f"{MODELS}:contrast_boxes", f"{MODELS}:contrast_masks"
CONDITIONS = "fog,gaussian_noise,contrast[factor=0.3]"


def map_run(folder: Path) -> tuple[Path, str]:
    """A run of a model that guesses label maps, and the model's spec."""
    import stormproof as sp

    data = "world:test,size=96x60,count=4"
    (folder / "guess.py").write_text(
        "import numpy as np\nfrom stormproof import Prediction, open_dataset\n"
        "def by_brightness(images):\n"
        "    return [Prediction(semantic=(image[..., 1] // 29).astype(np.uint8)) for image in images]\n"
        f"by_brightness.semantic_classes = open_dataset({data!r}).semantic_classes\n"
    )
    model = f"{folder}/guess.py:by_brightness"
    sp.run(model, data, out=folder / "run", conditions="fog", engine="local", progress=False)
    return folder / "run", model


class Desk:
    """One open page, and everything it should not have done."""

    def __init__(self, page: Any, link: str) -> None:
        self.page, self.link, self.faults = page, link, []  # type: ignore[var-annotated]
        page.on("console", lambda m: self.faults.append(f"{m.type}: {m.text}") if m.type == "error" else None)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("dialog", lambda dialog: (self.faults.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: self._asked(request.url))
        self.open(link)

    def _asked(self, url: str) -> None:
        if not url.startswith((self.link.partition("#")[0], "blob:", "data:")):
            self.faults.append(f"request {url}")

    def open(self, link: str) -> None:
        self.page.goto("about:blank")
        self.page.goto(link)
        self.page.wait_for_selector('html[data-ready="yes"]', state="attached", timeout=120_000)

    def wait_for_look(self, condition: str) -> None:
        self.page.wait_for_function(
            "(text) => document.documentElement.dataset.look?.split(' ').slice(1).join(' ') === text",
            arg=condition,
        )

    def pixels(self, condition: str) -> Any:
        """The pixels of the image that is shown, as the browser has them."""
        script = """(text) => { const image = document.querySelector(`.view[data-condition="${text}"] img`);
          const canvas = document.createElement('canvas');
          canvas.width = image.naturalWidth; canvas.height = image.naturalHeight;
          const pen = canvas.getContext('2d'); pen.drawImage(image, 0, 0);
          const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
          return [canvas.height, canvas.width, [...data]]; }"""
        height, width, values = self.page.evaluate(script, condition)
        return np.array(values, np.uint8).reshape(height, width, 4)[..., :3]

    def drawn(self, condition: str, place: int = 0) -> list[dict[str, str]]:
        """What is drawn over the image of a model."""
        script = """([text, place]) => [...document.querySelectorAll(
          `.of[data-subject="${place}"] .view[data-condition="${text}"] svg g`)].map(g => ({...g.dataset}))"""
        found: list[dict[str, str]] = self.page.evaluate(script, [condition, place])
        return found

    def require_no_findings(self) -> None:
        """Nothing went wrong, nothing is wider than the window, and axe-core has no finding."""
        width = self.page.viewport_size["width"]
        assert self.page.evaluate("document.documentElement.scrollWidth") <= width
        self.page.evaluate(AXE.read_text())
        told = self.page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
        findings = [
            (f["id"], f["nodes"][0]["html"][:120], f["nodes"][0]["failureSummary"][:300])
            for f in told["violations"]
        ]
        assert findings == []
        assert self.faults == []

    def counts(self, line: int = 0) -> list[str]:
        """A line of the table of counts: objects, true positives, missed, false positives, lost, new."""
        found: list[str] = self.page.locator("#counts tbody tr").nth(line).locator("td").all_inner_texts()
        return found
