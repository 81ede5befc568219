/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides which rule fires for a frame, a request to the medium, an RDMA
 * message or an operation of the NAND array.
 */
#include "hw-model/fault/fault_rule.h"

#include "lib/bytes.h"
#include "lib/random.h"
#include "net/wire/bth.h"
#include "net/wire/eth.h"
#include "net/wire/grh.h"
#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"
#include "net/wire/roce_opcode.h"
#include "net/wire/tcp.h"
#include "net/wire/udp.h"

enum {
    VLAN_TAG_LEN = 4,
    ETHERTYPE_SERVICE_VLAN = 0x88a8,
    IPV4_FRAGMENT_AT = 6, /* flags and fragment offset */
    IPV4_FRAGMENT_OFFSET = 0x1fff,
    TCP_OFFSET_SHIFT = 4, /* the header's length, in the upper half of a byte */
    RC_OPCODES_END = 0x20,
};

/*
 * Where each layer begins; 0: the frame has no such layer.  The Ethernet layer
 * begins at 0 and always exists.
 */
struct frame_layers {
    uint32_t at[FAULT_LAYERS];
    uint32_t type_at; /* offset of the EtherType that follows all tags */
};

static void find_capsule(const uint8_t *frame, uint32_t len,
                         struct frame_layers *layers)
{
    uint32_t bth = layers->at[FAULT_AT_BTH];
    const struct roce_opcode_info *info = NULL;

    if (len < bth + BTH_LEN || frame[bth] >= RC_OPCODES_END) {
        return;
    }
    info = &roce_opcodes[frame[bth]];
    if ((info->flags & ROCE_SEND) && (info->flags & ROCE_STARTS)) {
        layers->at[FAULT_AT_SEND] = bth + info->header_len_bytes;
    }
}

static void find_udp(const uint8_t *frame, uint32_t len, uint32_t at,
                     struct frame_layers *layers)
{
    if (len < at + UDP_LEN) {
        return;
    }
    layers->at[FAULT_AT_UDP] = at;
    if (get_be16(frame + at + UDP_DST_PORT) == UDP_PORT_ROCE) {
        layers->at[FAULT_AT_BTH] = at + UDP_LEN;
        find_capsule(frame, len, layers);
    }
}

/* @param end  of the IP packet: what follows is padding */
static void find_tcp(const uint8_t *frame, uint32_t len, uint32_t at,
                     uint32_t end, struct frame_layers *layers)
{
    uint32_t data;

    if (len < at + TCP_LEN) {
        return;
    }
    layers->at[FAULT_AT_TCP] = at;
    data = at + 4u * (frame[at + TCP_DATA_OFFSET] >> TCP_OFFSET_SHIFT);
    if (data < MIN(end, len)) {
        layers->at[FAULT_AT_TCP_DATA] = data;
    }
}

/* @param end  of the IP packet */
static void find_transport(const uint8_t *frame, uint32_t len, uint32_t at,
                           uint32_t end, uint8_t protocol,
                           struct frame_layers *layers)
{
    if (protocol == IP_PROTOCOL_UDP) {
        find_udp(frame, len, at, layers);
    } else if (protocol == IP_PROTOCOL_TCP) {
        find_tcp(frame, len, at, end, layers);
    }
}

static void find_ip(const uint8_t *frame, uint32_t len, uint32_t at,
                    uint16_t type, struct frame_layers *layers)
{
    if (type == ETHERTYPE_IPV4 && len >= at + IPV4_LEN) {
        bool is_first = (get_be16(frame + at + IPV4_FRAGMENT_AT) &
                         IPV4_FRAGMENT_OFFSET) == 0;

        layers->at[FAULT_AT_IPV4] = at;
        if (is_first) {
            find_transport(frame, len, at + 4u * (frame[at] & 0xf),
                           at + get_be16(frame + at + IPV4_TOTAL_LEN),
                           frame[at + IPV4_PROTOCOL], layers);
        }
    } else if (type == ETHERTYPE_IPV6 && len >= at + IPV6_LEN) {
        layers->at[FAULT_AT_IPV6] = at;
        find_transport(frame, len, at + IPV6_LEN,
                       at + IPV6_LEN + get_be16(frame + at + IPV6_PAYLOAD_LEN),
                       frame[at + IPV6_NEXT_HEADER], layers);
    } else if (type == ETHERTYPE_ROCE_V1 && len >= at + GRH_LEN) {
        layers->at[FAULT_AT_BTH] = at + GRH_LEN;
        find_capsule(frame, len, layers);
    }
}

static void find_layers(const uint8_t *frame, uint32_t len,
                        struct frame_layers *layers)
{
    uint32_t at = ETH_TYPE;
    uint16_t type = 0;

    *layers = (struct frame_layers){.type_at = ETH_TYPE};
    while (len >= at + 2) {
        type = get_be16(frame + at);
        if (type != ETHERTYPE_VLAN && type != ETHERTYPE_SERVICE_VLAN) {
            break;
        }
        if (layers->at[FAULT_AT_VLAN] == 0) {
            layers->at[FAULT_AT_VLAN] = at + 2;
        }
        at += VLAN_TAG_LEN;
    }
    layers->type_at = at;
    find_ip(frame, len, at + 2, type, layers);
}

static uint64_t read_field(const uint8_t *field, unsigned int width,
                           bool is_little_endian)
{
    uint64_t value = 0;

    for (unsigned int i = 0; i < width; i++) {
        value = value << 8 | field[is_little_endian ? width - 1 - i : i];
    }
    return value;
}

static bool condition_holds(const struct fault_condition *condition,
                            const struct frame_layers *layers,
                            const uint8_t *frame, uint32_t len)
{
    uint32_t at = layers->at[condition->layer];
    uint64_t value = 0;

    if (at == 0 && condition->layer != FAULT_AT_ETH) {
        return false;
    }
    if (condition->layer == FAULT_AT_ETH && condition->offset >= ETH_TYPE) {
        at = layers->type_at - ETH_TYPE;
    }
    at += condition->offset;
    if (len < at + condition->width) {
        return false;
    }
    value = read_field(frame + at, condition->width,
                       condition->layer == FAULT_AT_SEND) &
            condition->mask;
    return condition->low <= value && value <= condition->high;
}

static bool frame_matches(const struct fault_rule *rule,
                          const struct frame_layers *layers,
                          const uint8_t *frame, uint32_t len)
{
    if ((rule->action == FAULT_CHECKSUM || rule->action == FAULT_ZERO_WINDOW) &&
        layers->at[FAULT_AT_TCP] == 0) {
        return false;
    }
    for (unsigned int i = 0; i < rule->num_conditions; i++) {
        if (!condition_holds(&rule->conditions[i], layers, frame, len)) {
            return false;
        }
    }
    return true;
}

/*
 * Count an event.
 * @return whether the rule fires; then `verdict` is set
 */
static bool rule_fires(struct fault_rule *rule, struct fault_verdict *verdict)
{
    if (!fault_trigger_event(&rule->trigger)) {
        return false;
    }
    *verdict = (struct fault_verdict){
        .action = rule->action,
        .id = rule->id,
        .argument = rule->argument,
    };
    if (rule->action == FAULT_CORRUPT && rule->argument == 0) {
        verdict->random = random_next(&rule->trigger.random);
    }
    return true;
}

static bool rule_is_for(const struct fault_rule *rule, enum fault_site site)
{
    return rule->id != 0 && rule->is_on && rule->site == site;
}

struct fault_verdict fault_judge_frame(struct fault_table *table,
                                       unsigned int port,
                                       enum fault_direction direction,
                                       const uint8_t *frame, uint32_t len)
{
    struct fault_verdict verdict = {0};
    struct frame_layers layers;

    find_layers(frame, len, &layers);
    for (unsigned int i = 0; i < FAULT_RULES; i++) {
        struct fault_rule *rule = &table->rules[i];

        if (rule_is_for(rule, FAULT_WIRE) && (rule->ports & BIT(port)) &&
            (rule->directions & direction) &&
            frame_matches(rule, &layers, frame, len) &&
            rule_fires(rule, &verdict)) {
            verdict.tcp_at = layers.at[FAULT_AT_TCP];
            break;
        }
    }
    return verdict;
}

struct fault_verdict fault_judge_media(struct fault_table *table,
                                       enum fault_media_op op, uint64_t first,
                                       uint64_t end)
{
    struct fault_verdict verdict = {0};

    for (unsigned int i = 0; i < FAULT_RULES; i++) {
        struct fault_rule *rule = &table->rules[i];
        bool is_there =
            op == FAULT_OP_FLUSH || (first < rule->end && rule->first < end);

        if (rule_is_for(rule, FAULT_MEDIA) && rule->action != FAULT_BITS &&
            (rule->ops & op) && is_there && rule_fires(rule, &verdict)) {
            break;
        }
    }
    return verdict;
}

uint32_t fault_judge_cache(struct fault_table *table, uint64_t first,
                           uint64_t end)
{
    struct fault_verdict verdict = {0};

    for (unsigned int i = 0; i < FAULT_RULES; i++) {
        struct fault_rule *rule = &table->rules[i];

        if (rule_is_for(rule, FAULT_MEDIA) && rule->action == FAULT_BITS &&
            first < rule->end && rule->first < end &&
            rule_fires(rule, &verdict)) {
            break;
        }
    }
    return (uint32_t)MIN(verdict.argument, (uint64_t)UINT32_MAX);
}

struct fault_verdict fault_judge_request(struct fault_table *table,
                                         uint32_t qpn,
                                         enum fault_request request)
{
    struct fault_verdict verdict = {0};

    for (unsigned int i = 0; i < FAULT_RULES; i++) {
        struct fault_rule *rule = &table->rules[i];

        if (rule_is_for(rule, FAULT_RDMA) && rule->action != FAULT_TRANSFER &&
            rule->action != FAULT_CHECKSUM && (rule->ops & request) &&
            (rule->qpn == 0 || rule->qpn == qpn) &&
            rule_fires(rule, &verdict)) {
            break;
        }
    }
    return verdict;
}

bool fault_judge_transfer(struct fault_table *table, uint32_t qpn,
                          enum fault_direction direction)
{
    struct fault_verdict verdict = {0};

    for (unsigned int i = 0; i < FAULT_RULES; i++) {
        struct fault_rule *rule = &table->rules[i];

        if (rule_is_for(rule, FAULT_RDMA) && rule->action == FAULT_TRANSFER &&
            (rule->directions & direction) &&
            (rule->qpn == 0 || rule->qpn == qpn) &&
            rule_fires(rule, &verdict)) {
            break;
        }
    }
    return verdict.action == FAULT_TRANSFER;
}

bool fault_judge_fpdu(struct fault_table *table, uint32_t qpn)
{
    struct fault_verdict verdict = {0};

    for (unsigned int i = 0; i < FAULT_RULES; i++) {
        struct fault_rule *rule = &table->rules[i];

        if (rule_is_for(rule, FAULT_RDMA) && rule->action == FAULT_CHECKSUM &&
            (rule->qpn == 0 || rule->qpn == qpn) &&
            rule_fires(rule, &verdict)) {
            break;
        }
    }
    return verdict.action == FAULT_CHECKSUM;
}

static bool place_matches(const struct fault_rule *rule, const int32_t *place)
{
    for (unsigned int i = 0; i < FAULT_PLACES; i++) {
        if (place[i] >= 0 && (place[i] < rule->places[i].low ||
                              place[i] > rule->places[i].high)) {
            return false;
        }
    }
    return true;
}

struct fault_verdict fault_judge_nand(struct fault_table *table, uint32_t kinds,
                                      uint32_t actions, const int32_t *place)
{
    struct fault_verdict verdict = {0};

    for (unsigned int i = 0; i < FAULT_RULES; i++) {
        struct fault_rule *rule = &table->rules[i];

        if (rule_is_for(rule, FAULT_NAND) && (rule->ops & kinds) &&
            (BIT(rule->action) & actions) && place_matches(rule, place) &&
            rule_fires(rule, &verdict)) {
            break;
        }
    }
    return verdict;
}
