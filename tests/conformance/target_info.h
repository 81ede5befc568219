/* SPDX-License-Identifier: BSD-2-Clause */
/* What the control socket or the command line tells about a target. */
#ifndef ESSD_CONFORM_TARGET_INFO_H
#define ESSD_CONFORM_TARGET_INFO_H

#include "conform.h"

/** Parse "10.0.0.1" or "fd00::1". @return false when it is neither */
MUST_USE bool target_parse_ip(struct ip_addr *ip, const char *text);

/**
 * Parse the control socket's answer to "info": an object with "ports" (each
 * with "mac", "ipv4", "ipv6"), "nqn", "nsid", "mtu", "echo", in flat JSON
 * without escapes.
 *
 * @return false when it lacks a port or the NQN
 */
MUST_USE bool target_read_info(const char *json, struct conf_target *target);

#endif
