# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    ftl_dead.c
    ftl_health_pages.c
    ftl_page_contents.c
    ftl_pages.c
    ftl_sizes.c
    ftl_trailer.c
    ftl_trim.c
    ftl_wear_pages.c
)
