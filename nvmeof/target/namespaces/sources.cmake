# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    ana.c
    ns.c
    ns_manage.c
    ns_protect.c
)
