/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/target/base/reservation.h"

#include <string.h>

enum {
    KEPT_PLACES = 32, /* for hosts that have few */
    FEW_PLACES = 4,
};

/* Whether every registrant holds a reservation of this type. */
static bool is_of_all(uint8_t rtype)
{
    return rtype == RTYPE_WRITE_EXCLUSIVE_ALL ||
           rtype == RTYPE_EXCLUSIVE_ACCESS_ALL;
}

/* Whether registrants that do not hold it may do what the holder may. */
static bool is_of_registrants(uint8_t rtype)
{
    return rtype >= RTYPE_WRITE_EXCLUSIVE_REGISTRANTS;
}

static bool forbids_reads(uint8_t rtype)
{
    return rtype == RTYPE_EXCLUSIVE_ACCESS ||
           rtype == RTYPE_EXCLUSIVE_ACCESS_REGISTRANTS ||
           rtype == RTYPE_EXCLUSIVE_ACCESS_ALL;
}

int reservation_find(const struct reservation *res, const uint8_t *hostid)
{
    for (uint16_t i = 0; i < res->count; i++) {
        if (memcmp(res->registrant[i].hostid, hostid, RESERVATION_HOSTID_LEN) ==
            0) {
            return i;
        }
    }
    return -1;
}

bool reservation_is_holder(const struct reservation *res, uint16_t index)
{
    return res->rtype != RTYPE_NONE &&
           (is_of_all(res->rtype) || index == res->holder);
}

bool reservation_is_closed(const struct reservation *res)
{
    return res->rtype != RTYPE_NONE && res->count == 0;
}

bool reservation_forbids(const struct reservation *res, const uint8_t *hostid,
                         bool is_write)
{
    int own;

    if (res->rtype == RTYPE_NONE || (!is_write && !forbids_reads(res->rtype))) {
        return false;
    }
    own = reservation_find(res, hostid);
    return own < 0 || (!is_of_registrants(res->rtype) &&
                       !reservation_is_holder(res, (uint16_t)own));
}

/* The registrant that a command comes from, if its key is right; else -1. */
static int find_issuer(const struct reservation *res,
                       const struct reservation_command *command)
{
    int own = reservation_find(res, command->hostid);

    return own >= 0 &&
                   (command->iekey || res->registrant[own].key == command->key)
               ? own
               : -1;
}

/* Remove a registrant.  The reservation ends with its last holder. */
static void remove_registrant(struct reservation *res, uint16_t index)
{
    if (reservation_is_holder(res, index) &&
        (!is_of_all(res->rtype) || res->count == 1)) {
        res->rtype = RTYPE_NONE;
    }
    res->count--;
    for (uint16_t i = index; i < res->count; i++) {
        res->registrant[i] = res->registrant[i + 1];
        res->made_by[i] = res->made_by[i + 1];
    }
    if (res->holder > index) {
        res->holder--;
    }
}

/* ---- Register. */

/*
 * Whether a host may register one host identifier more.  It says which one it
 * has, so one host could take all places, and nobody else could register and
 * then preempt.  The last places are for hosts that have few.
 */
static bool has_room(const struct reservation *res, uint32_t host)
{
    uint32_t own = 0;

    if (res->count < NVMF_MAX_REGISTRANTS - KEPT_PLACES || host == 0) {
        return res->count < NVMF_MAX_REGISTRANTS;
    }
    for (uint16_t i = 0; i < res->count; i++) {
        own += res->made_by[i] == host;
    }
    return res->count < NVMF_MAX_REGISTRANTS && own < FEW_PLACES;
}

static enum reservation_result add_registrant(
    struct reservation *res, const struct reservation_command *command)
{
    struct registrant *registrant = &res->registrant[res->count];

    if (!has_room(res, command->host)) {
        return RESERVATION_FULL;
    }
    res->made_by[res->count] = command->host;
    memcpy(registrant->hostid, command->hostid, RESERVATION_HOSTID_LEN);
    registrant->key = command->key2;
    res->count++;
    return RESERVATION_OK;
}

static enum reservation_result register_key(
    struct reservation *res, const struct reservation_command *command)
{
    int own = reservation_find(res, command->hostid);

    if (own < 0) {
        return add_registrant(res, command);
    }
    return res->registrant[own].key == command->key2 ? RESERVATION_OK
                                                     : RESERVATION_CONFLICT;
}

/* With IEKEY, Replace registers a host that is not registered yet. */
static enum reservation_result replace_key(
    struct reservation *res, const struct reservation_command *command)
{
    int own = find_issuer(res, command);

    if (own >= 0) {
        res->registrant[own].key = command->key2;
        return RESERVATION_OK;
    }
    return command->iekey ? add_registrant(res, command) : RESERVATION_CONFLICT;
}

/* The other hosts learn that they no longer have the access of registrants. */
static enum reservation_result unregister_key(
    struct reservation *res, const struct reservation_command *command,
    bool *is_released)
{
    uint8_t before = res->rtype;
    int own = find_issuer(res, command);

    if (own < 0) {
        return RESERVATION_CONFLICT;
    }
    remove_registrant(res, (uint16_t)own);
    *is_released = res->rtype != before && is_of_registrants(before);
    return RESERVATION_OK;
}

enum reservation_result reservation_register(
    struct reservation *res, const struct reservation_command *command,
    bool *is_released)
{
    enum reservation_result result;

    *is_released = false;
    if (command->action == RREGA_REGISTER) {
        result = register_key(res, command);
    } else if (command->action == RREGA_REPLACE) {
        result = replace_key(res, command);
    } else {
        result = unregister_key(res, command, is_released);
    }
    if (result == RESERVATION_OK) {
        res->generation++;
        if (command->cptpl != CPTPL_KEEP) {
            res->ptpl = command->cptpl == CPTPL_ON;
        }
    }
    return result;
}

/* ---- Acquire. */

static enum reservation_result take_reservation(struct reservation *res,
                                                uint16_t own, uint8_t rtype)
{
    if (res->rtype != RTYPE_NONE) {
        return reservation_is_holder(res, own) && res->rtype == rtype
                   ? RESERVATION_OK
                   : RESERVATION_CONFLICT;
    }
    res->rtype = rtype;
    res->holder = own;
    return RESERVATION_OK;
}

/* Remove the registrants with a key, or all if `key` is NULL.
 * @param spared  the identifier of a host that stays; NULL: none
 * @return whether there was one */
static bool remove_by_key(struct reservation *res, const uint64_t *key,
                          const uint8_t *spared)
{
    bool was_any = false;

    for (uint16_t i = res->count; i-- > 0;) {
        const struct registrant *registrant = &res->registrant[i];

        if ((key == NULL || registrant->key == *key) &&
            (spared == NULL ||
             memcmp(registrant->hostid, spared, RESERVATION_HOSTID_LEN) != 0)) {
            remove_registrant(res, i);
            was_any = true;
        }
    }
    return was_any;
}

/* Take the reservation from its holder, and remove registrants. */
static void take_over(struct reservation *res, const uint64_t *key,
                      const struct reservation_command *command,
                      bool *is_released)
{
    *is_released = res->rtype != command->rtype;
    remove_by_key(res, key, command->hostid);
    res->rtype = command->rtype;
    res->holder = (uint16_t)reservation_find(res, command->hostid);
}

static enum reservation_result preempt_key(
    struct reservation *res, const struct reservation_command *command,
    bool *is_released)
{
    bool is_held = res->rtype != RTYPE_NONE;
    uint8_t before = res->rtype;

    if (is_held && is_of_all(res->rtype) && command->key2 == 0) {
        take_over(res, NULL, command, is_released);
        return RESERVATION_OK;
    }
    if (is_held && !is_of_all(res->rtype)) {
        if (res->registrant[res->holder].key == command->key2) {
            take_over(res, &command->key2, command, is_released);
            return RESERVATION_OK;
        }
        if (command->key2 == 0) {
            return RESERVATION_INVALID;
        }
    }
    if (!remove_by_key(res, &command->key2, NULL)) {
        return RESERVATION_CONFLICT;
    }
    *is_released = res->rtype != before;
    return RESERVATION_OK;
}

enum reservation_result reservation_acquire(
    struct reservation *res, const struct reservation_command *command,
    bool *is_released)
{
    int own = find_issuer(res, command);
    enum reservation_result result;

    *is_released = false;
    if (own < 0) {
        return RESERVATION_CONFLICT;
    }
    if (command->action == RACQA_ACQUIRE) {
        return take_reservation(res, (uint16_t)own, command->rtype);
    }
    result = preempt_key(res, command, is_released);
    if (result == RESERVATION_OK) {
        res->generation++;
    }
    return result;
}

/* ---- Release. */

enum reservation_result reservation_release(
    struct reservation *res, const struct reservation_command *command,
    bool *is_released)
{
    int own = find_issuer(res, command);

    *is_released = false;
    if (own < 0) {
        return RESERVATION_CONFLICT;
    }
    if (command->action == RRELA_CLEAR) {
        res->rtype = RTYPE_NONE;
        res->count = 0;
        res->generation++;
        return RESERVATION_OK;
    }
    if (!reservation_is_holder(res, (uint16_t)own)) {
        return RESERVATION_OK; /* nothing changes */
    }
    if (res->rtype != command->rtype) {
        return RESERVATION_INVALID;
    }
    *is_released = is_of_registrants(res->rtype);
    res->rtype = RTYPE_NONE;
    return RESERVATION_OK;
}
