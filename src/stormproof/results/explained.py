"""What the columns of tables mean: measures and aggregates in their own words."""

from __future__ import annotations

import inspect

from stormproof.metrics.aggregate import AGGREGATES
from stormproof.metrics.metric import measures

# Columns of the decision table and of others, which are no aggregates of their own.
_COLUMNS = {
    "P": "the score on clean images; in tables also called clean.",
    "clean": "the score on clean images, P.",
    "under corruption": "the mean score over all corruptions: mPC over a whole benchmark or suite.",
    "mean": "the mean score over the conditions that were run; over a whole benchmark or suite it is mPC.",
    "kept": "the share of the clean score left under corruption; over a whole benchmark or suite, rPC.",
    "% of P left": "the share of the clean score that is left under corruption, in per cent.",
    "hurt most by": "the corruptions that no other clearly exceeds in harm, if they are few.",
    "clean, against the first": "the difference from the first run's clean score, with its interval.",
    "corrupted, against the first": "the difference from the first run's mean under corruption, with its "
    "interval.",
    "95 %": "the interval that holds the true value for new images like these in 95 % of such sets.",
    "clear": "below 5 % by chance, corrected for all differences that are tested together (Holm).",
    "margin": "how far the estimate is on the good side of a requirement's threshold.",
}


def explanations() -> dict[str, str]:
    """Every name that a table may show, and what it means."""
    words_by_name = dict(_COLUMNS)
    for name, declared in AGGREGATES.items():
        words = inspect.getdoc(declared.function)
        if words:
            words_by_name.setdefault(name, " ".join(words.split("\n\n")[0].split()))
    return words_by_name | {name: _of_measure(name) for name in measures()}


def _of_measure(name: str) -> str:
    measure = measures()[name]
    better = "higher" if measure.higher else "lower"
    unit = "in per cent" if measure.fraction else "not in per cent"
    return f"{measure.words.rstrip('.')} ({unit}, {better} is better)."


def explanation(name: str) -> str | None:
    """What a name means, by whatever case it is written in; None if nothing is called so."""
    known = explanations()
    lower = {each.lower(): words for each, words in reversed(known.items())}
    return known.get(name) or lower.get(name.lower())
