# SPDX-License-Identifier: BSD-2-Clause
"""The files of a drive: flash, firmware images, media, NAND flash, snapshots."""
