/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of namespaces: which windows of the medium each one owns, and which
 * hosts each one is attached to.  Plain data and functions on it: nothing here
 * accesses the medium or the flash.
 *
 * The medium is divided into windows of one size, a power of two.  The last
 * window is shorter when the medium's size is no multiple of that.  A namespace
 * owns a list of windows, of which only the last may be the short one.
 * Reference: docs/decisions/0011-namespaces.md; docs/hardware/flash.md,
 * "Namespaces"
 */
#ifndef ESSD_VOLUME_VOLUME_TABLE_H
#define ESSD_VOLUME_VOLUME_TABLE_H

#include "lib/util.h"

enum {
    VOLUME_NAMESPACES = 128,
    VOLUME_WINDOWS = 4096,        /* most windows of a medium */
    VOLUME_WINDOW_SHIFT_MIN = 20, /* a window holds the longest transfer */
    VOLUME_HOSTS = 255,           /* hosts with attachments of their own */
    VOLUME_ANA_GROUPS = 16,       /* a namespace is in group 1 to 16 */
    VOLUME_NQN_LEN = 224,         /* with the terminating zero */
    VOLUME_SHIFT_512 = 9,
    VOLUME_SHIFT_4096 = 12,

    /* The longest record of a table: see volume_record.c. */
    VOLUME_RECORD_MAX = 32 + VOLUME_NAMESPACES * 32 + VOLUME_WINDOWS * 4 +
                        VOLUME_HOSTS * (VOLUME_NQN_LEN + 16),
};

enum volume_window {
    WINDOW_CLEAN, /* Belongs to no namespace and holds no data. */
    WINDOW_DIRTY, /* Belongs to no namespace; holds data of a deleted one until
                   * it is erased. */
    WINDOW_OWNED, /* Belongs to a namespace. */
};

enum volume_protection {
    PROTECTION_NONE,
    PROTECTION_ON,
    PROTECTION_UNTIL_POWER_CYCLE,
    PROTECTIONS
};

struct volume_entry {
    uint32_t creation;   /* number of the creation; 0: no namespace */
    uint64_t size_bytes; /* as it was created; a multiple of 512 */
    uint8_t block_shift; /* VOLUME_SHIFT_... */
    bool has_metadata;   /* 8 bytes for each block */
    uint8_t pi_type;     /* 0 to 3; 0: no protection information */
    bool pi_is_first;    /* as the host has chosen; means nothing to us */
    bool is_private;     /* attached to one controller at most */
    /* Attached to every host, except to those whose exception bit is set. */
    bool is_for_all;
    bool is_erasing;      /* A Format has begun and has not ended. */
    bool is_cut;          /* It needs windows beyond the end of the medium. */
    uint8_t protection;   /* enum volume_protection */
    uint8_t anagrpid;     /* its ANA group, from 1 */
    uint16_t portid;      /* port of the attachment of a private namespace */
    uint16_t first_entry; /* its windows: list[first_entry] and following */
    uint16_t windows;     /* their number, at least 1 */
};

struct volume_host {
    char nqn[VOLUME_NQN_LEN];
    /* Bit NSID - 1: the namespace's attachment differs from is_for_all. */
    uint32_t exceptions[VOLUME_NAMESPACES / 32];
};

/* How the owner wants a new drive to be divided. */
struct volume_plan {
    uint8_t count;       /* namespaces; 0: one over the whole medium */
    uint32_t size_mib;   /* of each; 0: equal shares of the medium */
    uint8_t block_shift; /* VOLUME_SHIFT_... */
};

struct volume_table {
    uint32_t creations; /* number of the last creation */
    uint8_t window_shift;
    uint16_t windows; /* of the medium, the short one included */
    uint64_t medium_bytes;
    struct volume_plan plan; /* the plan that the drive was divided by */
    struct volume_entry ns[VOLUME_NAMESPACES]; /* by NSID - 1 */
    uint16_t hosts;
    struct volume_host host[VOLUME_HOSTS];
    uint16_t listed; /* entries of `list` in use */
    uint16_t list[VOLUME_WINDOWS];
    uint8_t state[VOLUME_WINDOWS]; /* enum volume_window */
};

enum volume_result {
    VOLUME_OK,
    VOLUME_NO_CAPACITY,   /* too few windows are clean */
    VOLUME_NO_IDENTIFIER, /* all NSIDs are in use */
    VOLUME_NO_HOST,       /* too many hosts have attachments of their own */
    VOLUME_ALREADY,       /* attached already */
    VOLUME_PRIVATE,       /* private, and attached to another controller */
    VOLUME_NOT_ATTACHED,
};

struct volume_capacity {
    uint64_t total_bytes;
    uint64_t free_bytes;
    uint64_t window_bytes;
};

/** Make an empty table for a medium of this size, a multiple of 512. */
void volume_table_init(struct volume_table *table, uint64_t medium_bytes);

/**
 * Divide an empty table by a plan.  All namespaces are shared and attached to
 * all hosts.
 *
 * @return false when the medium is too small; the table is empty
 */
MUST_USE bool volume_table_divide(struct volume_table *table,
                                  const struct volume_plan *plan);

bool volume_plans_differ(const struct volume_plan *a,
                         const struct volume_plan *b);

/**
 * Create a namespace that is attached to no host.
 *
 * @param entry  size_bytes (not 0), block_shift, has_metadata, pi_type,
 *               pi_is_first, is_private, anagrpid of it
 * @param nsid   set to the lowest free NSID
 */
MUST_USE enum volume_result volume_table_create(
    struct volume_table *table, const struct volume_entry *entry,
    uint32_t *nsid);

/** Delete a namespace.  Its windows become dirty. */
void volume_table_delete(struct volume_table *table, uint32_t nsid);

/** The entry of an NSID; NULL when no namespace has it. */
const struct volume_entry *volume_table_find(const struct volume_table *table,
                                             uint32_t nsid);

/**
 * Let no host use what is in a table that is not the newest one.  This does not
 * say which of its namespaces were deleted since, and lie over blocks of
 * another one, which of them were protected, and who may use them.  So all are
 * detached from all hosts and protected.  Free windows may belong to namespaces
 * that the table does not have, and become dirty.
 */
void volume_table_close(struct volume_table *table);

/** Bytes of the windows that a namespace owns. */
uint64_t volume_table_owned_bytes(const struct volume_table *table,
                                  uint32_t nsid);
void volume_table_capacity(const struct volume_table *table,
                           struct volume_capacity *capacity);
uint64_t volume_table_window_bytes(const struct volume_table *table,
                                   uint32_t window);

/** How many namespaces an ANA group has. */
uint32_t volume_table_in_group(const struct volume_table *table,
                               uint8_t anagrpid);

bool volume_table_is_attached(const struct volume_table *table, uint32_t nsid,
                              const char *hostnqn, uint16_t portid);

/** The hosts whose attachment to a namespace differs from is_for_all. */
uint32_t volume_table_exceptions(const struct volume_table *table,
                                 uint32_t nsid);

/** Attach a namespace to a host, or detach it. */
MUST_USE enum volume_result volume_table_attach(struct volume_table *table,
                                                uint32_t nsid,
                                                const char *hostnqn,
                                                uint16_t portid, bool attach);

/**
 * Find the first run of windows in this state, from window `from` on.
 *
 * @return its length, 0 when there is none
 */
uint32_t volume_table_find_run(const struct volume_table *table,
                               enum volume_window state, uint32_t from,
                               uint32_t *first);

/**
 * Write the table as bytes.
 *
 * @param buf  VOLUME_RECORD_MAX bytes
 * @return their number
 */
size_t volume_record_emit(const struct volume_table *table, uint8_t *buf);

/**
 * Read a table for a medium of medium_bytes.
 *
 * @return false when the bytes are no table; *table is then undefined
 */
MUST_USE bool volume_record_parse(struct volume_table *table,
                                  uint64_t medium_bytes, const uint8_t *buf,
                                  size_t len);

#endif
