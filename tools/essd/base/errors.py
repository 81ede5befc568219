# SPDX-License-Identifier: BSD-2-Clause
"""The base class of the tools' errors, and the time limits of their processes."""

from collections.abc import Sequence

# Time limits, in seconds, of programs that only look something up and of builds.
# They end a program that hangs and are far above the time that the work takes.
LOOK_UP_S = 120
BUILD_S = 2 * 3600


class EssdError(Exception):
    """An error for the user; the text is one line that says what happened."""


class Mistakes(EssdError):
    """Something is not valid in several places; each line names one mistake."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = list(lines)
