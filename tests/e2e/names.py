# SPDX-License-Identifier: BSD-2-Clause
"""Names of the instances that the end-to-end tests start."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]


def base(environ: Mapping[str, str], checkout: Path = CHECKOUT) -> str:
    """What the names begin with: $ESSD_E2E, or a word for this checkout.

    All runs of one user share a folder of instances, and a run resets and removes those
    with its names: two runs in different checkouts must have different ones.
    """
    return environ.get("ESSD_E2E") or (
        "e2e-" + hashlib.sha256(str(checkout.resolve()).encode()).hexdigest()[:4])


def session(environ: Mapping[str, str], checkout: Path = CHECKOUT) -> str:
    """The same for one of the workers that share the tests."""
    return base(environ, checkout) + environ.get("PYTEST_XDIST_WORKER", "").replace("g", "")
