/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The management requests that tools can send to a running drive:
 * docs/management.md.  They connect the management protocol to the drive's
 * parts.
 */
#ifndef ESSD_REQUESTS_MGMT_REQUESTS_H
#define ESSD_REQUESTS_MGMT_REQUESTS_H

#include "firmware/mgmt/mgmt_service.h"

enum { MGMT_REQUESTS = 40 };

/** The context of the handlers is a struct request_parts. */
extern const struct mgmt_request mgmt_requests[MGMT_REQUESTS];

/* The type of a handler, as in struct mgmt_request. */
typedef bool mgmt_handler(void *ctx, const struct json_args *args,
                          struct json *out, struct mgmt_refusal *refusal);

/* in mgmt_ana.c */
mgmt_handler mgmt_ana;
mgmt_handler mgmt_ana_set;

/* in mgmt_aoe.c */
mgmt_handler mgmt_aoe;
mgmt_handler mgmt_aoe_forget;
struct request_parts;
/** The object "aoe" of the counters; nothing if AoE is off. */
void mgmt_put_aoe_counters(struct json *out, const struct request_parts *parts);

/* in mgmt_config.c */
mgmt_handler mgmt_config_read;
mgmt_handler mgmt_config_set;
mgmt_handler mgmt_config_save;
mgmt_handler mgmt_config_discard;

/* in mgmt_counters.c */
mgmt_handler mgmt_counters;

/* in mgmt_crash.c */
mgmt_handler mgmt_crashes;
mgmt_handler mgmt_crash_data;
mgmt_handler mgmt_crash_now;

/* in mgmt_discovery.c */
mgmt_handler mgmt_referrals;
mgmt_handler mgmt_referral_add;
mgmt_handler mgmt_referral_remove;

/* in mgmt_errors.c */
mgmt_handler mgmt_hardware_errors;

/* in mgmt_faults.c */
mgmt_handler mgmt_faults;
mgmt_handler mgmt_fault_add;
mgmt_handler mgmt_fault_remove;
mgmt_handler mgmt_fault_turn;

/* in mgmt_flash.c */
mgmt_handler mgmt_superblocks;

/* in mgmt_hosts.c */
mgmt_handler mgmt_hosts;
mgmt_handler mgmt_host_set;
mgmt_handler mgmt_host_remove;
mgmt_handler mgmt_hosts_exclusive;
mgmt_handler mgmt_authentication;

/* in mgmt_network.c */
mgmt_handler mgmt_lag;
mgmt_handler mgmt_neighbours;
mgmt_handler mgmt_addresses;

/* in mgmt_peripherals.c */
mgmt_handler mgmt_modules;
mgmt_handler mgmt_sensors;

/* in mgmt_tables.c */
mgmt_handler mgmt_controllers;
mgmt_handler mgmt_disconnect;
mgmt_handler mgmt_queue_pairs;
mgmt_handler mgmt_outstanding;

/* in mgmt_tcp.c */
mgmt_handler mgmt_tcp_connections;
/** The object "tcp" of the counters; nothing without an engine. */
void mgmt_put_tcp_counters(struct json *out, const struct request_parts *parts);

/* in mgmt_iwarp.c: the object "iwarp"; nothing if iWARP is off. */
void mgmt_put_iwarp_counters(struct json *out,
                             const struct request_parts *parts);

/* in mgmt_volume.c */
mgmt_handler mgmt_namespaces;

#endif
