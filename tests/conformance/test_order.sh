#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The tests that the file of --order names run first, in its order, and no test
# gets lost; a name that no test has is refused.
# Usage: test_order.sh ESSD_CONFORM
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

names() {
    "$1" --list --all --only cm.dreq,roce.ack "$2" "$3" | cut -d ' ' -f 1
}

names "$1" --seed 1 > "$folder/as-listed"
sed -n '$p' "$folder/as-listed" > "$folder/first"
sed -n 4p "$folder/as-listed" >> "$folder/first"
sed -n 2p "$folder/as-listed" >> "$folder/first"
# A test that is named twice is there once.
cat "$folder/first" "$folder/first" > "$folder/order"
names "$1" --order "$folder/order" > "$folder/ordered"
head -n 3 "$folder/ordered" | cmp - "$folder/first"
sort "$folder/as-listed" > "$folder/sorted"
test "$(wc -l < "$folder/sorted")" -gt 6
sort "$folder/ordered" | cmp - "$folder/sorted"

echo cm.dreq.frob >> "$folder/order"
if names "$1" --order "$folder/order" 2> "$folder/said" | grep .; then
    exit 1
fi
grep -q "^essd_conform: --order: no test of this run is named cm.dreq.frob$" "$folder/said"
