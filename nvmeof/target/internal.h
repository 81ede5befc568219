/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations that the target's files share.  Only they include it.
 */
#ifndef ESSD_NVMEOF_TARGET_INTERNAL_H
#define ESSD_NVMEOF_TARGET_INTERNAL_H

#include "nvmeof/target/base/host_number.h"
#include "nvmeof/target/state.h"
#include "nvmeof/wire/opcode.h"

/* Whether a command is in target->arrivals: nvmf_request.arrival_state. */
enum arrival_state {
    ARRIVAL_NONE,  /* It is not, or has ended. */
    ARRIVAL_WAITS, /* It is; waits for earlier commands of its host. */
    ARRIVAL_BEGUN, /* It is, and has begun to get its data. */
};

/* Returned by a handler whose command completes later. */
#define NVMF_PENDING 0xffff

enum data_direction { DATA_NONE, DATA_TO_CONTROLLER, DATA_TO_HOST };

enum { /* nvmf_command.flags */
       /* NSID names an active namespace, to which req->ns points. */
       COMMAND_NEEDS_NS = 0x01,
       COMMAND_ON_DISCOVERY = 0x02, /* valid on discovery controllers too */
       COMMAND_WRITES = 0x04,       /* changes user data */
       COMMAND_SGL_LONGER = 0x08, /* the SGL may describe more than is moved */
       COMMAND_HAS_LBA = 0x10,    /* dwords 10 and 11 are an LBA */
       COMMAND_CHANGES_NS = 0x20, /* changes what Identify says of namespaces */
       COMMAND_CHANGES_NS_LIST = 0x40, /* changes which namespaces there are */
       COMMAND_IS_QUERY = 0x80, /* asks what there is; a refusal is no error */
};

/*
 * One row of a command table; the index is the opcode (fabrics: FCTYPE).
 * A row without `execute` stands for a command that does not exist.
 */
struct nvmf_command {
    uint8_t direction; /* enum data_direction */
    uint8_t flags;

    /* Check the fields, and set data_len and steps. @return a status, or 0 */
    uint16_t (*check)(struct nvmf_target *target, struct nvmf_request *req);

    /*
     * Execute the command.  Data to the controller has arrived; buffers for
     * data to the host are allocated.  A command that uses the media is called
     * once for each of its steps, and again for a step for which the media had
     * no room.
     *
     * @return a status, or NVMF_PENDING
     */
    uint16_t (*execute)(struct nvmf_target *target, struct nvmf_request *req);

    /* Called after the last step.  May be NULL. */
    void (*finish)(struct nvmf_target *target, struct nvmf_request *req);

    /* Called instead of finish() when a step has failed at the media.  May be
     * NULL. */
    void (*fail)(struct nvmf_target *target, struct nvmf_request *req);
};

extern const struct nvmf_command fabrics_commands[];
extern const struct nvmf_command admin_commands[];
enum {
    FABRICS_COMMANDS = 0x09,
    ADMIN_COMMANDS = 0x87,
    IO_COMMANDS = 0x1a, /* of every command set */
};

/*
 * The I/O commands of one command set, by opcode.  NULL stands for a command
 * that does not exist.
 */
struct nvmf_command_set {
    uint8_t csi;
    const struct nvmf_command *row[IO_COMMANDS];
    /* What executes a command for a namespace whose blocks have metadata; NULL:
     * the same row. */
    const struct nvmf_command *metadata_row[IO_COMMANDS];
};

/* command_sets.c */
extern const struct nvmf_command_set nvm_command_set;
/* @return NULL if the target does not have that command set */
const struct nvmf_command_set *command_set_of(uint32_t csi);

enum {                        /* nvmf_request.holds */
       HOLDS_ORDER = 0x1,     /* a place in target->order */
       HOLDS_SCRATCH = 0x2,   /* a scratch buffer */
       HOLDS_PARTNER = 0x4,   /* the other command of its fused pair, which ends
                               * when this one does */
       HOLDS_SOURCE = 0x10,   /* Copy: its source ranges are checked, and the
                               * namespaces in chunk.sources are held */
       HOLDS_PREEMPTED = 0x8, /* it ends after this window: its host has lost
                               * its registration; with HOLDS_AWAITED */
       HOLDS_SCAN = 0x20,     /* Get LBA Status: the turn of its scan */
       HOLDS_PROTECTION = 0x40, /* Set Features: ns->protecting */
       HOLDS_AWAITED = 0x80,    /* a place in ns->awaited */
};

/* More steps than a command has whose execute() says when it is complete. */
enum { STEPS_UNKNOWN = 0xffff };

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

/*
 * What the path of a command asks of the parts above it: hooks.c fills it in.
 * So the path needs none of them to be understood or tested.
 */
struct request_hooks {
    /* Fused pairs: fused.c. */
    bool (*pair_capsule)(struct nvmf_target *target, struct nvmf_request *req);
    void (*pair_begin)(struct nvmf_target *target, struct nvmf_request *second);
    void (*pair_first_ended)(struct nvmf_target *target,
                             struct nvmf_request *second, uint16_t status);
    void (*pair_abort_first)(struct nvmf_target *target,
                             struct nvmf_request *second);
    void (*pair_drop_first)(struct nvmf_target *target,
                            struct nvmf_qpair *qpair);

    /* The order of commands that write, from their arrival on: order.c. */
    bool (*arrive)(struct nvmf_target *target, struct nvmf_request *req);
    void (*depart)(struct nvmf_target *target, struct nvmf_request *req);

    /* Let others have what the command keeps from them: req->holds. */
    void (*release_holds)(struct nvmf_target *target, struct nvmf_request *req);

    /* Fault rules: fault.c. */
    uint16_t (*rule_status)(struct nvmf_target *target,
                            struct nvmf_request *req);
    bool (*hold_response)(struct nvmf_target *target, struct nvmf_request *req,
                          uint16_t status);

    /* Blocks could not be read: lba_status.c. */
    bool (*scan_takes_error)(struct nvmf_target *target,
                             struct nvmf_request *req, bool is_mark);
    void (*note_unreadable)(struct nvmf_target *target,
                            const struct nvmf_request *req);

    /* The medium has reported an error: persistent_event.c.  A command is about
     * to be answered, and the latency monitor is on: latency_monitor.c. */
    void (*media_error)(struct nvmf_target *target,
                        const struct nvmf_request *req, uint16_t status);
    void (*measure)(struct nvmf_target *target, const struct nvmf_request *req);

    /* Namespaces: a command that may have to be refused, the end of one that
     * others may wait for, of a Copy, and of all that were waited for. */
    uint16_t (*ns_check_more)(struct nvmf_target *target,
                              struct nvmf_request *req);
    void (*ns_ended)(struct nvmf_target *target, struct nvmf_request *req,
                     struct nvmf_ns *ns, uint16_t status);
    void (*source_released)(struct nvmf_target *target,
                            struct nvmf_request *req, struct nvmf_ns *ns);
    void (*awaited_ended)(struct nvmf_target *target, const struct nvmf_ns *ns);

    /* The connection: qpair.c, host_auth.c, event.c. */
    void (*disconnect)(struct nvmf_target *target, uint16_t qpair);
    void (*drained)(struct nvmf_target *target, uint16_t qpair);
    uint16_t (*unproven_command)(struct nvmf_target *target,
                                 struct nvmf_request *req);
    void (*event_given_up)(struct nvmf_ctrl *ctrl, uint16_t cid);
};
extern const struct request_hooks request_hooks;

/*
 * What the life of a namespace means for the parts above it: hooks.c fills it
 * in.
 */
struct ns_hooks {
    /* A command on a namespace with tracked blocks has ended. */
    void (*written)(struct nvmf_target *target, const struct nvmf_request *req,
                    const struct nvmf_ns *ns, uint16_t status);
    /* It refuses commands from now on: end those that wait for others. */
    void (*refuses)(struct nvmf_target *target, struct nvmf_ns *ns);
    /* No command uses it any more, and no change of it has waited for that. */
    void (*drained)(struct nvmf_target *target);
    /* It begins to be formatted; NVME_NSID_ALL: all are. */
    void (*formatting)(struct nvmf_target *target, uint32_t nsid);
    /* It exists no more, or again; it has been deleted as a host wanted; its
     * blocks are gone; controllers have it that had it not. */
    void (*forgotten)(struct nvmf_target *target, uint32_t nsid);
    void (*deleted)(struct nvmf_target *target, uint32_t nsid);
    void (*blocks_gone)(struct nvmf_target *target, uint32_t nsid);
    void (*attached)(struct nvmf_target *target, uint32_t nsid);
};
extern const struct ns_hooks ns_hooks;

/*
 * What the life of a controller means for the parts above it: hooks.c fills it
 * in.
 */
struct connect_hooks {
    void (*ctrl_created)(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
    /* Its host has proven its identity. */
    void (*ctrl_joined)(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
    void (*ctrl_enabled)(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
    /* Its host resets it: CC.EN = 0. */
    void (*host_resets)(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
    /* It is reset or ends; it is reset. */
    void (*ctrl_stops)(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
    void (*ctrl_reset)(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
    /* It takes no commands any more: it loses its namespaces. */
    void (*ctrl_detached)(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
    void (*abort_events)(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
    void (*ctrl_freed)(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
    /* A queue pair begins to end with commands in flight. */
    void (*queue_ends)(struct nvmf_target *target);
};
extern const struct connect_hooks connect_hooks;

/* check.c */
uint16_t request_check(struct nvmf_target *target, struct nvmf_qpair *qpair,
                       struct nvmf_request *req);

/* observe.c */
void observe_begin(struct nvmf_target *target, struct nvmf_request *req);
void observe_leave_state(struct nvmf_request *req);
void observe_end(const struct nvmf_target *target,
                 const struct nvmf_request *req);
void observe_media(const struct nvmf_target *target,
                   const struct nvmf_request *req, enum media_status status);
void observe_connect(struct nvmf_target *target, const struct nvmf_request *req,
                     uint16_t status);

/* A bit of dword 11 of Dataset Management. */
enum { DSM_ATTRIBUTE_DEALLOCATE = 0x4 };

/* @return whether something has to be done at the end of each command */
static inline bool answers_are_watched(const struct nvmf_target *target)
{
    return __builtin_expect(target->answers_watched != 0, 0);
}

/* fault.c */
static inline bool fault_rules_are_on(const struct nvmf_target *target)
{
    return __builtin_expect(target->fault_count != 0, 0);
}

/* @return the status with which a rule refuses the command, or 0 */
uint16_t fault_status(struct nvmf_target *target, struct nvmf_request *req);

/* @return true when a rule holds the response back */
bool fault_hold_response(struct nvmf_target *target, struct nvmf_request *req,
                         uint16_t status);

/* Send the responses whose time has come.  @return when the next one comes */
uint64_t fault_release_held(struct nvmf_target *target);

/* queue.c */
void queue_push(struct nvmf_queue *queue, struct nvmf_request *req);
struct nvmf_request *queue_pop(struct nvmf_queue *queue);
struct nvmf_request *queue_take(struct nvmf_queue *queue, uint16_t qpair,
                                bool any_cid, uint16_t cid);

/* Whether a new request must wait behind others. */
static inline bool queue_is_ahead(const struct nvmf_queue *queue)
{
    return __builtin_expect(queue->head != NULL, 0) && !queue->is_retrying;
}

/* buffer.c */
MUST_USE bool buffer_take(struct nvmf_target *target, struct nvmf_request *req);
void buffer_return(struct nvmf_target *target, struct nvmf_request *req);
struct nvmf_request *buffer_take_waiter(struct nvmf_target *target,
                                        uint16_t qpair, bool any_cid,
                                        uint16_t cid);

/* Return the request's buffers, if it has any, and serve waiting requests. */
static inline void buffer_release(struct nvmf_target *target,
                                  struct nvmf_request *req)
{
    if (req->owns_buffers) {
        buffer_return(target, req);
    }
}

/* cid.c */
bool cid_is_used(const struct nvmf_request *list, uint16_t cid);

/* Note that a command identifier is in use.  @return false if it already is */
static inline bool cid_claim(struct nvmf_target *target,
                             struct nvmf_request *req)
{
    struct nvmf_request **list =
        &target->cid[req->qpair][req->sqe.cid % CID_LISTS];

    req->next_cid = *list;
    if (__builtin_expect(req->next_cid != NULL, 0)) {
        if (cid_is_used(req->next_cid, req->sqe.cid)) {
            return false;
        }
        req->next_cid->cid_link = &req->next_cid;
    }
    req->cid_link = list;
    *list = req;
    return true;
}

/* The host may use the command's identifier again. */
static inline void cid_release(struct nvmf_request *req)
{
    struct nvmf_request **link = req->cid_link;

    if (link == NULL) {
        return;
    }
    req->cid_link = NULL;
    *link = req->next_cid;
    if (__builtin_expect(req->next_cid != NULL, 0)) {
        req->next_cid->cid_link = link;
    }
}

/* order.c */
MUST_USE bool order_enter_list(struct nvmf_target *target,
                               struct nvmf_request *req, uint64_t first_lba,
                               uint64_t count_blocks);
MUST_USE bool order_enter_exclusive(struct nvmf_target *target,
                                    struct nvmf_request *req,
                                    uint64_t first_lba, uint64_t count_blocks);
void order_leave(struct nvmf_target *target, struct nvmf_request *req);
void order_keep(struct nvmf_target *target);
void order_count_ctrl(struct nvmf_target *target, struct nvmf_ctrl *ctrl,
                      bool is_there);
MUST_USE bool order_arrive(struct nvmf_target *target,
                           struct nvmf_request *req);
void order_depart(struct nvmf_target *target, struct nvmf_request *req);
void order_wake_arrivals(struct nvmf_target *target);
void order_end_silent(struct nvmf_target *target,
                      const struct nvmf_request *req, uint64_t before_us);

/* Whether the request must call order_enter_list() before it writes. */
static inline bool order_is_due(const struct nvmf_target *target,
                                const struct nvmf_request *req)
{
    return __builtin_expect(target->order.is_kept, 0) &&
           !(req->holds & HOLDS_ORDER);
}

/* scratch.c */
void scratch_init(struct nvmf_target *target);
MUST_USE bool scratch_take(struct nvmf_target *target,
                           struct nvmf_request *req);
void scratch_give(struct nvmf_target *target, struct nvmf_request *req);
uint32_t scratch_blocks(const struct nvmf_request *req, uint32_t rest_blocks);
uint16_t scratch_media(struct nvmf_target *target, struct nvmf_request *req,
                       struct media_io *io);

/* A chunk is complete: let the next request have the buffer if one waits. */
static inline void scratch_share(struct nvmf_target *target,
                                 struct nvmf_request *req)
{
    if (target->scratch.waiting.head != NULL) {
        scratch_give(target, req);
    }
}

static inline const uint8_t *scratch_data(const struct nvmf_target *target,
                                          const struct nvmf_request *req)
{
    return target->scratch.memory[req->scratch];
}

/* Whether the command holds a namespace from which it copies, other than its
 * own. */
static inline bool copy_reads(const struct nvmf_request *req, uint32_t nsid)
{
    uint32_t i = nsid - 1;

    return (req->holds & HOLDS_SOURCE) &&
           (req->chunk.sources[i / 32] >> i % 32 & 1);
}

/* await.c */
struct await_rule {
    /* Whether commands of this controller are waited for.  NULL: of all. */
    bool (*concerns_ctrl)(const struct nvmf_target *target,
                          const struct nvmf_ctrl *ctrl,
                          const struct nvmf_ns *ns, const void *arg);
    /* Whether a command that uses the namespace, or a Copy that reads it, is
     * waited for. */
    bool (*concerns)(const struct nvmf_target *target,
                     const struct nvmf_request *req, const struct nvmf_ns *ns);
    const void *arg; /* of concerns_ctrl() */
    uint16_t status; /* of those that have not moved data yet */
    bool ends_early; /* the others end after their window: HOLDS_PREEMPTED */
};
MUST_USE bool await_commands(struct nvmf_target *target, struct nvmf_ns *ns,
                             const struct await_rule *rule);
void await_push(struct nvmf_target *target, struct nvmf_request *req);
void await_command_ended(struct nvmf_target *target, struct nvmf_request *req,
                         struct nvmf_ns *ns);
void await_copy_ended(struct nvmf_target *target, struct nvmf_request *req,
                      struct nvmf_ns *ns);

/* fused.c */
MUST_USE bool fused_capsule(struct nvmf_target *target,
                            struct nvmf_request *req);
void fused_begin(struct nvmf_target *target, struct nvmf_request *second);
void fused_first_ended(struct nvmf_target *target, struct nvmf_request *second,
                       uint16_t status);
void fused_abort_first(struct nvmf_target *target, struct nvmf_request *second);
void fused_end_waiting(struct nvmf_target *target, const struct nvmf_ns *ns);
void fused_drop_first(struct nvmf_target *target, struct nvmf_qpair *qpair);

/* io.c, io_check.c */
extern const struct nvmf_command io_dsm_row;
extern const struct nvmf_command io_flush_row;
extern const struct nvmf_command io_read_row;
extern const struct nvmf_command io_write_row;
extern const struct nvmf_command io_write_zeroes_row;
uint64_t io_first_lba(const struct nvme_sqe *sqe);
uint32_t io_count_blocks(const struct nvme_sqe *sqe);
bool io_is_in_range(const struct nvmf_ns *ns, uint64_t lba, uint32_t count);
uint16_t io_check_writable(const struct nvmf_request *req);
uint16_t io_check_range(struct nvmf_request *req);
uint16_t io_check_directive(struct nvmf_request *req);
uint16_t io_check_level(const struct nvmf_target *target,
                        struct nvmf_request *req);
uint16_t io_transfer_check(struct nvmf_target *target,
                           struct nvmf_request *req);
uint16_t io_submit(struct nvmf_target *target, struct nvmf_request *req,
                   enum media_op op);
void io_write_finish(struct nvmf_target *target, struct nvmf_request *req);
void io_note_written(struct nvmf_target *target, const struct nvmf_request *req,
                     const struct nvmf_ns *ns, uint16_t status);

/* compare.c, copy.c, uncorrectable.c */
extern const struct nvmf_command compare_row;
extern const struct nvmf_command copy_row;
extern const struct nvmf_command uncorrectable_row;
extern const struct nvmf_command verify_row;
uint16_t compare_check(struct nvmf_target *target, struct nvmf_request *req);
uint16_t compare_execute(struct nvmf_target *target, struct nvmf_request *req);
uint16_t verify_check(struct nvmf_target *target, struct nvmf_request *req);
uint16_t verify_execute(struct nvmf_target *target, struct nvmf_request *req);
uint16_t copy_check(struct nvmf_target *target, struct nvmf_request *req);
uint16_t copy_execute(struct nvmf_target *target, struct nvmf_request *req);
void copy_fail(struct nvmf_target *target, struct nvmf_request *req);
void copy_leave_sources(struct nvmf_target *target, struct nvmf_request *req);

void copy_find_source(const struct nvmf_request *req, uint32_t *nsid,
                      uint64_t *first_lba);

/* Whether a chunk has arrived in the scratch buffer since the last call. */
MUST_USE bool compare_chunk_arrived(struct nvmf_request *req);
/* Whether no word of the host's data, or of the chunk in the scratch buffer, is
 * lost.  Otherwise no hart may read them, and the command has to fail. */
MUST_USE bool compare_memory_is_intact(const struct nvmf_target *target,
                                       const struct nvmf_request *req);
/* Whether the host's data at `offset` of this window equal `data`. */
MUST_USE bool compare_data(const struct nvmf_request *req, uint32_t offset,
                           const uint8_t *data, uint32_t len);

/* protection.c: commands for namespaces whose blocks have metadata */
extern const struct nvmf_command protection_compare_row;
extern const struct nvmf_command protection_copy_row;
extern const struct nvmf_command protection_read_row;
extern const struct nvmf_command protection_verify_row;
extern const struct nvmf_command protection_write_row;
extern const struct nvmf_command protection_zeroes_row;
/* How many blocks of the command so many bytes of the host's data are. */
uint32_t protection_blocks_in(const struct nvmf_ns *ns,
                              const struct nvmf_request *req, uint32_t bytes);
/* The bytes of the blocks that are complete in so many bytes. */
uint32_t protection_round_window(const struct nvmf_request *req,
                                 uint32_t bytes);
uint16_t protection_compare(struct nvmf_target *target,
                            struct nvmf_request *req);
uint16_t protection_write_fused(struct nvmf_target *target,
                                struct nvmf_request *req);
/* Check the tags of a source range of Copy. */
uint16_t protection_check_copy_range(struct nvmf_request *req,
                                     uint64_t first_lba, uint32_t ref_tag);
/* Blocks of a chunk of Copy. */
uint32_t protection_copy_room(const struct nvmf_request *req);
/* Read or write a chunk of Copy.
 * @param ref_tag, app_tags  of its source range, or of the destination
 * @param done  blocks of that before the chunk */
uint16_t protection_copy_chunk(struct nvmf_target *target,
                               struct nvmf_request *req, struct media_io *io,
                               uint32_t ref_tag, uint32_t app_tags,
                               uint32_t done);

/* The blocks that so many bytes of a command's data are. */
static inline uint32_t io_blocks_in(const struct nvmf_ns *ns,
                                    const struct nvmf_request *req,
                                    uint32_t bytes)
{
    return ns->geometry.has_metadata ? protection_blocks_in(ns, req, bytes)
                                     : bytes >> ns->geometry.block_shift;
}

/* lba_status.c */
uint16_t lba_status_check(struct nvmf_target *target, struct nvmf_request *req);
uint16_t lba_status_execute(struct nvmf_target *target,
                            struct nvmf_request *req);
/* A command could not read blocks. */
void lba_status_note_error(struct nvmf_target *target,
                           const struct nvmf_request *req);
/* Blocks were written or deallocated, so that they can be read again. */
void lba_status_written(struct nvmf_target *target, const struct nvmf_ns *ns,
                        uint64_t first_lba, uint64_t count_blocks);
/* A namespace was attached: its tracked blocks are news to that controller. */
void lba_status_attached(struct nvmf_target *target, uint32_t nsid);
/* The blocks of a namespace are gone. */
void lba_status_forget(struct nvmf_target *target, uint32_t nsid);
MUST_USE bool lba_scan_takes_error(struct nvmf_target *target,
                                   struct nvmf_request *req, bool is_mark);
/* A scan gives its turn back. */
void lba_scan_give(struct nvmf_target *target, struct nvmf_request *req);

/* lba_status_log.c */
void lba_log_check_read(struct nvmf_target *target,
                        const struct nvmf_request *req);
void lba_log_begin_read(struct nvmf_target *target,
                        const struct nvmf_request *req);
/* The host has read the page without Retain Asynchronous Event. */
void lba_log_end_read(struct nvmf_target *target, const struct nvmf_ctrl *ctrl);
uint32_t lba_log_len(struct nvmf_target *target, const struct nvmf_ctrl *ctrl);
void lba_log_build(struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
                   uint32_t part);
void lba_log_reset_ctrl(struct nvmf_target *target,
                        const struct nvmf_ctrl *ctrl);
/* Send the alerts that are due.  @return when the next one is */
uint64_t lba_log_timer(struct nvmf_target *target);
void lba_log_withdraw_alerts(struct nvmf_target *target);
uint32_t lba_attributes_get(const struct nvmf_target *target,
                            const struct nvmf_ctrl *ctrl,
                            struct nvmf_request *req);
uint16_t lba_attributes_set(struct nvmf_target *target,
                            struct nvmf_request *req);

/* request.c, transfer.c */
void request_write_data(struct nvmf_request *req, uint32_t offset,
                        const uint8_t *data, uint32_t len);
void request_read_data(const struct nvmf_request *req, uint32_t offset,
                       uint8_t *data, uint32_t len);
uint16_t request_admit(struct nvmf_target *target, struct nvmf_qpair *qpair,
                       struct nvmf_request *req);
void request_execute(struct nvmf_target *target, struct nvmf_request *req);
void request_wait_turn(struct nvmf_request *req);
void request_enter(struct nvmf_request *req, enum nvmf_request_state next);
void request_start_window(struct nvmf_target *target, struct nvmf_request *req);
void request_begin(struct nvmf_target *target, struct nvmf_request *req);
void request_wait_event(struct nvmf_request *req);
void request_wait_media(struct nvmf_request *req);
void request_resume(struct nvmf_request *req);
void request_restart(struct nvmf_target *target, struct nvmf_request *req);
void request_complete(struct nvmf_target *target, struct nvmf_request *req,
                      uint16_t status);
void request_answer_held(struct nvmf_target *target, struct nvmf_request *req);
void request_drop(struct nvmf_target *target, struct nvmf_request *req);
void request_drop_waiting(struct nvmf_target *target, uint16_t qpair);
bool request_abort_waiting(struct nvmf_target *target, uint16_t qpair,
                           uint16_t cid, uint16_t status);
MUST_USE uint16_t request_media(struct nvmf_target *target,
                                struct nvmf_request *req, struct media_io *io);

/* qpair.c */
uint16_t qpair_max_depth(uint16_t qid);

/*
 * Charge a queue to the queue budget when Connect has named its QID and size.
 * A queue that was reserved with hints is charged already.  ctrl is NULL for an
 * admin queue.
 *
 * @return false when too little of the budget is left
 */
MUST_USE bool qpair_size_from_connect(struct nvmf_target *target,
                                      uint16_t qpair, uint16_t qid,
                                      uint16_t depth, struct nvmf_ctrl *ctrl);
void qpair_connect(struct nvmf_target *target, uint16_t qpair, uint8_t ctrl,
                   bool is_trusted);
void qpair_disconnect(struct nvmf_target *target, uint16_t qpair);
void qpair_drained(struct nvmf_target *target, uint16_t qpair);
void qpair_expired(struct nvmf_target *target, uint16_t qpair);
void qpair_end_silent(struct nvmf_target *target, uint16_t qpair);

void qpair_trust(struct nvmf_target *target, uint16_t qpair);
void qpair_start_timer(struct nvmf_target *target, uint16_t qpair,
                       uint32_t timeout_ms);
void qpair_stop_timer(struct nvmf_target *target, uint16_t qpair);

/* A request of this queue pair was handed back to the transport. */
static inline void qpair_request_ended(struct nvmf_target *target,
                                       uint16_t index)
{
    struct nvmf_qpair *qpair = &target->qpair[index];

    ASSERT(qpair->in_flight > 0);
    qpair->in_flight--;
    if (__builtin_expect(qpair->state == QPAIR_DRAINING, 0) &&
        qpair->in_flight == 0) {
        request_hooks.drained(target, index);
    }
}

/* stage.c: what counts at each stage.  Whoever asks whether there is a
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
bool ctrl_is(const struct nvmf_ctrl *ctrl, enum ctrl_fact fact);

/* Whether a queue pair's commands are those of its controller's host, as far as
 * that is proven. */
static inline bool qpair_speaks_for_ctrl(const struct nvmf_qpair *qpair)
{
    return qpair->state == QPAIR_LIVE ||
           (qpair->ctrl != NO_CTRL && (qpair->qid == 0 || qpair->is_joined));
}

/* share.c: queue pairs whose hosts have proven no identity */
typedef bool share_filter(const struct nvmf_target *target,
                          const struct nvmf_qpair *qpair);
void share_init(struct nvmf_target *target);
void share_enter(struct nvmf_target *target, uint16_t qpair);
void share_leave(struct nvmf_target *target, uint16_t qpair);

bool share_is_address(const struct nvmf_qpair *qpair, const uint8_t *host);

/* How many of them are from this address. */
uint16_t share_count(const struct nvmf_target *target, const uint8_t *host);

/*
 * The oldest one of the address that has most of them, of those that may go.
 *
 * @param may_go  NULL: all
 * @param except  an address whose queue pairs stay; or NULL
 * @return NO_QPAIR when there is none
 */
uint16_t share_choose(const struct nvmf_target *target, share_filter *may_go,
                      const uint8_t *except);

/* host_auth.c */
void auth_init(struct nvmf_target *target);

/*
 * Decide whether a host may connect.
 *
 * @param is_needed  set to whether the host must authenticate
 * @return a status, or 0; then auth_begin() finds a free session
 */
uint16_t auth_admit(struct nvmf_target *target, const char *hostnqn,
                    bool *is_needed);
void auth_begin(struct nvmf_target *target, uint16_t qpair);
void auth_release(struct nvmf_target *target, uint16_t qpair);
bool auth_is_under_way(const struct nvmf_target *target, uint8_t ctrl);

/* Report that the queue pair's session, if it has one, ends for another. */
void auth_displace(struct nvmf_target *target, uint16_t qpair);

/* End the I/O queues of a controller that are not proven yet.
 * @param qid  those that claim this QID; 0: all */
void auth_end_claims(struct nvmf_target *target, uint8_t ctrl, uint16_t qid);
void auth_expired(struct nvmf_target *target, uint16_t qpair);

/* A command came before the host has authenticated.  @return its status */
uint16_t auth_skipped(struct nvmf_target *target, struct nvmf_request *req);
uint16_t auth_command_check(struct nvmf_target *target,
                            struct nvmf_request *req);
uint16_t auth_send_execute(struct nvmf_target *target,
                           struct nvmf_request *req);
uint16_t auth_receive_execute(struct nvmf_target *target,
                              struct nvmf_request *req);

/* ctrl.c */
uint8_t ctrl_create(struct nvmf_target *target, bool is_discovery,
                    const struct nvmf_qpair *admin,
                    const struct connect_data *data, uint32_t kato_ms);
uint8_t ctrl_find(const struct nvmf_target *target, uint16_t cntlid);
bool ctrl_is_of_host(const struct nvmf_target *target,
                     const struct nvmf_ctrl *ctrl, const uint8_t *host);

/* A queue pair names the controller: it stays until the queue pair is free. */
void ctrl_attach(struct nvmf_target *target, uint8_t ctrl, uint16_t qid,
                 uint16_t qpair);

/* Whether an I/O queue may be connected with this QID now. */
bool ctrl_takes_qid(const struct nvmf_ctrl *ctrl, uint16_t qid);

/* The host has proven its identity on this queue. */
void ctrl_join(struct nvmf_target *target, uint8_t ctrl, uint16_t qid,
               uint16_t qpair);
void ctrl_detach(struct nvmf_target *target, uint8_t ctrl, uint16_t qid);
void ctrl_release(struct nvmf_target *target, uint8_t ctrl, bool was_joined);
void ctrl_end(struct nvmf_target *target, uint8_t ctrl);
void ctrl_part(struct nvmf_target *target, uint8_t ctrl);
void ctrl_set_cc(struct nvmf_target *target, uint8_t ctrl, uint32_t cc);
bool ctrl_wants_shutdown(const struct nvmf_ctrl *ctrl);
uint32_t ctrl_begin_shutdown(struct nvmf_ctrl *ctrl);
void ctrl_end_shutdown(struct nvmf_ctrl *ctrl, uint32_t shutdown, bool is_ok);
uint32_t ctrl_csts(const struct nvmf_ctrl *ctrl);
void ctrl_set_kato(struct nvmf_target *target, uint8_t ctrl, uint32_t kato_ms);
void ctrl_expired(struct nvmf_target *target, uint8_t ctrl);
uint16_t ctrl_grant_queues(struct nvmf_target *target, struct nvmf_ctrl *ctrl,
                           uint16_t wanted);
void ctrl_forget_promise(struct nvmf_target *target, struct nvmf_ctrl *ctrl,
                         uint16_t queues);

/* target.c */

/* Set the drive's clock.  @param ctrl  whose host does it, or NULL */
void clock_set(struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
               uint64_t epoch_ms, uint64_t now_us);

/* What the clock shows at `now_us`, which may be before it was set. */
uint64_t clock_read_ms(const struct nvmf_target *target, uint64_t now_us);

/* event.c */
void event_raise(struct nvmf_target *target, struct nvmf_ctrl *ctrl,
                 enum ctrl_event event);
void event_log_read(struct nvmf_target *target, struct nvmf_ctrl *ctrl,
                    uint8_t lid);
void event_check_health(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
uint16_t event_request(struct nvmf_target *target, struct nvmf_request *req);
void event_give_up(struct nvmf_ctrl *ctrl, uint16_t cid);
bool event_abort(struct nvmf_target *target, struct nvmf_ctrl *ctrl,
                 uint16_t cid);
void event_abort_all(struct nvmf_target *target, struct nvmf_ctrl *ctrl);

/* ana.c */
enum { /* most bytes of the ANA log page */
       ANA_LOG_LEN = ANA_LOG_HEADER_LEN + NVMF_ANA_GROUPS * ANA_GROUP_LEN +
                     NVMF_MAX_NAMESPACES * 4,
};
void ana_init(struct nvmf_target *target);
bool ana_is_supported(const struct nvmf_target *target);

/** Whether the state of an allocated namespace allows a command that names it.
 * @return a status, or 0 */
uint16_t ana_check_allocated(struct nvmf_target *target,
                             struct nvmf_request *req, uint32_t nsid);

/** The same for a command that names all namespaces, or all that are attached.
 */
uint16_t ana_check_all(struct nvmf_target *target, struct nvmf_request *req,
                       bool is_attached);
uint16_t ana_check_get_feature(struct nvmf_target *target,
                               struct nvmf_request *req);
uint16_t ana_check_set_feature(struct nvmf_target *target,
                               struct nvmf_request *req);

/** Whether an active namespace can be reached through a controller's port. */
bool ana_is_reachable(const struct nvmf_target *target,
                      const struct nvmf_ctrl *ctrl, uint32_t nsid);

/** Whether Identify must not report how much of a namespace is in use. */
bool ana_hides_capacity(const struct nvmf_target *target,
                        const struct nvmf_ctrl *ctrl, uint32_t nsid);

/** Count a change of the log page: a namespace was attached or detached. */
void ana_attachment_changed(const struct nvmf_target *target,
                            struct nvmf_ctrl *ctrl, uint32_t nsid);

/** End the transitions that are over. @return the end of the next one */
uint64_t ana_timer(struct nvmf_target *target);
void ana_log_build(struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
                   uint32_t part);
void ana_log_build_groups(struct nvmf_target *target,
                          const struct nvmf_ctrl *ctrl, uint32_t part);

/* ns.c */
bool ns_is_valid(uint32_t nsid);
bool ns_is_active(const struct nvmf_ctrl *ctrl, uint32_t nsid);
struct nvmf_ns *ns_find_allocated(struct nvmf_target *target, uint32_t nsid);
struct nvmf_ns *ns_find_active(struct nvmf_target *target,
                               const struct nvmf_ctrl *ctrl, uint32_t nsid);
uint16_t ns_check_closely(struct nvmf_target *target, struct nvmf_request *req);
void ns_update_bars(struct nvmf_target *target, uint32_t nsid);
void ns_update_ctrl_bars(const struct nvmf_target *target,
                         struct nvmf_ctrl *ctrl);
uint16_t ns_check_source(struct nvmf_target *target, struct nvmf_request *req,
                         uint32_t nsid, struct nvmf_ns **ns);
uint16_t ns_flush_all(struct nvmf_target *target, struct nvmf_request *req);
void ns_enter(struct nvmf_ns *ns, enum ns_state next);
void ns_set_caution(struct nvmf_ns *ns, uint8_t caution, bool is_on);
void ns_released(struct nvmf_target *target, struct nvmf_request *req,
                 struct nvmf_ns *ns, uint16_t status);
void ns_source_released(struct nvmf_target *target, struct nvmf_request *req,
                        struct nvmf_ns *ns);
uint16_t ns_check_state(struct nvmf_target *target, struct nvmf_request *req,
                        uint32_t nsid);
void ns_tell_changed(struct nvmf_target *target, struct nvmf_ctrl *ctrl,
                     uint32_t nsid);

/* ns_*.c: rows of admin_commands, and what follows from them */
enum { NS_FORMATS = 4, NS_FORMATS_PLAIN = 2 };
extern const uint8_t ns_format_shifts[NS_FORMATS]; /* LBA formats */
/* How many LBA formats this drive has: blocks without metadata come first. */
uint8_t ns_format_count(const struct nvmf_target *target);
/* The fields of Identify Namespace with the format: FLBAS and DPS. */
uint8_t ns_flbas(const struct nvmf_ns *ns);
uint8_t ns_dps(const struct nvmf_ns *ns);

uint16_t ns_wait_turn(struct nvmf_target *target, struct nvmf_request *req);
bool ns_is_any_protected(struct nvmf_target *target,
                         const struct nvmf_ctrl *active_on);
bool ns_are_manageable(const struct nvmf_target *target);
void ns_attach_new(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
void ns_detach_all(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
void ns_load(struct nvmf_target *target, uint32_t nsid);
bool ns_drained(struct nvmf_target *target, const struct nvmf_ns *ns);
uint16_t ns_result_status(enum nvmf_volume_result result);
void ns_awaited_ended(struct nvmf_target *target, const struct nvmf_ns *ns);
uint16_t ns_management_check(struct nvmf_target *target,
                             struct nvmf_request *req);
uint16_t ns_management_execute(struct nvmf_target *target,
                               struct nvmf_request *req);
uint16_t ns_attachment_check(struct nvmf_target *target,
                             struct nvmf_request *req);
uint16_t ns_attachment_execute(struct nvmf_target *target,
                               struct nvmf_request *req);
uint16_t ns_format_check(struct nvmf_target *target, struct nvmf_request *req);
uint16_t ns_format_execute(struct nvmf_target *target,
                           struct nvmf_request *req);

/* ns_protect.c */
uint16_t ns_protect_execute(struct nvmf_target *target,
                            struct nvmf_request *req,
                            enum nvmf_protection protection);
void ns_protect_end(struct nvmf_target *target, struct nvmf_request *req);

/* The command uses the namespace until ns_release(). */
static inline void ns_use(struct nvmf_ns *ns, struct nvmf_request *req)
{
    req->ns = ns;
    ns->users++;
}

/*
 * Check that a command's NSID names an active namespace that takes this
 * command.  The command uses the namespace from now on until ns_release().
 */
static inline uint16_t ns_check(struct nvmf_target *target,
                                const struct nvmf_ctrl *ctrl,
                                struct nvmf_request *req)
{
    uint32_t i = req->sqe.nsid - 1; /* wraps if the NSID is 0 */
    uint8_t kinds = req->command->flags | COMMAND_NEEDS_NS;

    if (__builtin_expect(
            i >= NVMF_MAX_NAMESPACES || (ctrl->ns_bars[i] & kinds) != 0, 0)) {
        return request_hooks.ns_check_more(target, req);
    }
    ns_use(&target->ns[i], req);
    return NVME_SC_SUCCESS;
}

/* patience.c */

/* Look at what has waited too long.  @return when to look again */
uint64_t patience_timer(struct nvmf_target *target);
/* A namespace refuses commands from now on: refuse those that wait for buffers
 * or for other commands of their host, too. */
void patience_abort_waiting(struct nvmf_target *target,
                            const struct nvmf_ns *ns);

/* admin.c */
uint16_t keep_alive_execute(struct nvmf_target *target,
                            struct nvmf_request *req);
uint16_t abort_execute(struct nvmf_target *target, struct nvmf_request *req);

/* sanitize.c */
bool sanitize_exists(const struct nvmf_target *target);
uint32_t sanitize_capabilities(const struct nvmf_target *target);
void sanitize_load(struct nvmf_target *target);
void sanitize_drained(struct nvmf_target *target);
extern const struct nvmf_command sanitize_refusal; /* instead of a command */
bool sanitize_refuses_command(uint8_t opcode);
bool sanitize_refuses_log(const struct nvmf_target *target, uint8_t lid);
uint16_t sanitize_check(struct nvmf_target *target, struct nvmf_request *req);
uint16_t sanitize_execute(struct nvmf_target *target, struct nvmf_request *req);
void log_build_sanitize(struct nvmf_target *target,
                        const struct nvmf_ctrl *ctrl, uint32_t part);

/* The status of commands that a sanitize operation forbids, or 0. */
static inline uint16_t sanitize_status(const struct nvmf_target *target)
{
    return target->sanitize.status;
}

/* firmware.c */
bool firmware_exists(const struct nvmf_target *target);
uint8_t firmware_capabilities(const struct nvmf_target *target);
bool firmware_is_pending(const struct nvmf_target *target);
bool firmware_is_committing(const struct nvmf_target *target);
void firmware_init(struct nvmf_target *target);
void firmware_ctrl_reset(struct nvmf_target *target,
                         const struct nvmf_ctrl *ctrl);
void firmware_tell_host(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
uint16_t firmware_download_check(struct nvmf_target *target,
                                 struct nvmf_request *req);
uint16_t firmware_download_execute(struct nvmf_target *target,
                                   struct nvmf_request *req);
uint16_t firmware_commit_check(struct nvmf_target *target,
                               struct nvmf_request *req);
uint16_t firmware_commit_execute(struct nvmf_target *target,
                                 struct nvmf_request *req);
void firmware_log_was_read(struct nvmf_target *target);
void log_build_firmware_slot(struct nvmf_target *target,
                             const struct nvmf_ctrl *ctrl, uint32_t part);

/* self_test.c */
bool self_test_exists(const struct nvmf_target *target);
void self_test_ctrl_reset(struct nvmf_target *target,
                          const struct nvmf_ctrl *ctrl);
void self_test_formatting(struct nvmf_target *target, uint32_t nsid);
void self_test_sanitizing(struct nvmf_target *target);
void self_test_ns_removed(struct nvmf_target *target, uint32_t nsid);
uint16_t self_test_check(struct nvmf_target *target, struct nvmf_request *req);
uint16_t self_test_execute(struct nvmf_target *target,
                           struct nvmf_request *req);
void log_build_self_test(struct nvmf_target *target,
                         const struct nvmf_ctrl *ctrl, uint32_t part);

/* The command has ended with this status, as far as its namespace is
 * concerned. */
static inline void ns_release(struct nvmf_target *target,
                              struct nvmf_request *req, uint16_t status)
{
    struct nvmf_ns *ns = req->ns;

    if (ns != NULL) {
        req->ns = NULL;
        ns->users--;
        if (__builtin_expect(ns->caution != 0, 0)) {
            request_hooks.ns_ended(target, req, ns, status);
        }
    }
}

/* reservation_command.c, reservation_check.c */
extern const struct nvmf_command reservation_acquire_row;
extern const struct nvmf_command reservation_register_row;
extern const struct nvmf_command reservation_release_row;
extern const struct nvmf_command reservation_report_row;
uint8_t reservation_capabilities(const struct nvmf_target *target,
                                 const struct nvmf_ns *ns);
bool reservation_is_possible(const struct nvmf_ns *ns);
/* @return NULL if there is no such namespace, or if it has no reservations */
struct reservation *reservation_of(struct nvmf_target *target, uint32_t nsid);
void reservation_load(struct nvmf_target *target, uint32_t nsid);
void reservation_forget(struct nvmf_target *target, uint32_t nsid);
uint16_t reservation_commit(struct nvmf_target *target, uint32_t nsid,
                            const struct nvmf_ctrl *by);

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

/* reservation_notice.c */

/* Tell the hosts that were registered before and are not after, all except the
 * issuer. */
void notice_removed(struct nvmf_target *target, const struct nvmf_ns *ns,
                    const struct reservation *before,
                    const struct reservation *after, const uint8_t *issuer,
                    uint8_t type);
/* Tell the hosts that are registered, all except the issuer. */
void notice_registered(struct nvmf_target *target, const struct nvmf_ns *ns,
                       const struct reservation *after, const uint8_t *issuer,
                       uint8_t type);
void log_build_reservation(struct nvmf_target *target,
                           const struct nvmf_ctrl *ctrl, uint32_t part);
void notice_was_read(struct nvmf_ctrl *ctrl);
uint16_t reservation_feature_check(const struct nvmf_target *target,
                                   struct nvmf_request *req);
uint32_t reservation_mask_get(const struct nvmf_target *target,
                              const struct nvmf_ctrl *ctrl,
                              struct nvmf_request *req);
uint16_t reservation_mask_set(struct nvmf_target *target,
                              struct nvmf_request *req);
uint32_t reservation_persistence_get(const struct nvmf_target *target,
                                     const struct nvmf_ctrl *ctrl,
                                     struct nvmf_request *req);
uint16_t reservation_persistence_set(struct nvmf_target *target,
                                     struct nvmf_request *req);

/* identify.c, log.c, feature.c: rows of admin_commands */
uint16_t identify_check(struct nvmf_target *target, struct nvmf_request *req);
uint16_t identify_execute(struct nvmf_target *target, struct nvmf_request *req);
uint16_t log_check(struct nvmf_target *target, struct nvmf_request *req);
uint16_t log_execute(struct nvmf_target *target, struct nvmf_request *req);
bool log_exists(const struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
                uint8_t lid);
uint32_t feature_effects(const struct nvmf_target *target,
                         const struct nvmf_ctrl *ctrl, uint8_t fid);
void log_build_supported(struct nvmf_target *target,
                         const struct nvmf_ctrl *ctrl, uint32_t part);
void log_build_feature_effects(struct nvmf_target *target,
                               const struct nvmf_ctrl *ctrl, uint32_t part);
void log_build_mi_effects(struct nvmf_target *target,
                          const struct nvmf_ctrl *ctrl, uint32_t part);
void log_build_ocp_smart(struct nvmf_target *target,
                         const struct nvmf_ctrl *ctrl, uint32_t part);
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
/* What SMART reports, with the default temperature thresholds. */
struct log_smart log_smart_of_drive(const struct nvmf_target *target);
uint8_t log_critical_warning(const struct nvmf_target *target,
                             const struct nvmf_ctrl *ctrl);
uint16_t feature_get_check(struct nvmf_target *target,
                           struct nvmf_request *req);
uint16_t feature_get(struct nvmf_target *target, struct nvmf_request *req);
uint16_t feature_set_check(struct nvmf_target *target,
                           struct nvmf_request *req);
uint16_t feature_set(struct nvmf_target *target, struct nvmf_request *req);

/* error_log.c */
void log_build_error(struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
                     uint32_t part);
void log_build_error_times(struct nvmf_target *target,
                           const struct nvmf_ctrl *ctrl, uint32_t part);

/* log_endurance.c */

/* Whether a Get Log Page names the endurance group that there is. */
bool endurance_is_valid(const struct nvmf_request *req);
/* The critical warnings that concern an endurance group. */
uint8_t endurance_warning(const struct nvmf_target *target,
                          const struct nvmf_ctrl *ctrl);
void endurance_build(struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
                     uint32_t part);

/* log_ocp.c */
void log_build_ocp_recovery(struct nvmf_target *target,
                            const struct nvmf_ctrl *ctrl, uint32_t part);
void log_build_ocp_capabilities(struct nvmf_target *target,
                                const struct nvmf_ctrl *ctrl, uint32_t part);
void log_build_ocp_latency(struct nvmf_target *target,
                           const struct nvmf_ctrl *ctrl, uint32_t part);
void latency_start(struct nvmf_target *target);
/* A command of an I/O or admin queue is about to be answered.  The monitor is
 * on. */
void latency_note_answer(struct nvmf_target *target,
                         const struct nvmf_request *req);
/* @param scratch  LATENCY_FEATURE_LEN bytes */
uint32_t latency_feature_get(const struct nvmf_target *target,
                             struct nvmf_request *req, uint8_t *scratch,
                             enum nvmf_select select);
uint16_t latency_feature_set(struct nvmf_target *target,
                             struct nvmf_request *req, bool is_saved);
bool latency_is_saveable(const struct nvmf_target *target);

/* log_telemetry.c */
enum { TELEMETRY_PART_LEN = 4096 };

bool telemetry_exists(const struct nvmf_target *target);
uint32_t telemetry_host_len(const struct nvmf_target *target);
uint32_t telemetry_ctrl_len(const struct nvmf_target *target);
void telemetry_build_host(struct nvmf_target *target,
                          const struct nvmf_ctrl *ctrl, uint32_t part);
void telemetry_build_ctrl(struct nvmf_target *target,
                          const struct nvmf_ctrl *ctrl, uint32_t part);

/* A Get Log Page begins to copy its data: take a dump if it asks for one. */
void telemetry_begin_read(struct nvmf_target *target,
                          const struct nvmf_request *req);

/* A Get Log Page without Retain Asynchronous Event has ended. */
void telemetry_end_read(struct nvmf_target *target, uint8_t lid);

/* persistent_event.c: the persistent event log, and what is recorded in it */
enum { PEL_PART_LEN = 4096 };

void pel_init(struct nvmf_target *target);
/* A controller begins, is reset or ends: its reporting context is released. */
void pel_reset_ctrl(struct nvmf_target *target, const struct nvmf_ctrl *ctrl);
/* The drive's clock was set.  @param ctrl  NULL: no host has done it */
void pel_note_clock(struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
                    bool was_set, uint64_t before_ms);
void pel_note_reset(struct nvmf_target *target, const struct nvmf_ctrl *ctrl);
void pel_note_subsystem_reset(struct nvmf_target *target,
                              const struct nvmf_ctrl *own);
void pel_note_hours(struct nvmf_target *target);
void pel_note_health(struct nvmf_target *target);
/* A Firmware Commit has ended.  @param req  NULL: an image was given up */
void pel_note_firmware(struct nvmf_target *target,
                       const struct nvmf_request *req, uint8_t slot,
                       uint16_t status);
void pel_note_media_error(struct nvmf_target *target,
                          const struct nvmf_request *req, uint16_t status);
/* @param ns  NULL: all namespaces were deleted */
void pel_note_change_ns(struct nvmf_target *target,
                        const struct nvmf_request *req,
                        const struct nvmf_ns *ns, uint32_t nsid);
void pel_note_format_start(struct nvmf_target *target,
                           const struct nvmf_request *req);
void pel_note_format_end(struct nvmf_target *target,
                         const struct nvmf_request *req, uint32_t nsid,
                         uint16_t status);
void pel_note_sanitize_start(struct nvmf_target *target);
void pel_note_sanitize_end(struct nvmf_target *target, uint16_t progress,
                           uint16_t status);
void pel_note_set_feature(struct nvmf_target *target,
                          const struct nvmf_request *req);
void pel_note_telemetry(struct nvmf_target *target,
                        const struct nvmf_ctrl *ctrl, const uint8_t *header);

/* Check the action of Get Log Page, and set the length of its data. */
uint16_t pel_check(struct nvmf_request *req);
/* Do the action, before each window of data.  @param offset  in the page */
uint16_t pel_begin_read(struct nvmf_target *target, struct nvmf_request *req,
                        uint64_t *offset);
uint32_t pel_len(const struct nvmf_target *target,
                 const struct nvmf_ctrl *ctrl);
void pel_build(struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
               uint32_t part);

/* discovery.c */
uint32_t discovery_log_len(const struct nvmf_target *target,
                           const struct nvmf_ctrl *ctrl);
void discovery_log_part(struct nvmf_target *target,
                        const struct nvmf_ctrl *ctrl, uint32_t part);

enum {                        /* limits of commands, which Identify reports */
       FUSED_MAX_BLOCKS = 1,  /* ACWU */
       COPY_MAX_RANGES = 128, /* MSRC */
       COPY_MAX_RANGE_BLOCKS = 32768, /* MSSRL */
       COPY_MAX_BLOCKS = 65536,       /* MCL */
       LBA_POLL_INTERVAL = 10,        /* LSIPI, in units of 100 ms */
};

enum {
    DEFAULT_WCTEMP_K = 343,
    DEFAULT_CCTEMP_K = 353,
    NO_OVER_THRESHOLD_K = 0xffff, /* the default of single sensors */
    SPARE_THRESHOLD_PERCENT = 10,
};

#endif
