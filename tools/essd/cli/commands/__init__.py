# SPDX-License-Identifier: BSD-2-Clause
"""The commands of essd; each file of this folder is imported and adds its own."""

import importlib
import pkgutil

# These come first in the help, each in its group; other files follow by name.
FIRST = ("run", "look", "disturb", "develop")


def load() -> None:
    """Import every file of this folder."""
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    for name in [*FIRST, *sorted(set(names) - set(FIRST))]:
        importlib.import_module(f"{__name__}.{name}")
