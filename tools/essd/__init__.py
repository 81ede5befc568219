# SPDX-License-Identifier: BSD-2-Clause
"""The essd command: builds, starts, watches and tests the emulated drive."""
