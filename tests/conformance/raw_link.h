/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends and receives whole Ethernet frames on an interface of this machine.
 * The machine's kernel goes on using the interface, too.
 */
#ifndef ESSD_CONFORM_RAW_LINK_H
#define ESSD_CONFORM_RAW_LINK_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"
#include "net/wire/ip_addr.h"

struct raw_link {
    int fd;
    char name[IF_NAMESIZE];
    uint32_t mtu_bytes;
    bool has_told; /* The message about long frames was printed. */
};

enum raw_result {
    RAW_DONE,
    RAW_LATER, /* The kernel has no room to send, or no received frame. */
    RAW_GONE,  /* The interface failed.  The reason was printed. */
};

/** @return false when it fails; the reason is printed in one line on stderr */
MUST_USE bool raw_link_open(struct raw_link *link, const char *name);
void raw_link_close(struct raw_link *link);

enum raw_result raw_link_send(struct raw_link *link, const uint8_t *frame,
                              size_t len_bytes);

/**
 * Receive the next frame that this machine did not send, with its VLAN tag.
 *
 * @param buf     room bytes
 * @param frame   where in buf the frame begins
 */
enum raw_result raw_link_receive(struct raw_link *link, uint8_t *buf,
                                 size_t room, uint8_t **frame,
                                 size_t *len_bytes);

/** Whether this machine's kernel has an interface with this IPv4 address. */
bool raw_link_kernel_has(const struct ip_addr *ip);

#endif
