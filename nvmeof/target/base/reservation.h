/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registrations and the reservation of one namespace: a state machine that
 * knows nothing of queues, controllers or time.  A host is known by its host
 * identifier, so what it has registered outlives its associations.
 * Spec: NVM Express Base 1.4 section 8.8.
 *
 * Through the seam at the end, the application keeps them over power cycles.
 */
#ifndef ESSD_NVMEOF_TARGET_BASE_RESERVATION_H
#define ESSD_NVMEOF_TARGET_BASE_RESERVATION_H

#include "lib/util.h"
#include "nvmeof/limits.h"
#include "nvmeof/target/volume.h"
#include "nvmeof/wire/reservation.h"

enum { RESERVATION_HOSTID_LEN = 16 };

struct registrant {
    uint8_t hostid[RESERVATION_HOSTID_LEN];
    uint64_t key;
};

struct reservation {
    uint32_t generation;
    uint8_t rtype; /* RTYPE_NONE if there is no reservation */
    bool ptpl;     /* everything here outlives a loss of power */
    /* Index of the registrant that holds the reservation.  It means nothing if
     * there is no reservation, or if all registrants hold it. */
    uint16_t holder;
    uint16_t count; /* 0 although RTYPE_..._ALL: what flash had is lost */
    struct registrant registrant[NVMF_MAX_REGISTRANTS];
    /* The number of the host that has made each registration, as
     * ctrl_host_number(); 0: a start has read it from flash. */
    uint32_t made_by[NVMF_MAX_REGISTRANTS];
};

/* The fields of a Reservation Register, Acquire or Release command. */
struct reservation_command {
    const uint8_t *hostid;
    uint32_t host; /* a number for the host; 0: it has no share */
    uint8_t action;
    uint8_t rtype; /* of Acquire and Release: 1..RTYPES - 1 */
    uint8_t cptpl; /* of Register: not CPTPL_RESERVED */
    bool iekey;    /* the current key is not compared */
    uint64_t key;  /* CRKEY */
    uint64_t key2; /* NRKEY or PRKEY */
};

enum reservation_result {
    RESERVATION_OK,
    RESERVATION_CONFLICT,
    RESERVATION_INVALID, /* a field does not fit the state */
    RESERVATION_FULL,    /* there is no room for another registrant */
};

/*
 * Execute a command.  Nothing changes unless the result is RESERVATION_OK.
 *
 * @param is_released  set if the other hosts that are registered must be told
 *                     that the reservation was released
 */
enum reservation_result reservation_register(
    struct reservation *res, const struct reservation_command *command,
    bool *is_released);
enum reservation_result reservation_acquire(
    struct reservation *res, const struct reservation_command *command,
    bool *is_released);
enum reservation_result reservation_release(
    struct reservation *res, const struct reservation_command *command,
    bool *is_released);

/** @return the index of a host's registration, or -1 */
int reservation_find(const struct reservation *res, const uint8_t *hostid);

/** Whether the registrant at `index` holds the reservation. */
bool reservation_is_holder(const struct reservation *res, uint16_t index);

/** Whether the record of a namespace's reservation is lost, and no host has
 * registered since.  Then nobody reads or writes the namespace. */
bool reservation_is_closed(const struct reservation *res);

/** Whether the reservation forbids a host to write (is_write) or to read. */
bool reservation_forbids(const struct reservation *res, const uint8_t *hostid,
                         bool is_write);

/* Who changes a reservation. */
struct reservation_saver {
    uint32_t host;   /* a number for the host */
    bool fences_off; /* it removes the registration of another host */
};

/*
 * The seam: who keeps reservations over power cycles.  The identifier is the
 * UUID of the namespace, because its NSID may belong to another one later.
 */
struct nvmf_reservations {
    void *ctx;

    /**
     * Keep `res`.  NULL: nothing is kept, and PTPL is not supported.
     *
     * @param by  who changes it: the seam may limit how often each host does
     */
    enum nvmf_volume_result (*save)(void *ctx, uint32_t nsid,
                                    const uint8_t *uuid,
                                    const struct reservation *res,
                                    const struct reservation_saver *by);

    /** @return false when nothing is kept for this namespace */
    bool (*load)(void *ctx, uint32_t nsid, const uint8_t *uuid,
                 struct reservation *res);
};

#endif
