/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A transport of the target as the drive's main loop sees it, and the list of a
 * drive's transports.
 *
 * A transport has two sides.  The target calls it through struct nvmf_transport
 * (nvmeof/target/transport.h).  The main loop calls it through struct
 * nvmf_binding: it tells the transport the time, lets it finish what callbacks
 * must not do, and asks it how urgently it needs the next turn.  The
 * application puts its transports into a list once, and names none of them
 * afterwards.
 *
 * Context: the main loop of one hart.
 */
#ifndef ESSD_NVMEOF_BINDING_H
#define ESSD_NVMEOF_BINDING_H

#include "lib/util.h"

struct nvmf_transfer;

enum { NVMF_MAX_BINDINGS = 4 };

/* What a transport waits for its peers to acknowledge, in ascending order of
 * urgency. */
enum nvmf_turn {
    NVMF_TURN_NOT_NEEDED, /* Nothing is outstanding. */
    NVMF_TURN_MAY_WAIT,   /* Responses, whose memory nobody waits for: their
                           * acknowledgements can be handled together, some
                           * milliseconds later. */
    NVMF_TURN_IS_NEEDED,  /* Something that a command waits for: the next
                           * acknowledgement has to wake the loop. */
};

struct nvmf_binding_ops {
    /** Set the time of this turn; called before anything else of the turn. */
    void (*tick)(void *ctx, uint64_t now_us);

    /**
     * End connections and give back what they held, which callbacks must not
     * do.  Called in each turn, after completions have been delivered.
     *
     * @return whether it had work to do
     */
    bool (*step)(void *ctx);

    /**
     * End the connections of peers that have been silent for too long.  Called
     * in full turns.
     *
     * @return when to call it again at the latest; UINT64_MAX if there is no
     *         need
     */
    uint64_t (*watch)(void *ctx);

    enum nvmf_turn (*needs_turn)(const void *ctx);

    /**
     * A local address of a service has changed or was removed: connections that
     * use the former one end.
     *
     * @param service  0..services - 1
     * @param laddr    index of the address
     * @param portid   PORTID of its entry in the discovery log
     * @param link     nvmf_address.link of that entry
     */
    void (*set_address)(void *ctx, uint8_t service, uint8_t laddr,
                        uint16_t portid, uint32_t link);

    /** The request of a number from 0 to requests - 1, whether or not it holds
     * a command: see nvmf_target_request_info(). */
    const struct nvmf_transfer *(*request)(const void *ctx, uint32_t number);
};

struct nvmf_binding {
    const struct nvmf_binding_ops *ops;
    void *ctx;         /* first argument of the operations */
    uint8_t services;  /* that have local addresses of their own */
    uint32_t requests; /* that it has memory for */
};

/* The transports of a drive.  Zeroed, the list is empty. */
struct nvmf_bindings {
    struct nvmf_binding list[NVMF_MAX_BINDINGS];
    uint8_t count;
    uint32_t requests; /* of all of them */
};

/** Add a transport, which is initialised. */
static inline void nvmf_bindings_add(struct nvmf_bindings *bindings,
                                     struct nvmf_binding binding)
{
    ASSERT(bindings->count < NVMF_MAX_BINDINGS);
    bindings->list[bindings->count++] = binding;
    bindings->requests += binding.requests;
}

/* The operations of all transports. */

static inline void nvmf_bindings_tick(const struct nvmf_bindings *bindings,
                                      uint64_t now_us)
{
    const struct nvmf_binding *end = bindings->list + bindings->count;

    for (const struct nvmf_binding *b = bindings->list; b != end; b++) {
        b->ops->tick(b->ctx, now_us);
    }
}

static inline bool nvmf_bindings_step(const struct nvmf_bindings *bindings)
{
    const struct nvmf_binding *end = bindings->list + bindings->count;
    bool is_busy = false;

    for (const struct nvmf_binding *b = bindings->list; b != end; b++) {
        is_busy |= b->ops->step(b->ctx);
    }
    return is_busy;
}

static inline uint64_t nvmf_bindings_watch(const struct nvmf_bindings *bindings)
{
    uint64_t next_us = UINT64_MAX;

    for (uint8_t i = 0; i < bindings->count; i++) {
        uint64_t us = bindings->list[i].ops->watch(bindings->list[i].ctx);

        next_us = MIN(next_us, us);
    }
    return next_us;
}

/** The turn that the transport needs which needs it most urgently. */
static inline enum nvmf_turn nvmf_bindings_need_turn(
    const struct nvmf_bindings *bindings)
{
    const struct nvmf_binding *end = bindings->list + bindings->count;
    enum nvmf_turn most = NVMF_TURN_NOT_NEEDED;

    for (const struct nvmf_binding *b = bindings->list; b != end; b++) {
        enum nvmf_turn turn = b->ops->needs_turn(b->ctx);

        most = turn > most ? turn : most;
    }
    return most;
}

/** The address of this index is the same one for all services. */
static inline void nvmf_bindings_set_address(
    const struct nvmf_bindings *bindings, uint8_t laddr, uint16_t portid,
    uint32_t link)
{
    for (uint8_t i = 0; i < bindings->count; i++) {
        const struct nvmf_binding *binding = &bindings->list[i];

        for (uint8_t service = 0; service < binding->services; service++) {
            binding->ops->set_address(binding->ctx, service, laddr, portid,
                                      link);
        }
    }
}

/** The request of a number from 0 to bindings->requests - 1: the first
 * transport's requests have the lowest numbers. */
static inline const struct nvmf_transfer *nvmf_bindings_request(
    const struct nvmf_bindings *bindings, uint32_t number)
{
    const struct nvmf_binding *binding = bindings->list;

    ASSERT(number < bindings->requests);
    while (number >= binding->requests) {
        number -= binding->requests;
        binding++;
    }
    return binding->ops->request(binding->ctx, number);
}

#endif
