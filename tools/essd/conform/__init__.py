# SPDX-License-Identifier: BSD-2-Clause
"""`essd conform`: the conformance suite, its reports, and drives with defects."""
