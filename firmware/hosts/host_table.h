/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who may connect: the list of hosts in force, its changes, and what the target
 * asks about a host.  No function gives a secret back.
 */
#ifndef ESSD_HOSTS_HOST_TABLE_H
#define ESSD_HOSTS_HOST_TABLE_H

#include "firmware/hosts/host_list.h"

struct host_table {
    struct host_list list;
    bool is_closed; /* No host may connect, whatever the list says. */

    /* Write the list to flash.  NULL: changes hold until power-off. */
    enum host_save (*save)(void *ctx, const struct host_list *list);
    void *save_ctx;
};

enum host_list_result {
    HOST_OK,
    HOST_BAD_NQN,
    HOST_BAD_SECRET,  /* not a secret, or its CRC is wrong */
    HOST_BAD_TLS_KEY, /* not a key of TLS, or its CRC is wrong */
    HOST_BAD_HASH,    /* no such hash function */
    HOST_BAD_DH,      /* no such group */
    HOST_NEEDS_KEY,   /* a key of the drive needs one of the host */
    HOST_UNKNOWN,     /* the list has no such host */
    HOST_FULL,        /* the list is full */
    HOST_NOT_SAVED,   /* writing to flash failed; nothing has changed */
    HOST_SAVED_HALF,  /* one of the two copies in flash has the change */
    HOST_RESULTS
};

/** The result as an English sentence, for people. */
const char *host_list_result_text(enum host_list_result result);

/** What changes of an entry; NULL leaves it as it is, "" removes a key. */
struct host_change {
    const char *host_secret; /* in the form of `nvme gen-dhchap-key` */
    const char *ctrl_secret;
    const char *tls_key;    /* in the form of `nvme gen-tls-key` */
    const char *least_hash; /* "sha256" */
    const char *least_dh;   /* "ffdhe2048" */
};

/** Change a host's entry, or add it.  Connections that exist are not ended. */
MUST_USE enum host_list_result host_table_set(struct host_table *table,
                                              const char *nqn,
                                              const struct host_change *change);

MUST_USE enum host_list_result host_table_remove(struct host_table *table,
                                                 const char *nqn);

/** Whether only hosts on the list may connect. */
MUST_USE enum host_list_result host_table_set_exclusive(
    struct host_table *table, bool is_exclusive);

/** The key of TLS of a host.  @return NULL: it has none, or none may connect */
const struct auth_key *host_table_tls_key(const struct host_table *table,
                                          const char *nqn);

/** What the target asks; `table` must outlive the target. */
struct nvmf_hosts host_table_ops(struct host_table *table);

#endif
