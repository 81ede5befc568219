#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A test with the same seed sends the same bits, whether it runs alone or among
# others; otherwise a failure could not be reproduced.
# Usage: test_same_alone.sh ESSD_CONFORM
set -eu

test=robust.mix.worse
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/among" "$folder/alone" "$folder/other"
"$1" --native --seed 5 --only "smoke,cm.req,$test" --pcap "$folder/among" > /dev/null
"$1" --native --seed 5 --only "$test" --pcap "$folder/alone" > /dev/null
"$1" --native --seed 6 --only "$test" --pcap "$folder/other" > /dev/null
cmp "$folder/among/$test.pcap" "$folder/alone/$test.pcap"
! cmp -s "$folder/alone/$test.pcap" "$folder/other/$test.pcap"
