# SPDX-License-Identifier: BSD-2-Clause
"""The process per instance that runs its drives, hosts and switches."""
