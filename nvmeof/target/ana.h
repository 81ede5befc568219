/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asymmetric Namespace Access (ANA): how well each group of namespaces can be
 * reached through each port.  The owner of the drive sets the states; hosts
 * read them, get events, and choose their path.
 *
 * Every group is optimized at every port when the target starts.
 * Spec: NVM Express Base 1.4 section 8.20.
 */
#ifndef ESSD_NVMEOF_TARGET_ANA_H
#define ESSD_NVMEOF_TARGET_ANA_H

#include "lib/util.h"
#include "nvmeof/limits.h"
#include "nvmeof/wire/ana.h"

struct nvmf_target;

enum nvmf_ana_result {
    NVMF_ANA_OK,
    NVMF_ANA_NO_GROUP, /* groups are 1..NVMF_ANA_GROUPS */
    NVMF_ANA_NO_PORT,  /* port identifiers are 1..NVMF_ANA_PORTS */
    NVMF_ANA_BAD_TIME, /* a transition takes ANATT at most */
    NVMF_ANA_LOST,     /* nothing ends the state Persistent Loss */
    NVMF_ANA_ABSENT,   /* the data sheet's profile has no ANA */
    NVMF_ANA_RESULTS
};

/* The state of one group at one port. */
struct nvmf_ana_relation {
    uint8_t state;     /* enum ana_state */
    uint8_t next;      /* of ANA_CHANGE: the state that follows */
    uint64_t until_us; /* of ANA_CHANGE: its end */
};

/**
 * Set the state of a group at a port.  Hosts get an event if it has changed.
 *
 * @param state          with ANA_CHANGE, the present state follows again after
 *                       transition_ms, or after ANATT if that is 0
 * @param transition_ms  with another state: the time for which the group is in
 *                       ANA_CHANGE before; nvmf_target_timer() ends it
 */
enum nvmf_ana_result nvmf_target_set_ana(struct nvmf_target *target,
                                         uint32_t anagrpid, uint16_t portid,
                                         enum ana_state state,
                                         uint32_t transition_ms,
                                         uint64_t now_us);

/** Whether nvmf_target_set_ana() would be possible. */
enum nvmf_ana_result nvmf_target_check_ana(const struct nvmf_target *target,
                                           uint32_t anagrpid, uint16_t portid,
                                           enum ana_state state,
                                           uint32_t transition_ms);

/** The state of a group, 1..NVMF_ANA_GROUPS, at a port, 1..NVMF_ANA_PORTS. */
enum ana_state nvmf_target_ana(const struct nvmf_target *target,
                               uint32_t anagrpid, uint16_t portid);

/** The name of a state, such as "non-optimized". */
const char *nvmf_ana_name(enum ana_state state);

/** @return false if no state has this name */
bool nvmf_ana_by_name(const char *name, enum ana_state *state);

#endif
