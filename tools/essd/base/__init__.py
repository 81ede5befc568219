# SPDX-License-Identifier: BSD-2-Clause
"""What every other package may use: errors, paths, names, files, output."""
