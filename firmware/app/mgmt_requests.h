/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tools can ask a running drive for: docs/management.md.  Glue between
 * the management protocol and the drive's parts.
 */
#ifndef ESSD_APP_MGMT_REQUESTS_H
#define ESSD_APP_MGMT_REQUESTS_H

#include "firmware/mgmt/mgmt_service.h"

enum { MGMT_REQUESTS = 12 };

/** The handlers' ctx is the struct drive. */
extern const struct mgmt_request mgmt_requests[MGMT_REQUESTS];

/* A handler, as struct mgmt_request has it. */
typedef bool mgmt_handler(void *ctx, const struct json_args *args,
                          struct json *out, struct mgmt_refusal *refusal);

/* mgmt_config.c */
mgmt_handler mgmt_config_read;
mgmt_handler mgmt_config_set;
mgmt_handler mgmt_config_save;
mgmt_handler mgmt_config_discard;

/* mgmt_network.c */
mgmt_handler mgmt_lag;
mgmt_handler mgmt_neighbours;
mgmt_handler mgmt_addresses;

/* mgmt_tables.c */
mgmt_handler mgmt_controllers;
mgmt_handler mgmt_queue_pairs;

#endif
