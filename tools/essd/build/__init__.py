# SPDX-License-Identifier: BSD-2-Clause
"""Builds what runs: firmware, QEMU, Linux guests, programs for this machine."""
