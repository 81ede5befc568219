/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who may use a device: its list of MAC addresses, and its reservation.  Both
 * are set by hosts, and lost with the power.  Neither of them proves anything:
 * a station can send with any address.
 *
 * A change that excludes a station forbids its commands at once.  It is
 * answered when none of them is being executed any more, so that nothing of
 * them follows the answer.  Until then, whoever asks for the list gets no
 * answer, and other stations change nothing but by force.
 * Spec: AoEr11 sections 3.3 and 3.4.
 */
#include "nvmeof/aoe/aoe_state.h"

#include <string.h>

/* ---- Lists. */

/* @return the index; list->count: it is not in the list */
static uint8_t find_mac(const struct aoe_macs *list, const uint8_t *mac)
{
    uint8_t i = 0;

    while (i < list->count && memcmp(list->mac[i], mac, AOE_MAC_LEN) != 0) {
        i++;
    }
    return i;
}

/* @return false when the list is full */
static bool add_mac(struct aoe_macs *list, const uint8_t *mac)
{
    if (find_mac(list, mac) < list->count) {
        return true;
    }
    if (list->count == AOE_MACS) {
        return false;
    }
    memcpy(list->mac[list->count++], mac, AOE_MAC_LEN);
    return true;
}

static void delete_mac(struct aoe_macs *list, const uint8_t *mac)
{
    uint8_t i = find_mac(list, mac);

    if (i < list->count) {
        list->count--;
        memmove(list->mac[i], list->mac[i + 1],
                (size_t)(list->count - i) * AOE_MAC_LEN);
    }
}

bool aoe_is_admitted(const struct aoe *aoe, uint8_t minor, const uint8_t *mac)
{
    const struct aoe_macs *masks = &aoe->devices[minor].masks;

    return masks->count == 0 || find_mac(masks, mac) < masks->count;
}

bool aoe_is_fenced(const struct aoe *aoe, uint8_t minor, const uint8_t *mac)
{
    const struct aoe_macs *holders = &aoe->devices[minor].holders;

    return holders->count != 0 && find_mac(holders, mac) == holders->count;
}

/* ---- Changes. */

/* Apply all directives, or up to the first one that is wrong.
 * @return 0, or enum aoe_mask_error */
static uint8_t edit_masks(struct aoe_macs *masks, const uint8_t *directives,
                          uint8_t count)
{
    for (uint8_t i = 0; i < count; i++) {
        const uint8_t *directive = directives + i * (size_t)AOE_DIRECTIVE_LEN;
        const uint8_t *mac = directive + AOE_DIRECTIVE_MAC;

        switch (directive[AOE_DIRECTIVE_COMMAND]) {
        case AOE_MAC_NOTHING:
            break;
        case AOE_MAC_ADD:
            if (!add_mac(masks, mac)) {
                return AOE_MASK_FULL;
            }
            break;
        case AOE_MAC_DELETE:
            delete_mac(masks, mac);
            break;
        default:
            return AOE_MASK_BAD;
        }
    }
    return 0;
}

static void send_masks(struct aoe *aoe, const struct aoe_station *to,
                       const struct aoe_header *request, uint8_t command,
                       uint8_t error)
{
    const struct aoe_macs *masks = &aoe->devices[request->minor].masks;
    const struct aoe_header header =
        aoe_answer_header(aoe, request, AOE_ERROR_NONE);
    uint8_t *frame = aoe->config.ports.begin(aoe->config.ports.ctx, to);
    size_t len = AOE_HEADER_LEN;

    if (frame == NULL) {
        return;
    }
    aoe_header_emit(frame, &header);
    frame[len] = 0;
    frame[len + AOE_MASK_COMMAND] = command;
    frame[len + AOE_MASK_ERROR] = error;
    frame[len + AOE_MASK_COUNT] = masks->count;
    len += AOE_MASK_LEN;
    for (uint8_t i = 0; i < masks->count; i++) {
        frame[len] = 0;
        frame[len + AOE_DIRECTIVE_COMMAND] = AOE_MAC_NOTHING;
        memcpy(frame + len + AOE_DIRECTIVE_MAC, masks->mac[i], AOE_MAC_LEN);
        len += AOE_DIRECTIVE_LEN;
    }
    aoe_commit(aoe, to, len);
}

static void send_holders(struct aoe *aoe, const struct aoe_station *to,
                         const struct aoe_header *request, uint8_t command)
{
    const struct aoe_macs *holders = &aoe->devices[request->minor].holders;
    const struct aoe_header header =
        aoe_answer_header(aoe, request, AOE_ERROR_NONE);
    uint8_t *frame = aoe->config.ports.begin(aoe->config.ports.ctx, to);
    size_t macs_len = holders->count * (size_t)AOE_MAC_LEN;

    if (frame == NULL) {
        return;
    }
    aoe_header_emit(frame, &header);
    frame[AOE_HEADER_LEN + AOE_RESERVE_COMMAND] = command;
    frame[AOE_HEADER_LEN + AOE_RESERVE_COUNT] = holders->count;
    memcpy(frame + AOE_HEADER_LEN + AOE_RESERVE_LEN, holders->mac, macs_len);
    aoe_commit(aoe, to, AOE_HEADER_LEN + AOE_RESERVE_LEN + macs_len);
}

static void answer_change(struct aoe *aoe, const struct aoe_change *change)
{
    if (change->header.command == AOE_MASK) {
        send_masks(aoe, &change->from, &change->header, change->command,
                   change->error);
    } else {
        send_holders(aoe, &change->from, &change->header, change->command);
    }
}

/*
 * Answer a request as soon as the device executes no command of a station that
 * its lists exclude.  Of several changes of one station, and where one takes
 * the device by force, the last one is answered; the others, and requests that
 * change nothing, are repeated by their senders.
 */
static void answer_later(struct aoe *aoe, const struct aoe_station *from,
                         const struct aoe_header *header, uint8_t command,
                         uint8_t error, bool is_change)
{
    struct aoe_change *waiting = &aoe->devices[header->minor].change;
    const struct aoe_change change = {
        .is_waiting = true,
        .from = *from,
        .header = *header,
        .command = command,
        .error = error,
    };

    if (!aoe_ata_executes_excluded(aoe, header->minor)) {
        answer_change(aoe, &change);
        return;
    }
    if (!is_change) {
        aoe_note(aoe, from->port, AOE_DROP_RETRY);
        return;
    }
    if (waiting->is_waiting) {
        aoe_note(aoe, waiting->from.port, AOE_DROP_RETRY);
    } else {
        aoe->changes++;
    }
    *waiting = change;
}

/* ---- Requests. */

/*
 * Refuse a change of a station that the reservation excludes.  If the station's
 * own change has excluded it and is not answered yet, this is a repetition.
 * Drop it: the answer comes with the change, and a refusal would be taken for
 * it.
 */
static void refuse_fenced(struct aoe *aoe, const struct aoe_station *from,
                          const struct aoe_header *header)
{
    const struct aoe_change *waiting = &aoe->devices[header->minor].change;

    if (waiting->is_waiting && waiting->header.command == header->command &&
        memcmp(waiting->from.mac, from->mac, AOE_MAC_LEN) == 0) {
        aoe_note(aoe, from->port, AOE_DROP_RETRY);
    } else {
        aoe_refuse(aoe, from, header, AOE_ERROR_RESERVED);
    }
}

/*
 * Drop a change while one of another station is not answered yet.  Only one is
 * remembered: if it were this one, the other station, which its own change may
 * have excluded, would be refused its repetition.
 *
 * @return whether it was dropped
 */
static bool drop_other(struct aoe *aoe, const struct aoe_station *from,
                       const struct aoe_header *header)
{
    const struct aoe_change *waiting = &aoe->devices[header->minor].change;

    if (!waiting->is_waiting ||
        memcmp(waiting->from.mac, from->mac, AOE_MAC_LEN) == 0) {
        return false;
    }
    aoe_note(aoe, from->port, AOE_DROP_RETRY);
    return true;
}

void aoe_mask_receive(struct aoe *aoe, const struct aoe_station *from,
                      const struct aoe_header *header, const uint8_t *args,
                      size_t len)
{
    uint8_t command, count, error = 0;

    if (len < AOE_MASK_LEN ||
        len - AOE_MASK_LEN < args[AOE_MASK_COUNT] * (size_t)AOE_DIRECTIVE_LEN) {
        aoe_note(aoe, from->port, AOE_DROP_BAD);
        return;
    }
    command = args[AOE_MASK_COMMAND];
    count = args[AOE_MASK_COUNT];
    if (command != AOE_MASK_READ && command != AOE_MASK_EDIT) {
        aoe_refuse(aoe, from, header, AOE_ERROR_ARGUMENT);
        return;
    }
    if (command == AOE_MASK_EDIT) {
        if (aoe_is_fenced(aoe, header->minor, from->mac)) {
            refuse_fenced(aoe, from, header);
            return;
        }
        if (drop_other(aoe, from, header)) {
            return;
        }
        error = edit_masks(&aoe->devices[header->minor].masks,
                           args + AOE_MASK_LEN, count);
    }
    answer_later(aoe, from, header, command, error, command != AOE_MASK_READ);
}

void aoe_reserve_receive(struct aoe *aoe, const struct aoe_station *from,
                         const struct aoe_header *header, const uint8_t *args,
                         size_t len)
{
    struct aoe_macs *holders = &aoe->devices[header->minor].holders;
    uint8_t command, count;

    if (len < AOE_RESERVE_LEN ||
        len - AOE_RESERVE_LEN < args[AOE_RESERVE_COUNT] * (size_t)AOE_MAC_LEN) {
        aoe_note(aoe, from->port, AOE_DROP_BAD);
        return;
    }
    command = args[AOE_RESERVE_COMMAND];
    count = args[AOE_RESERVE_COUNT];
    if (command > AOE_RESERVE_FORCE ||
        (command != AOE_RESERVE_READ && count > AOE_MACS)) {
        aoe_refuse(aoe, from, header, AOE_ERROR_ARGUMENT);
        return;
    }
    if (command == AOE_RESERVE_SET &&
        aoe_is_fenced(aoe, header->minor, from->mac)) {
        refuse_fenced(aoe, from, header);
        return;
    }
    if (command == AOE_RESERVE_SET && drop_other(aoe, from, header)) {
        return;
    }
    if (command != AOE_RESERVE_READ) {
        holders->count = 0;
        for (uint8_t i = 0; i < count; i++) {
            (void)add_mac(holders,
                          args + AOE_RESERVE_LEN + i * (size_t)AOE_MAC_LEN);
        }
    }
    answer_later(aoe, from, header, command, 0, command != AOE_RESERVE_READ);
}

bool aoe_device_step(struct aoe *aoe)
{
    bool is_busy = false;

    for (unsigned int i = 0; i < AOE_DEVICES && aoe->changes != 0; i++) {
        struct aoe_change *change = &aoe->devices[i].change;

        if (change->is_waiting && !aoe_ata_executes_excluded(aoe, (uint8_t)i)) {
            change->is_waiting = false;
            aoe->changes--;
            answer_change(aoe, change);
            is_busy = true;
        }
    }
    return is_busy;
}

/* ---- For operators. */

struct aoe_device_info aoe_device_info(const struct aoe *aoe, uint32_t nsid)
{
    const struct aoe_device *device = &aoe->devices[nsid - 1];

    ASSERT(nsid >= 1 && nsid <= AOE_DEVICES);
    return (struct aoe_device_info){
        .string_len = device->string_len,
        .masks = device->masks.count,
        .holders = device->holders.count,
    };
}

void aoe_forget(struct aoe *aoe)
{
    memset(aoe->devices, 0, sizeof(aoe->devices));
    aoe->changes = 0;
}
