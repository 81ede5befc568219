# SPDX-License-Identifier: BSD-2-Clause
"""Topologies: several drives, hosts, switches and the cables between them."""
