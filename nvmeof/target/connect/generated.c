/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Secure channel concatenation: keys of TLS that a host and the drive generate
 * when the host authenticates on an admin queue.
 * Spec: NVM Express Base 2.1 section 8.3.4.3, TCP Transport 1.1 section 3.6.1.
 *
 * A host authenticates on an admin queue without TLS, asks for a new key, and
 * connects again behind TLS with that key.  So a key
 *
 *  - waits for its host, GENERATED_WAIT_MS at most;
 *  - then belongs to the association whose admin queue was connected with it,
 *    and is deleted when that ends, or when the host replaces the key;
 *  - is void when the host's entry of the list has changed since.
 *
 * The association without TLS goes on, and gets no I/O queues any more.
 *
 * Keys are in RAM only.  Whatever deletes one wipes it.
 *
 * Only a host with a secret has keys here, so shares go by its name.  A place
 * is always found: keys of associations are no more than the connections behind
 * TLS, and those that wait make room for others.
 *
 * Left out: bit ASCR of Connect's answer.  The drive never asks a host for a
 * secure channel by itself.
 */
#include "nvmeof/target/connect/connect.h"

#include <string.h>

#include "lib/wipe.h"

enum {
    /* As long as for a message of an authentication: a host that is emulated
     * may be slow. */
    GENERATED_WAIT_MS = 120000,
    WAITING_MAX = 16,    /* keys that wait */
    WAITING_OF_HOST = 4, /* of one host: two for each port of the drive */
};

_Static_assert((int)NVMF_MAX_GENERATED_KEYS >=
                   (int)NVMF_MAX_BEHIND_TLS + (int)WAITING_MAX,
               "associations behind TLS do not take the places of keys that "
               "wait");

/* ---- Places. */

static bool is_waiting(const struct nvmf_generated_place *place)
{
    return place->key.number != 0 && place->ctrl == NO_CTRL;
}

static void delete_key(struct nvmf_target *target,
                       struct nvmf_generated_place *place)
{
    wipe_bytes(place, sizeof(*place));
    target->generated.in_use--;
}

static unsigned int count_waiting(const struct nvmf_target *target,
                                  const char *hostnqn)
{
    unsigned int count = 0;

    for (unsigned int i = 0; i < NVMF_MAX_GENERATED_KEYS; i++) {
        const struct nvmf_generated_place *place = &target->generated.place[i];

        count += is_waiting(place) &&
                 (hostnqn == NULL || strcmp(place->key.hostnqn, hostnqn) == 0);
    }
    return count;
}

/* Delete the oldest key that waits, of this host; NULL: of the one that has
 * most of them. */
static void delete_oldest(struct nvmf_target *target, const char *hostnqn)
{
    struct nvmf_generated_place *oldest = NULL;
    unsigned int most = 0;

    for (unsigned int i = 0; i < NVMF_MAX_GENERATED_KEYS; i++) {
        struct nvmf_generated_place *place = &target->generated.place[i];
        unsigned int of_host;

        if (!is_waiting(place) ||
            (hostnqn != NULL && strcmp(place->key.hostnqn, hostnqn) != 0)) {
            continue;
        }
        of_host = count_waiting(target, place->key.hostnqn);
        if (oldest == NULL || of_host > most ||
            (of_host == most && place->key.number < oldest->key.number)) {
            oldest = place;
            most = of_host;
        }
    }
    ASSERT(oldest != NULL);
    delete_key(target, oldest);
}

static struct nvmf_generated_place *find_number(struct nvmf_target *target,
                                                uint32_t number)
{
    for (unsigned int i = 0; i < NVMF_MAX_GENERATED_KEYS; i++) {
        struct nvmf_generated_place *place = &target->generated.place[i];

        if (number != 0 && place->key.number == number) {
            return place;
        }
    }
    return NULL;
}

static void start_timer(struct nvmf_target *target)
{
    uint64_t first_us = UINT64_MAX;

    for (unsigned int i = 0; i < NVMF_MAX_GENERATED_KEYS; i++) {
        const struct nvmf_generated_place *place = &target->generated.place[i];

        if (is_waiting(place)) {
            first_us = MIN(first_us, place->end_us);
        }
    }
    wheel_stop(&target->wheel, WHEEL_GENERATED);
    if (first_us != UINT64_MAX) {
        wheel_start(&target->wheel, WHEEL_GENERATED, first_us);
    }
}

void generated_expired(struct nvmf_target *target)
{
    for (unsigned int i = 0; i < NVMF_MAX_GENERATED_KEYS; i++) {
        struct nvmf_generated_place *place = &target->generated.place[i];

        if (is_waiting(place) && target->now_us >= place->end_us) {
            delete_key(target, place);
        }
    }
    start_timer(target);
}

/* ---- What TLS asks. */

void nvmf_target_set_key_maker(struct nvmf_target *target,
                               const struct nvmf_key_maker *maker)
{
    target->generated.maker = *maker;
}

/* Whether the host still has a secret, and its entry is as it was. */
static bool has_same_entry(const struct nvmf_target *target,
                           const struct nvmf_generated_place *place)
{
    struct nvmf_host host;

    if (!host_entry_find(target, place->key.hostnqn, &host) ||
        !host_entry_has_key(&host)) {
        return false;
    }
    return host_entry_mark(target, &(struct auth_peer){
                                       .host_key = host.host_key,
                                       .ctrl_key = host.ctrl_key,
                                       .least_hash = host.least_hash,
                                       .least_dh = host.least_dh,
                                   }) == place->entry_mark;
}

const struct nvmf_generated_key *nvmf_target_generated_key(
    const struct nvmf_target *target, const char *hostnqn, const char *digest)
{
    for (unsigned int i = 0; i < NVMF_MAX_GENERATED_KEYS; i++) {
        const struct nvmf_generated_place *place = &target->generated.place[i];

        if (place->key.number != 0 &&
            strcmp(place->key.hostnqn, hostnqn) == 0 &&
            strcmp(place->key.digest, digest) == 0) {
            return has_same_entry(target, place) ? &place->key : NULL;
        }
    }
    return NULL;
}

/* ---- Authentication. */

static struct nvmf_channel channel_of(const struct nvmf_target *target,
                                      uint16_t qpair)
{
    const struct nvmf_transport *transport = target->qpair[qpair].transport;

    return transport->channel != NULL
               ? transport->channel(transport->ctx, qpair)
               : (struct nvmf_channel){.kind = NVMF_CHANNEL_NO_TLS};
}

uint8_t generated_offer(const struct nvmf_target *target, uint16_t qpair)
{
    const struct nvmf_ctrl *ctrl = &target->ctrl[target->qpair[qpair].ctrl];
    struct nvmf_channel channel = channel_of(target, qpair);

    if (target->qpair[qpair].qid != 0 || ctrl->state == CTRL_PARTING ||
        target->generated.maker.derive == NULL) {
        return AUTH_CONCAT_NONE;
    }
    if (channel.kind == NVMF_CHANNEL_PLAIN) {
        /* What is open stays without TLS. */
        return ctrl->io_count == 0 ? AUTH_CONCAT_NEW : AUTH_CONCAT_NONE;
    }
    return channel.kind == NVMF_CHANNEL_GENERATED ? AUTH_CONCAT_REPLACE
                                                  : AUTH_CONCAT_NONE;
}

/* For another key that waits. */
static void make_room(struct nvmf_target *target, const char *hostnqn)
{
    if (count_waiting(target, hostnqn) >= WAITING_OF_HOST) {
        delete_oldest(target, hostnqn);
    } else if (count_waiting(target, NULL) >= WAITING_MAX) {
        delete_oldest(target, NULL);
    }
}

static struct nvmf_generated_place *take_place(struct nvmf_target *target)
{
    struct nvmf_generated_place *place = target->generated.place;

    while (place->key.number != 0) {
        place++;
        ASSERT(place < target->generated.place + NVMF_MAX_GENERATED_KEYS);
    }
    target->generated.in_use++;
    return place;
}

void generated_add(struct nvmf_target *target, uint16_t qpair,
                   const struct nvmf_auth *auth)
{
    const struct auth_session *session = &auth->session;
    const struct nvmf_key_maker *maker = &target->generated.maker;
    uint8_t index = target->qpair[qpair].ctrl;
    struct nvmf_ctrl *ctrl = &target->ctrl[index];
    bool is_replacement = session->concat == AUTH_CONCAT_REPLACE;
    struct nvmf_generated_place *place;

    if (session->concat == AUTH_CONCAT_NONE) {
        return;
    }
    if (is_replacement) {
        generated_end(target, index);
    } else {
        ctrl->moves_behind_tls = true;
        make_room(target, ctrl->hostnqn);
    }
    place = take_place(target);
    place->ctrl = is_replacement ? index : NO_CTRL;
    place->end_us = target->now_us + GENERATED_WAIT_MS * 1000ull;
    place->entry_mark = auth->entry_mark;
    target->generated.count = MAX(target->generated.count + 1, 1u);
    place->key.number = target->generated.count;
    place->key.hash = session->hash;
    memcpy(place->key.hostnqn, ctrl->hostnqn, nvme_nqn_len(ctrl->hostnqn));
    memcpy(place->key.psk, session->psk, auth_hash_len(session->hash));
    maker->derive(maker->ctx, &place->key);
    start_timer(target);
}

/* ---- Associations. */

bool generated_proves(const struct nvmf_target *target, uint16_t qpair)
{
    return channel_of(target, qpair).kind == NVMF_CHANNEL_GENERATED;
}

bool generated_admits(struct nvmf_target *target, uint16_t qpair, uint8_t ctrl)
{
    struct nvmf_channel channel = channel_of(target, qpair);
    const struct nvmf_generated_place *place;

    if (channel.kind != NVMF_CHANNEL_GENERATED) {
        return true;
    }
    place = find_number(target, channel.key);
    return place != NULL && place->ctrl == ctrl;
}

void generated_use(struct nvmf_target *target, uint16_t qpair, uint8_t ctrl)
{
    struct nvmf_generated_place *place =
        find_number(target, channel_of(target, qpair).key);

    ASSERT(place != NULL && place->ctrl == NO_CTRL);
    place->ctrl = ctrl;
    target->ctrl[ctrl].host_number =
        host_proven_number(target, place->key.hostnqn);
    start_timer(target);
}

void generated_end(struct nvmf_target *target, uint8_t ctrl)
{
    for (unsigned int i = 0;
         i < NVMF_MAX_GENERATED_KEYS && target->generated.in_use != 0; i++) {
        struct nvmf_generated_place *place = &target->generated.place[i];

        if (place->key.number != 0 && place->ctrl == ctrl) {
            delete_key(target, place);
        }
    }
}

void generated_end_all(struct nvmf_target *target)
{
    for (unsigned int i = 0; i < NVMF_MAX_GENERATED_KEYS; i++) {
        if (target->generated.place[i].key.number != 0) {
            delete_key(target, &target->generated.place[i]);
        }
    }
    start_timer(target);
}
