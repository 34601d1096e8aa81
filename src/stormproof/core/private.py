"""What must not leave this machine: passwords and keys in addresses, and folders that name people.

`without_secrets` is for everything that is stored or printed, `shareable` for pages and evidence, which are
passed on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import Any

# What is no secret: a user part whose password is a variable of the environment; a query whose values all
# are, since a key may stand beside one; and the mark of a query that was left out before.
_VARIABLE = r"\$\{\w+\}"
_OPEN_USER = re.compile(rf"(?:[^:]*:)?{_VARIABLE}@")
_OPEN_QUERY = re.compile(rf"[?#](?:…|(?:[^=&]*=)?{_VARIABLE}(?:&(?:[^=&]*=)?{_VARIABLE})*)")
# An address within any text. In a spec, options follow after a comma; one of the address is written \,
_PLAIN = r"""[^\s/?#,'"<>\\]"""
_ADDRESS = re.compile(
    rf"""(?P<scheme>https?:)//(?P<user>{_PLAIN}*@)?(?P<rest>{_PLAIN}+(?:/(?:\\,|[^\s?#,'"<>\\])*)?)"""
    r"""(?P<query>[?#](?:\\,|[^\s,'"<>\\])*)?""",
    re.IGNORECASE,
)
# An absolute path at the start of a text, or after what separates the parts of specs and options.
_PATH = re.compile(r"(?P<before>^|(?<=[:,=]))(?P<path>/(?!/)(?:\\,|[^,])*|[A-Za-z]:\\(?:\\,|[^,])*)")
_IN_WORDS = re.compile(r"(?<![\w.~/:-])/(?!/)(?:[\w.+@-]+/)+[\w.+@-]*")


def without_secrets(text: str, mark: str = "") -> str:
    """Text whose addresses have no user part and no query, which may hold passwords and keys.

    Variables of the environment, `${NAME}`, stay where nothing else could be the secret. `mark`, such as
    `?…`, stands where a query was, and stays there.

    >>> without_secrets("http://me:pw@host:80/predict?api_key=7,timeout=5")
    'http://host:80/predict,timeout=5'
    >>> without_secrets("http://host/predict?api_key=${KEY}")
    'http://host/predict?api_key=${KEY}'
    """

    def shown(address: re.Match[str]) -> str:
        user, query = ((address[part] or "") for part in ("user", "query"))
        user = user if _OPEN_USER.fullmatch(user) else ""
        query = query if _OPEN_QUERY.fullmatch(query) else ""
        mark_here = mark if address["query"] and not query else ""
        return f"{address['scheme']}//{user}{address['rest']}{query}{mark_here}"

    return _ADDRESS.sub(shown, text)


def scrub(value: Any) -> Any:
    """A setting, or a collection of settings, whose texts are without secrets."""
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, Mapping):
        return {key: scrub(entry) for key, entry in value.items()}
    return [scrub(entry) for entry in value] if isinstance(value, list | tuple) else value


def shareable(text: str, folder: str | None = None) -> str:
    """A path, a spec or an argument of a command without secrets, and without absolute paths.

    A path below `folder`, where the command was called, is written relative to it; another one by its name.

    >>> shareable("coco:/home/me/coco/val.json,images=/home/me/run/val", folder="/home/me/run")
    'coco:val.json,images=val'
    """
    return _PATH.sub(lambda match: _short(match["path"], folder), without_secrets(text))


def shareable_words(sentence: str) -> str:
    """A sentence, such as an error, without secrets and without absolute paths.

    >>> shareable_words("/home/me/a.png: cannot be decoded")
    'a.png: cannot be decoded'
    """
    return _IN_WORDS.sub(lambda match: PurePosixPath(match[0]).name, without_secrets(sentence))


def _short(text: str, folder: str | None) -> str:
    kind: type[PurePath] = PurePosixPath if text.startswith("/") else PureWindowsPath
    path = kind(text)
    inside = folder is not None and kind(folder).name != "" and path.is_relative_to(kind(folder))
    return path.relative_to(kind(folder)).as_posix() if inside and folder is not None else path.name
