# SPDX-License-Identifier: BSD-2-Clause
"""`essd demo`: the steps of the demonstration, and its report."""
