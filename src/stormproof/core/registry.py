"""The one way in which things are registered: by name, when the module that declares them is imported.

A room makes a `Registry` for each kind of thing that can be added, at one of the points that
`core.extensions` lists. Our own files and a user's files (`--plugin`) declare things with a decorator.
Installed packages offer them as entry points. Nothing is imported before it is looked up: a look-up first
imports the file that has the name of the thing, and all files only if that one does not declare it. Kinds
that our own files may declare side by side (registries of one `package`: metrics, tasks, aggregates) may
stand side by side in a package's module too, and an entry point of any of them is enough.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from threading import get_ident
from types import ModuleType
from typing import Any, Generic, TypeVar, cast

from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.core.extensions import ExtensionPoint

Thing = TypeVar("Thing")
Declared = TypeVar("Declared", bound=Callable[..., Any])
_EVERY: list[Registry[Any]] = []


class Registry(Mapping[str, Thing], Generic[Thing]):
    """The things of one kind by name: those of our own `package`, then those of other packages.

    `order` sorts them for listings; things that compare equal stay in the order of their declaration.
    """

    def __init__(
        self, point: ExtensionPoint, package: str = "", *, order: Callable[[Thing], Any] | None = None
    ) -> None:
        self.point, self._package, self._order = point, package, order
        self._things: dict[str, Thing] = {}
        self._modules: dict[str, str | None] = {}  # where each thing was declared
        self._broken: dict[str, str] = {}  # entry points that cannot be loaded, and why
        self._edition = 0  # how often any of this has changed
        self._loaded: set[tuple[str, tuple[str, ...]]] = set()  # what has been, and on which search path
        self._loading: set[tuple[str, int]] = set()  # what is being loaded, and by which thread
        _EVERY.append(self)

    def add(self, name: str, thing: Thing, *, module: str | None) -> None:
        """Register a thing that `module` declares; None for one that any module may replace.

        A module may declare a name again: its file was changed, or a notebook cell was run twice.
        """
        if name in self._things and self._modules[name] not in (None, module):
            both = f"one by {self._modules[name]}, one by {module}"
            raise ValueError(f"two {self.point.plural} are named {name!r}: {both}")
        self._things[name], self._modules[name] = thing, module
        self._edition += 1

    def declare(self, name: str) -> Callable[[Declared], Declared]:
        """Register what a decorator is put on, a function or a class, under a name."""

        def register(thing: Declared) -> Declared:
            self.add(name, cast(Thing, thing), module=thing.__module__)
            return thing

        return register

    @property
    def declared(self) -> Mapping[str, Thing]:
        """What has been declared so far; nothing is imported."""
        return self._things

    @property
    def edition(self) -> int:
        """Rises whenever the things change: what follows from all of them is computed once per edition."""
        self._load()
        return self._edition

    def remove(self, name: str) -> None:
        del self._things[name], self._modules[name]
        self._edition += 1

    def declared_by(self, module: str) -> list[str]:
        """The names of the things that a module declared."""
        return [name for name, place in self._modules.items() if place == module]

    def find(self, name: str, hint: str = "") -> Thing:
        """The thing of that name; the error suggests the nearest one."""
        try:
            return self[name]
        except KeyError:
            hint = hint or f"There are {', '.join(self)}."
            raise UnknownName(self.point.kind, name, self, hint) from None

    def __getitem__(self, name: str) -> Thing:
        if name not in self._things:
            self._seek(name)
        if name in self._broken:
            raise InvalidOption(self._broken[name])
        return self._things[name]

    def __contains__(self, name: object) -> bool:
        if name not in self._things and isinstance(name, str):
            self._seek(name)
        return name in self._things or name in self._broken

    def __iter__(self) -> Iterator[str]:
        self._load()
        names = list(self._things)
        order = self._order
        if order is not None:
            names.sort(key=lambda name: order(self._things[name]))
        return iter([*names, *self._broken])

    def __len__(self) -> int:
        self._load()
        return len(self._things) + len(self._broken)

    def __eq__(self, other: object) -> bool:
        return self is other  # a mapping would compare everything that it holds

    __hash__ = object.__hash__

    def _seek(self, name: str) -> None:
        if self._package and name in module_names(self._package):
            import_module(f"{self._package}.{name}")
        if name not in self._things:
            self._load()

    def _load(self) -> None:
        """Import every file of the package and everything that other packages offer."""
        with self._once("everything") as wanted:
            if wanted:
                for name in sorted(module_names(self._package)) if self._package else ():
                    import_module(f"{self._package}.{name}")
                self.load_offered()

    def load_offered(self) -> None:
        """Import what other packages offer; no file of our own is imported."""
        with self._once("offered") as wanted:
            if wanted:
                package = self._package
                beside = [each.point.group for each in _EVERY if package and each._package == package]
                for group in dict.fromkeys([self.point.group, *beside]):
                    for entry in entry_points_of(group):
                        if group == self.point.group or not entry.attr:
                            self._take(entry)

    @contextmanager
    def _once(self, what: str) -> Iterator[bool]:
        """Whether the block has something to load: it does so once per search path.

        A module that is being imported may look things up, which loads nothing again. Another thread does,
        and so waits for the modules that the first one is importing.
        """
        done, mine = (what, tuple(sys.path)), (what, get_ident())
        if done in self._loaded or mine in self._loading:
            yield False
            return
        self._loading.add(mine)
        try:
            yield True
        finally:
            self._loading.remove(mine)
        self._loaded.add(done)

    def _take(self, entry: EntryPoint) -> None:
        """Import what a package offers: a module that declares things, or one thing; ours take precedence."""
        if entry.name in self._things:
            return
        try:
            thing = entry.load()
        except Exception as error:  # somebody else's package; all others still work
            what = f"{entry.group} {entry.name} = {entry.value}"
            self._broken[entry.name] = f"Cannot load {what}: {type(error).__name__}: {error}"
            self._edition += 1
            return
        if not isinstance(thing, ModuleType):
            self.add(entry.name, thing, module=thing.__module__)


def declares_anything(module: str) -> bool:
    """Whether a module has declared something in any registry."""
    return any(registry.declared_by(module) for registry in _EVERY)


def entry_points_of(group: str) -> tuple[EntryPoint, ...]:
    """What installed packages offer in an entry point group of Stormproof."""
    return _read_entry_points(tuple(sys.path)).get(group, ())


@cache
def _read_entry_points(path: tuple[str, ...]) -> dict[str, tuple[EntryPoint, ...]]:
    """By group, read once per search path: beside two hundred packages, reading takes 30 ms."""
    points = entry_points()
    groups = [group for group in points.groups if group.startswith("stormproof.")]
    return {group: tuple(points.select(group=group)) for group in groups}


@cache
def module_names(package: str) -> frozenset[str]:
    """The modules of a package, found without importing any of them."""
    return frozenset(module.name for module in iter_modules(import_module(package).__path__))
