# SPDX-License-Identifier: BSD-2-Clause
"""The settings of a drive: their description, their values, and the block in flash."""
