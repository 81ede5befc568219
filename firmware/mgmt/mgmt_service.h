/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The management protocol: each request and each reply is one line with a JSON
 * object; see docs/management.md.  The caller provides a table of the requests.
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
    const char *code;   /* one word for programs */
    const char *text;   /* a sentence for people */
    char text_buf[256]; /* memory in which a handler may build the text */
};

/* An argument that a request may have. */
struct mgmt_argument {
    const char *key; /* NULL: the end of the list */
    enum json_kind kind;
};

struct mgmt_request {
    const char *name;
    /* The arguments besides v, id and request, each at most once.  The service
     * refuses all others, because a misspelt one must not count as absent.
     * NULL: none. */
    const struct mgmt_argument *arguments;

    /**
     * Write the members of the result.
     *
     * @return false when the request is refused; `refusal` has the reason
     */
    bool (*handle)(void *ctx, const struct json_args *args, struct json *result,
                   struct mgmt_refusal *refusal);
};

struct mgmt_service_config {
    struct mgmt *mgmt;                   /* the driver; outlives the service */
    const struct mgmt_request *requests; /* outlives the service */
    size_t request_count;
    void *ctx; /* context of the handlers */
};

/* Treat as opaque. */
struct mgmt_service {
    struct mgmt_service_config config;
    /* Unread part of `in`, which holds characters from the block. */
    uint32_t in_at, in_len;
    size_t line_len;
    bool is_too_long;
    size_t reply_len; /* length of a reply that waits for room; 0: none */
    char in[256];
    char line[MGMT_LINE_MAX + 1];
    char reply[MGMT_REPLY_MAX];
};

void mgmt_service_init(struct mgmt_service *service,
                       const struct mgmt_service_config *config);

/**
 * Answer the requests that have come, a few at a time.
 *
 * @param deadline_us  set to when to call this again even if nothing comes
 * @return whether anything was done
 */
bool mgmt_service_step(struct mgmt_service *service, uint64_t now_us,
                       uint64_t *deadline_us);

#endif
