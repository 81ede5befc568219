#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check that all files generated from firmware/settings/settings.toml are current."""

import sys

import settings_gen

sys.exit(settings_gen.main(["--check"]))
