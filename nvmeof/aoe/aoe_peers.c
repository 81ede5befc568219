/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes that were executed a short time ago.  A host that repeats one of them
 * has not received its answer.  It gets another one, but the write is not
 * executed again: somebody may have written newer data meanwhile.
 *
 * A repetition has the tag, the blocks and the data of the first one.  Linux
 * gives its repetitions other tags, so they are executed; docs/aoe.md says what
 * that means.  Entries count for REPEAT_US, in which no host gives up: later, a
 * host that has restarted may use a tag once more.
 *
 * Only a write that has changed the device makes an entry.  Whoever invents MAC
 * addresses to displace entries of others has to write, too, and could as well
 * write what the repetition would.
 */
#include "nvmeof/aoe/aoe_state.h"

#include <string.h>

#include "lib/bytes.h"

/* iPXE gives up after 16 s. */
#define REPEAT_US 20000000u

uint64_t aoe_digest(const uint8_t *data, size_t len)
{
    uint64_t digest = len;

    for (size_t i = 0; i < len; i += 8) {
        digest = (digest ^ get_le64(data + i)) * 0x9e3779b97f4a7c15u;
        digest ^= digest >> 29;
    }
    return digest;
}

static struct aoe_peer *find_peer(struct aoe *aoe, const uint8_t *mac)
{
    for (unsigned int i = 0; i < AOE_PEERS; i++) {
        struct aoe_peer *peer = &aoe->peers[i];

        if (peer->is_used && memcmp(peer->mac, mac, AOE_MAC_LEN) == 0) {
            return peer;
        }
    }
    return NULL;
}

/* An unused entry, or that of the station which has not written for the longest
 * time. */
static struct aoe_peer *take_peer(struct aoe *aoe, const uint8_t *mac)
{
    struct aoe_peer *oldest = &aoe->peers[0];

    for (unsigned int i = 0; i < AOE_PEERS && oldest->is_used; i++) {
        struct aoe_peer *peer = &aoe->peers[i];

        if (!peer->is_used || peer->seen_us < oldest->seen_us) {
            oldest = peer;
        }
    }
    memset(oldest, 0, sizeof(*oldest));
    oldest->is_used = true;
    memcpy(oldest->mac, mac, AOE_MAC_LEN);
    return oldest;
}

static bool is_running(const struct aoe_slot *slot,
                       const struct aoe_slot *write)
{
    return slot != write && slot->state != AOE_SLOT_FREE &&
           slot->ata.is_write && slot->header.tag == write->header.tag &&
           slot->header.minor == write->header.minor &&
           slot->lba == write->lba && slot->ata.count == write->ata.count &&
           slot->digest == write->digest &&
           memcmp(slot->from.mac, write->from.mac, AOE_MAC_LEN) == 0;
}

static bool is_done(const struct aoe *aoe, const struct aoe_write *done,
                    const struct aoe_slot *write)
{
    return done->done_us != 0 && aoe->now_us - done->done_us < REPEAT_US &&
           done->tag == write->header.tag &&
           done->minor == write->header.minor && done->lba == write->lba &&
           done->count == write->ata.count && done->digest == write->digest;
}

enum aoe_write_state aoe_peers_find(struct aoe *aoe,
                                    const struct aoe_slot *write)
{
    const struct aoe_peer *peer = find_peer(aoe, write->from.mac);

    for (unsigned int i = 0; i < AOE_SLOTS; i++) {
        if (is_running(&aoe->slots[i], write)) {
            return AOE_WRITE_RUNS;
        }
    }
    for (unsigned int i = 0; peer != NULL && i < AOE_PEER_WRITES; i++) {
        if (is_done(aoe, &peer->writes[i], write)) {
            return AOE_WRITE_DONE;
        }
    }
    return AOE_WRITE_NEW;
}

void aoe_peers_note(struct aoe *aoe, const struct aoe_slot *write)
{
    struct aoe_peer *peer = find_peer(aoe, write->from.mac);

    if (peer == NULL) {
        peer = take_peer(aoe, write->from.mac);
    }
    peer->seen_us = aoe->now_us;
    peer->writes[peer->next] = (struct aoe_write){
        .done_us = MAX(aoe->now_us, 1),
        .lba = write->lba,
        .digest = write->digest,
        .tag = write->header.tag,
        .minor = write->header.minor,
        .count = write->ata.count,
    };
    peer->next = (uint8_t)((peer->next + 1) % AOE_PEER_WRITES);
}
