# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    ana.c
    ns.c
    ns_attach.c
    ns_attachments.c
    ns_create.c
    ns_drain.c
    ns_format.c
    ns_protect.c
    ns_release.c
)
