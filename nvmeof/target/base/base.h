/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the target knows, and what its other parts ask about it.
 */
#ifndef ESSD_NVMEOF_TARGET_BASE_BASE_H
#define ESSD_NVMEOF_TARGET_BASE_BASE_H

#include "nvmeof/target/state.h"
#include "nvmeof/target/base/command.h"
#include "nvmeof/target/base/host_number.h"

enum {
    DEFAULT_WCTEMP_K = 343,
    DEFAULT_CCTEMP_K = 353,
    NO_OVER_THRESHOLD_K = 0xffff, /* the default of single sensors */
    SPARE_THRESHOLD_PERCENT = 10,
};

/* The status, with Do Not Retry set. */
static inline uint16_t refuse_status(enum nvme_status status)
{
    return (uint16_t)(status | NVME_STATUS_DNR);
}

/* As refuse_status(), and note the field's position for the error log. */
static inline uint16_t refuse_field(struct nvmf_request *req,
                                    enum nvme_status status, uint16_t byte,
                                    uint16_t bit)
{
    req->error_location = (uint16_t)(bit << 8 | byte);
    return refuse_status(status);
}

static inline struct nvmf_qpair *request_qpair(struct nvmf_target *target,
                                               const struct nvmf_request *req)
{
    return &target->qpair[req->qpair];
}

static inline struct nvmf_ctrl *request_ctrl(struct nvmf_target *target,
                                             const struct nvmf_request *req)
{
    return &target->ctrl[target->qpair[req->qpair].ctrl];
}

/* abilities.c */

bool ns_are_manageable(const struct nvmf_target *target);
uint16_t ns_result_status(enum nvmf_volume_result result);
bool sanitize_exists(const struct nvmf_target *target);
uint32_t sanitize_capabilities(const struct nvmf_target *target);
bool firmware_exists(const struct nvmf_target *target);
bool self_test_exists(const struct nvmf_target *target);
bool telemetry_exists(const struct nvmf_target *target);

/* block_bytes.c */

/* How many blocks of the command so many bytes of the host's data are. */
uint32_t protection_blocks_in(const struct nvmf_ns *ns,
                              const struct nvmf_request *req, uint32_t bytes);

/* The bytes of the blocks that are complete in so many bytes. */
uint32_t protection_round_window(const struct nvmf_request *req,
                                 uint32_t bytes);

/* What counts at each stage: stage.c.  Whoever asks whether there is a
 * controller asks for one of these facts. */
enum ctrl_fact {
    CTRL_HAS_SLOT = 0x01,     /* takes a slot and a CNTLID; a subsystem reset
                               * ends it */
    CTRL_TAKES_QUEUES = 0x02, /* its CNTLID names an association */
    CTRL_IS_MEMBER = 0x04,    /* is one of the subsystem's controllers for all
                               * others: lists, reports, attached namespaces */
    CTRL_MAY_WRITE = 0x08,    /* its commands may be at the medium */
    CTRL_HEARS = 0x10,        /* its host gets events */
    CTRL_HEARS_NVM = 0x20,    /* the same, events of namespaces and health */
    CTRL_IS_IN_USE = 0x40,    /* its host has enabled it, so that it should shut
                               * it down before the power goes */
    CTRL_IS_MANAGED = 0x80,   /* a BMC sees it, until it is free */
};

/* stage.c */
bool ctrl_is(const struct nvmf_ctrl *ctrl, enum ctrl_fact fact);

/* Whether a queue pair's commands are those of its controller's host, as far as
 * that is proven. */
static inline bool qpair_speaks_for_ctrl(const struct nvmf_qpair *qpair)
{
    return qpair->state == QPAIR_LIVE ||
           (qpair->ctrl != NO_CTRL && (qpair->qid == 0 || qpair->is_joined));
}

/* ctrl_find.c */
uint8_t ctrl_find(const struct nvmf_target *target, uint16_t cntlid);
bool ctrl_is_of_host(const struct nvmf_target *target,
                     const struct nvmf_ctrl *ctrl, const uint8_t *host);
uint32_t ctrl_csts(const struct nvmf_ctrl *ctrl);

/* clock.c */

/* What the clock shows at `now_us`, which may be before it was set. */
uint64_t clock_read_ms(const struct nvmf_target *target, uint64_t now_us);

/* ns_find.c */
bool ns_is_valid(uint32_t nsid);
bool ns_is_active(const struct nvmf_ctrl *ctrl, uint32_t nsid);
struct nvmf_ns *ns_find_allocated(struct nvmf_target *target, uint32_t nsid);
struct nvmf_ns *ns_find_active(struct nvmf_target *target,
                               const struct nvmf_ctrl *ctrl, uint32_t nsid);
void ns_enter(struct nvmf_ns *ns, enum ns_state next);
void ns_set_caution(struct nvmf_ns *ns, uint8_t caution, bool is_on);

enum { NS_FORMATS = 4, NS_FORMATS_PLAIN = 2 };

extern const uint8_t ns_format_shifts[NS_FORMATS]; /* LBA formats */

enum {                        /* fields of Identify Namespace */
       FLBAS_EXTENDED = 0x10, /* metadata follows the data of its block */
       DPS_TYPE = 0x07,
       DPS_FIRST = 0x08, /* protection information is in the first 8 bytes */
};

/* ns_formats.c */

/* How many LBA formats this drive has: blocks without metadata come first. */
uint8_t ns_format_count(const struct nvmf_target *target);

/* The fields of Identify Namespace with the format: FLBAS and DPS. */
uint8_t ns_flbas(const struct nvmf_ns *ns);
uint8_t ns_dps(const struct nvmf_ns *ns);

/*
 * Check what Format NVM and a creation say of the format.
 *
 * @param dps  the type, and DPS_FIRST
 * @param job  its format is set
 */
bool ns_read_format(const struct nvmf_target *target, uint8_t format,
                    bool is_extended, uint8_t dps, struct nvmf_volume_job *job);
/* Whether a namespace is smaller than one block of the size that a Format
 * gives it. */
bool ns_is_too_small(const struct nvmf_ns *ns,
                     const struct nvmf_volume_job *job);

/* sanitize_rules.c */
bool sanitize_refuses_command(uint8_t opcode);
bool sanitize_refuses_log(const struct nvmf_target *target, uint8_t lid);

/* The status of commands that a sanitize operation forbids, or 0. */
static inline uint16_t sanitize_status(const struct nvmf_target *target)
{
    return target->sanitize.status;
}

/* reservation_check.c */
uint8_t reservation_capabilities(const struct nvmf_target *target,
                                 const struct nvmf_ns *ns);
bool reservation_is_possible(const struct nvmf_ns *ns);

/* @return NULL if there is no such namespace, or if it has no reservations */
struct reservation *reservation_of(struct nvmf_target *target, uint32_t nsid);

/* Whether a reservation forbids this host commands that read, or write. */
bool reservation_conflicts(const struct nvmf_target *target,
                           const struct nvmf_ctrl *ctrl, uint32_t nsid,
                           bool is_write);

/* The same for commands that write to all namespaces: to those that are active
 * on a controller, or to inactive ones too. */
bool reservation_conflicts_any(struct nvmf_target *target,
                               const struct nvmf_ctrl *ctrl,
                               bool are_inactive_too);
uint16_t reservation_refuse(struct nvmf_request *req);
bool reservation_is_command(uint8_t opcode);
uint16_t reservation_admit(struct nvmf_target *target,
                           struct nvmf_request *req);

/* error_log.c */

/**
 * Whether a refused command makes an entry in the error log: not before the
 * host has proven its identity, and not at a discovery controller, so that
 * nobody can push the errors of others out of the log.
 */
bool log_takes_errors(const struct nvmf_target *target,
                      const struct nvmf_request *req);

/** The host of this controller has kept silent for too long. */
void log_keep_alive_expired(struct nvmf_target *target,
                            const struct nvmf_ctrl *ctrl);
void log_record_error(struct nvmf_target *target,
                      const struct nvmf_request *req, uint16_t status);

void log_build_error(struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
                     uint32_t part);
void log_build_error_times(struct nvmf_target *target,
                           const struct nvmf_ctrl *ctrl, uint32_t part);

/* smart.c */

/* What SMART reports, with the default temperature thresholds. */
struct log_smart log_smart_of_drive(const struct nvmf_target *target);
uint8_t log_critical_warning(const struct nvmf_target *target,
                             const struct nvmf_ctrl *ctrl);

#endif
