# SPDX-License-Identifier: BSD-2-Clause
"""`python -m essd`: what the launcher starts."""

from .cli import main

if __name__ == "__main__":
    main()
