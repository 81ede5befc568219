/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tools can ask a running drive for: docs/management.md.  Glue between
 * the management protocol and the drive's parts.
 */
#ifndef ESSD_APP_MGMT_REQUESTS_H
#define ESSD_APP_MGMT_REQUESTS_H

#include "firmware/mgmt/mgmt_service.h"

enum { MGMT_REQUESTS = 1 };

/** The handlers' ctx is the struct drive. */
extern const struct mgmt_request mgmt_requests[MGMT_REQUESTS];

#endif
