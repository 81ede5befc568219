# SPDX-License-Identifier: BSD-2-Clause
"""The project's own tests use the same plug-in as other people's (docs/python.md)."""

pytest_plugins = ["essd.pytest_plugin"]
