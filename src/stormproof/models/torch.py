"""torch: TorchScript files, and modules that Python code builds, with weights from a state dict.

    torch:model.pt,card=card.yaml                      TorchScript (torch.jit.load)
    torch:weights.pth,module=package.module:factory    a state dict, loaded with weights_only=True
    torch:package.module:factory                       a module that contains its weights

Weights are never unpickled: a pickle can run any code when it is opened.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stormproof.core.errors import InvalidOption, ModelError, first_line
from stormproof.core.loading import framework, load_attribute
from stormproof.core.prediction_batch import JoinedBoxes
from stormproof.core.spec import Spec
from stormproof.models.card import Card, assemble_card, chosen_outputs, read_card
from stormproof.models.geometry import Fit
from stormproof.models.model import ADAPTERS, Model, Precomputed, fingerprint, model_file
from stormproof.models.network import Network, Outputs, usual_batch
from stormproof.models.predictions import as_array
from stormproof.models.sources import source_files
from stormproof.models.torch_detector import TorchDetector, returns_predictions

_DETECTIONS = ("boxes", "labels", "scores", "masks")


@ADAPTERS.declare("torch")
def open_torch(
    main: str,
    *,
    module: str | None = None,
    card: str | None = None,
    classes: str | None = None,
    decoder: str | None = None,
    threads: int = 1,
    batch: int | None = None,
    device: str = "cpu",
    score: float | None = None,
    options: dict[str, str] | None = None,
) -> Model | Precomputed:
    """Open a module; its card says how to feed it and read its outputs, which a module does not show.

    A module that answers with dictionaries of boxes, scores and labels needs none.
    """
    torch = torch_on(device, threads, extra="torch")
    built = module or (main if ":" in main and not Path(main).exists() else None)
    weights = None if built == main else model_file(main, "a torch model")
    net = _load_script(torch, weights, device) if built is None else _build(torch, built, weights, device)
    files = (*((weights,) if weights else ()), *_sources(built))
    settings = {"classes": classes, "decoder": decoder, "score": score, "options": options}
    name = weights.stem if weights else main.rpartition(":")[2]
    given, _ = read_card(weights, card)
    needs_card = any(key in given for key in ("decoder", "input")) or decoder or score is not None
    if not needs_card and returns_predictions(net, device):
        return _detector(net, name, card, classes, files, device)
    whole, names = assemble_card(weights, card, {"input": {}}, settings, name)
    return Network(
        name=whole.name or name,
        card=whole,
        forward=ModuleForward(torch, net, whole, device),
        files=files,
        names=names,
        batch=usual_batch(batch, device),
        in_torch=True,
        takes_list=whole.decoder == "torchvision",
    )


def torch_on(device: str, threads: int, *, extra: str) -> Any:
    """torch with that many threads; an error, before anything is opened, if it lacks the device."""
    torch = framework("torch", extra=extra)
    torch.set_num_threads(threads)
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:  # the latter where torch is built without CUDA
        raise InvalidOption(f"device={device}: {first_line(error)}.") from None
    return torch


def _detector(
    net: Any, name: str, card: str | None, classes: str | None, files: tuple[Path, ...], device: str
) -> Model | Precomputed:
    """A module that returns predictions, under the names that a card or the spec gives."""
    from stormproof.models.naming import take_naming
    from stormproof.models.python import FunctionModel

    function = TorchDetector(net, device)
    identity = fingerprint(files, {"module": "returns predictions", "classes": function.classes})
    given = {key: value for key, value in (("card", card), ("classes", classes)) if value is not None}
    _, _, naming = take_naming(Spec("torch", name, given), {})
    return naming.apply(FunctionModel(function, name, function.classes, function.classes, identity))


def _load_script(torch: Any, path: Path | None, device: str) -> Any:
    """A TorchScript module; torch's reader builds only tensors and TorchScript code."""
    try:
        return torch.jit.load(str(path), map_location=device).eval()
    except RuntimeError as error:
        raise ModelError(
            f"{path} is not TorchScript ({str(error).splitlines()[0]:.120}). For a state dict, add "
            ",module=package.module:factory; a pickled module is refused, since opening it can run any code."
        ) from None


def load_checkpoint(torch: Any, path: Path) -> Mapping[str, Any]:
    """The content of a file of tensors and plain containers; a file with anything else is not opened."""
    if path.suffix == ".safetensors":
        tensors: Mapping[str, Any] = framework("safetensors.torch", extra="hf").load_file(str(path))
        return tensors
    try:
        found = torch.load(str(path), map_location="cpu", weights_only=True)
    except Exception as error:  # UnpicklingError, RuntimeError or EOFError
        fix = "save it again with torch.save(model.state_dict(), path)"
        raise ModelError(f"{path} contains more than weights, or is broken; {fix}.") from error
    if not isinstance(found, Mapping):
        raise ModelError(f"{path} contains {type(found).__name__}, not a state dict.")
    return found


def state_dict(checkpoint: Mapping[str, Any]) -> Mapping[str, Any]:
    """The weights in a checkpoint, which may be under a key of their own."""
    keys = ("state_dict", "model", "model_state_dict")
    return next((checkpoint[key] for key in keys if isinstance(checkpoint.get(key), Mapping)), checkpoint)


def _build(torch: Any, attribute: str, weights: Path | None, device: str) -> Any:
    """The module that Python code is or makes, with its weights."""
    found = load_attribute(attribute)
    net = found if isinstance(found, torch.nn.Module) else found()
    if not isinstance(net, torch.nn.Module):
        raise InvalidOption(f"{attribute} made {type(net).__name__}, not a torch.nn.Module.")
    if weights is not None:
        fill(net, load_checkpoint(torch, weights), weights)
    return net.to(device).eval()


def fill(net: Any, checkpoint: Mapping[str, Any], path: Path) -> None:
    """Load weights into a module; all names must match, so that no weight keeps its random value."""
    try:
        net.load_state_dict(state_dict(checkpoint), strict=True)
    except RuntimeError as error:
        lines = str(error).splitlines()
        raise ModelError(
            f"{path} does not fit the module: {' '.join(line.strip() for line in lines[1:3])}"
        ) from None


def _sources(attribute: str | None) -> tuple[Path, ...]:
    """The files of the code that builds a module."""
    if attribute is None:
        return ()
    found = load_attribute(attribute)
    code = found if inspect.isroutine(found) or inspect.isclass(found) else type(found)
    try:
        file = inspect.getsourcefile(code)
    except TypeError:  # built in
        return ()
    return source_files(Path(file), code.__module__) if file else ()


class ModuleForward:
    """Runs a module; torchvision's detectors take a list of images, all others a batch."""

    def __init__(self, torch: Any, net: Any, card: Card, device: str) -> None:
        self._torch, self._net, self._card, self._device = torch, net, card, device

    def __call__(self, batch: Any) -> Outputs:
        found = self.boxes(batch)
        assert not isinstance(found, JoinedBoxes)
        return found

    def boxes(
        self, batch: Any, fits: Sequence[Fit] = (), background: Sequence[int] = ()
    ) -> JoinedBoxes | Outputs:
        """The boxes of a batch, decoded on the device if `fits` are given and it can be done there, else the
        outputs on the host."""
        from stormproof.models.on_device.boxes import decode_tables, keep_candidates
        from stormproof.models.on_device.lists import decode_lists

        with self._torch.inference_mode():
            given = [*map(self._to_device, batch)] if isinstance(batch, list) else self._to_device(batch)
            outputs = flatten(self._net(given), self._card.outputs)
            kept = keep_candidates(outputs, self._card)
            if fits:
                decode = decode_lists if kept is outputs else decode_tables
                found = decode(kept, fits, self._card, background)
                if found is not None:
                    return found
        return [[*map(as_array, one)] if isinstance(one, list) else as_array(one) for one in kept]

    def _to_device(self, given: Any) -> Any:
        array = isinstance(given, np.ndarray)
        return (self._torch.from_numpy(np.ascontiguousarray(given)) if array else given).to(self._device)


def flatten(answer: Any, names: Sequence[str] | None) -> list[Any]:
    """The tensors that a module returned, in the order of `names`, else as they come; of a list of
    detections, a list for each part."""
    match answer:
        case [Mapping(), *_, list() as detections]:  # scripted torchvision detectors return losses first
            answer = detections
    if isinstance(answer, list) and answer and isinstance(answer[0], Mapping):
        return [[found[key] for found in answer] for key in _DETECTIONS if key in answer[0]]
    if isinstance(answer, Mapping):
        return [answer[name] for name in chosen_outputs(names, [*answer])]
    if isinstance(answer, tuple | list):
        return [tensor for part in answer for tensor in flatten(part, None)]
    return [answer]
