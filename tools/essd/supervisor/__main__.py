# SPDX-License-Identifier: BSD-2-Clause
"""`python -m essd.supervisor`: how instance.py starts a supervisor."""

from .supervisor import main

main()
