# SPDX-License-Identifier: BSD-2-Clause
"""Commands for several parts of an instance at once: essd power-cut --part drive[3-5].

If the command fails for one part, it still runs for the others.  All failures are
listed at the end, and the exit status is then 1.
"""

from collections.abc import Callable, Sequence

from ..base import chosen, patterns, show
from ..base.errors import EssdError, Mistakes
from .instance import Instance

Act = Callable[[Instance], str]


def one(instance: Instance, part: str) -> Instance:
    """The instance with the drive that `part` names; EssdError if it names several."""
    if not part:
        return instance
    names = patterns.select(part, instance.drives, "drive")
    if len(names) > 1:
        raise EssdError(f"{part} names {chosen.listed(names, 'and')}, and this command "
                        "works on one drive")
    return instance.of(names[0])


def run(instance: Instance, pattern: str, act: Act, of_any_part: bool = False) -> None:
    """Call `act` for each part that the pattern names, or for the only drive if
    the pattern is empty.

    `act` returns the text that says on the screen what it has done.
    """
    if not pattern:
        show.note(act(instance))
        return
    names: Sequence[str] = instance.drives
    if of_any_part:
        names = list(instance.status()["parts"])
    found = patterns.select(pattern, names, "part" if of_any_part else "drive")
    failures = []
    for name in found:
        try:
            show.note(f"{name}: {act(instance.of(name))}")
        except EssdError as error:
            text = str(error)
            failures.append(text if name in text else f"{name}: {text}")
    if failures and len(found) > 1:
        failures.append(f"{len(failures)} of {len(found)} parts failed")
    if failures:
        raise Mistakes(failures)
