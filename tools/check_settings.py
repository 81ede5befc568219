#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that what is made from firmware/settings/settings.toml follows it."""

import sys

import settings_gen

sys.exit(settings_gen.main(["--check"]))
