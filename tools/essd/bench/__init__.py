# SPDX-License-Identifier: BSD-2-Clause
"""`essd bench` and `essd compare`: how fast the drive is, and what it is compared with."""
