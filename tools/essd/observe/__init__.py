# SPDX-License-Identifier: BSD-2-Clause
"""What happens in an instance: state, metrics, traces, captures, losses."""
