# SPDX-License-Identifier: BSD-2-Clause
"""`essd cockpit`: a local web page of a running instance (docs/cockpit.md).

guard.py decides who may ask, server.py answers, and page.html, page.css and page.js
are what a browser gets.
"""
