# SPDX-License-Identifier: BSD-2-Clause
"""`essd bench`: how fast the drive is, and what it is compared with."""
