# SPDX-License-Identifier: BSD-2-Clause
"""Who looks at a system of this process before it ends."""

from collections.abc import Callable
from typing import Any

# Functions that System.close() calls with the system, which still runs.
before_end: list[Callable[[Any], None]] = []
