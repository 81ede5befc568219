# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    ftl_adopt.c
    ftl_capacity.c
    ftl_checkpoint.c
    ftl_checkpoint_pieces.c
    ftl_collect.c
    ftl_keep_repair.c
    ftl_move.c
    ftl_power.c
    ftl_scrub.c
    ftl_wipe_keep.c
)
