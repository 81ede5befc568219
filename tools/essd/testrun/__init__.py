# SPDX-License-Identifier: BSD-2-Clause
"""`essd test` and `essd lint`: the stages, and what they run and measure."""
