/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The management protocol: one JSON object a line each way, docs/management.md.
 * What can be asked for is a table that is handed in.
 */
#ifndef ESSD_MGMT_SERVICE_H
#define ESSD_MGMT_SERVICE_H

#include "firmware/drivers/mgmt.h"
#include "firmware/mgmt/json_read.h"
#include "firmware/mgmt/json_write.h"

enum {
    MGMT_VERSION = 1,
    MGMT_LINE_MAX = 1024,
    MGMT_REPLY_MAX = 32768,
};

#define MGMT_NO_DEADLINE UINT64_MAX

/* Why a request is refused. */
struct mgmt_refusal {
    const char *code;   /* one word, for programs */
    const char *text;   /* a sentence, for people */
    char text_buf[256]; /* where a handler may build it */
};

struct mgmt_request {
    const char *name;

    /**
     * Write the members of the result.
     *
     * @return false when it is refused, with `refusal` filled in
     */
    bool (*handle)(void *ctx, const struct json_args *args, struct json *result,
                   struct mgmt_refusal *refusal);
};

struct mgmt_service_config {
    struct mgmt *mgmt;                   /* the driver; stays */
    const struct mgmt_request *requests; /* stays */
    size_t request_count;
    void *ctx; /* of the handlers */
};

/* Treat as opaque. */
struct mgmt_service {
    struct mgmt_service_config config;
    uint32_t in_at, in_len; /* characters taken from the block, in `in` */
    size_t line_len;
    bool is_too_long;
    size_t reply_len; /* of a reply that found no room yet */
    char in[256];
    char line[MGMT_LINE_MAX + 1];
    char reply[MGMT_REPLY_MAX];
};

void mgmt_service_init(struct mgmt_service *service,
                       const struct mgmt_service_config *config);

/**
 * Answer what has come, at most a few requests.
 *
 * @param deadline_us  when to call again although nothing comes
 * @return whether anything was done
 */
bool mgmt_service_step(struct mgmt_service *service, uint64_t now_us,
                       uint64_t *deadline_us);

#endif
