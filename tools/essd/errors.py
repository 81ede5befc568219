# SPDX-License-Identifier: BSD-2-Clause
"""The base class of the tools' errors, and the time limits of their processes."""

# Programs that only look something up, and builds.  A limit ends what hangs;
# none of them is a measure of how long the work takes.
LOOK_UP_S = 120
BUILD_S = 2 * 3600


class EssdError(Exception):
    """Something went wrong; the text is one clear line for the user."""
