/* SPDX-License-Identifier: BSD-2-Clause */
/* What a target is, as told by the control socket or on the command line. */
#ifndef ESSD_CONFORM_TARGET_INFO_H
#define ESSD_CONFORM_TARGET_INFO_H

#include "conform.h"

/** "10.0.0.1" or "fd00::1". @return false: neither */
MUST_USE bool target_parse_ip(struct ip_addr *ip, const char *text);

/**
 * The control socket's answer to "info": an object with "ports" (each "mac",
 * "ipv4", "ipv6"), "nqn", "nsid", "mtu", "echo", in flat JSON without escapes.
 *
 * @return false when it lacks a port or the NQN
 */
MUST_USE bool target_read_info(const char *json, struct conf_target *target);

#endif
