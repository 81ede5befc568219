/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LLDP: what the drive sends about itself, and which neighbours it knows.
 *
 * A new neighbour makes an agent send at once (clause 9.2.5.11), so that no
 * test has to wait for the interval.
 *
 * Spec: IEEE 802.1AB-2016 clauses 8 and 9.
 */
#include <stdio.h>
#include <string.h>

#include "lib/bytes.h"
#include "net/wire/lldp.h"
#include "net_lib.h"

enum {
    TTL_S = 60,
    SECOND_US = 1000000,
    FAST_FRAMES = 4, /* txFastInit of table 9-1. */
    CREDIT = 5,      /* txCreditMax. */
    INTERVAL_S = 30, /* msgTxInterval. */
    /* The wait for the first LLDPDU, with or without credit. */
    FIRST_US = 3500000,
    OUI_8023 = 0x00120f,
    SUBTYPE_MAX_FRAME = 4,
    SUBTYPES_CHASSIS = 7,
    SUBTYPES_PORT = 7,
    MANY = 32,
};

static const struct mac_addr nearest_bridge = {
    {0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e}};

/* ---- What the test sends. */

struct pdu {
    char name[32]; /* The system name, which the console shows. */
    unsigned int port;
    uint8_t frame[1514];
    size_t len_bytes;
};

static void add_tlv(struct pdu *pdu, uint8_t type, const void *value,
                    size_t len)
{
    ASSERT(pdu->len_bytes + LLDP_TLV_HEADER + len <= sizeof(pdu->frame));
    put_be16(pdu->frame + pdu->len_bytes,
             (uint16_t)((unsigned int)type << 9 | len));
    if (len != 0) {
        memcpy(pdu->frame + pdu->len_bytes + LLDP_TLV_HEADER, value, len);
    }
    pdu->len_bytes += LLDP_TLV_HEADER + len;
}

static struct pdu *new_pdu(struct conf *conf, unsigned int port)
{
    struct pdu *pdu = conf_alloc(conf, sizeof(*pdu));
    struct eth eth = {
        .dst = nearest_bridge,
        .src = conf_peer(conf, 0, port)->mac,
        .type = ETHERTYPE_LLDP,
    };

    eth_emit(&eth, pdu->frame);
    pdu->port = port;
    pdu->len_bytes = ETH_LEN;
    snprintf(pdu->name, sizeof(pdu->name), "conf-%08x", net_rest(conf));
    return pdu;
}

static void add_chassis(struct pdu *pdu)
{
    uint8_t value[7] = {LLDP_CHASSIS_MAC};

    memcpy(value + 1, pdu->frame + ETH_SRC, 6);
    add_tlv(pdu, LLDP_CHASSIS_ID, value, sizeof(value));
}

/* Neighbours of different tests have different names, and so different port
 * IDs. */
static void add_port(struct pdu *pdu)
{
    uint8_t value[1 + sizeof(pdu->name)] = {LLDP_PORT_IFNAME};
    size_t len = strlen(pdu->name);

    memcpy(value + 1, pdu->name, len);
    add_tlv(pdu, LLDP_PORT_ID, value, 1 + len);
}

static void add_ttl(struct pdu *pdu, uint16_t ttl_s)
{
    uint8_t value[2];

    put_be16(value, ttl_s);
    add_tlv(pdu, LLDP_TTL, value, sizeof(value));
}

static void add_rest(struct pdu *pdu)
{
    add_tlv(pdu, LLDP_SYSTEM_NAME, pdu->name, strlen(pdu->name));
    add_tlv(pdu, LLDP_END, NULL, 0);
}

static void send_pdu(struct conf *conf, struct pdu *pdu)
{
    conf_send_frame(conf, pdu->port, pdu->frame, pdu->len_bytes, 0);
}

/* The LLDPDU of an ordinary neighbour. */
static struct pdu *new_neighbour_pdu(struct conf *conf, unsigned int port,
                                     uint16_t ttl_s)
{
    struct pdu *pdu = new_pdu(conf, port);

    add_chassis(pdu);
    add_port(pdu);
    add_ttl(pdu, ttl_s);
    add_rest(pdu);
    send_pdu(conf, pdu);
    return pdu;
}

/* Send TTL 0, so that the drive forgets the neighbour before the next test. */
static void send_farewell(struct conf *conf, const struct pdu *was)
{
    struct pdu *pdu = new_pdu(conf, was->port);

    memcpy(pdu->name, was->name, sizeof(pdu->name));
    add_chassis(pdu);
    add_port(pdu);
    add_ttl(pdu, 0);
    add_tlv(pdu, LLDP_END, NULL, 0);
    send_pdu(conf, pdu);
    net_settle(conf, was->port);
}

/* ---- What the drive sends. */

/* ctx: the port on which it was received. */
static bool is_lldp(const struct packet *packet, const void *ctx)
{
    return packet->eth.type == ETHERTYPE_LLDP &&
           packet->port == *(const unsigned int *)ctx;
}

static void needs_lldp(struct conf *conf, bool says_something)
{
    if (!says_something && !conf_target(conf)->is_ours) {
        conf_not_applicable(conf, "the target sends no LLDP");
    }
}

/* Take the LLDPDU that answers a new neighbour on a port. The test is not
 * applicable when the target has no LLDP. */
static const struct packet *take_first_lldpdu(struct conf *conf,
                                              unsigned int port)
{
    struct pdu *pdu = new_neighbour_pdu(conf, port, TTL_S);
    const struct packet *packet =
        conf_take_within(conf, is_lldp, &port, FIRST_US);

    send_farewell(conf, pdu);
    needs_lldp(conf, packet != NULL);
    conf_check(conf, packet != NULL, "expected an LLDPDU: nothing came");
    return packet;
}

struct tlv {
    uint8_t type;
    uint16_t len;
    const uint8_t *value;
};

/*
 * Read the next TLV; fails when it exceeds the frame. @return false at the end
 */
static bool next_tlv(struct conf *conf, const struct packet *packet, size_t *at,
                     struct tlv *tlv)
{
    uint16_t head;

    conf_check(conf, packet->len_bytes - *at >= LLDP_TLV_HEADER,
               "the frame ends without an End TLV");
    head = get_be16(packet->frame + *at);
    tlv->type = (uint8_t)(head >> 9);
    tlv->len = head & LLDP_TLV_MAX;
    tlv->value = packet->frame + *at + LLDP_TLV_HEADER;
    conf_check(conf, tlv->len <= packet->len_bytes - *at - LLDP_TLV_HEADER,
               "TLV %u of %u bytes exceeds the frame", tlv->type, tlv->len);
    *at += LLDP_TLV_HEADER + tlv->len;
    return tlv->type != LLDP_END;
}

/* @return whether the LLDPDU has such a TLV */
static bool find_tlv(struct conf *conf, const struct packet *packet,
                     uint8_t type, struct tlv *tlv)
{
    size_t at = ETH_LEN;

    while (next_tlv(conf, packet, &at, tlv)) {
        if (tlv->type == type) {
            return true;
        }
    }
    return false;
}

static void lldp_frame(struct conf *conf)
{
    const struct packet *packet = take_first_lldpdu(conf, 0);

    conf_same(conf, "destination", packet->eth.dst.bytes, nearest_bridge.bytes,
              6);
    conf_same(conf, "source", packet->eth.src.bytes,
              conf_target(conf)->ports[0].mac.bytes, 6);
    conf_check(conf, !packet->eth.tagged || packet->eth.vlan == 0,
               "the LLDPDU is in VLAN %u", packet->eth.vlan);
}

static void lldp_mandatory(struct conf *conf)
{
    const struct packet *packet = take_first_lldpdu(conf, 0);
    size_t at = ETH_LEN;
    struct tlv tlv;

    for (uint8_t type = LLDP_CHASSIS_ID; type <= LLDP_TTL; type++) {
        next_tlv(conf, packet, &at, &tlv);
        conf_equal(conf, "type of the TLV, which the standard orders", tlv.type,
                   type);
    }
    while (next_tlv(conf, packet, &at, &tlv)) {
        conf_check(conf, tlv.type > LLDP_TTL,
                   "the mandatory TLV %u is repeated", tlv.type);
    }
}

static void lldp_end(struct conf *conf)
{
    const struct packet *packet = take_first_lldpdu(conf, 0);
    size_t at = ETH_LEN;
    struct tlv tlv;

    while (next_tlv(conf, packet, &at, &tlv)) {
    }
    conf_equal(conf, "length of the End TLV", tlv.len, 0);
    for (; at < packet->len_bytes; at++) {
        conf_equal(conf, "padding after the End TLV", packet->frame[at], 0);
    }
}

static void lldp_ttl(struct conf *conf)
{
    const struct packet *packet = take_first_lldpdu(conf, 0);
    struct tlv tlv;

    conf_check(conf, find_tlv(conf, packet, LLDP_TTL, &tlv),
               "the LLDPDU has no TTL");
    conf_equal(conf, "length of the TTL", tlv.len, 2);
    conf_check(conf, get_be16(tlv.value) != 0,
               "the TTL is 0, although the drive is running");
    if (conf_target(conf)->is_ours) { /* Table 9-1: 4 times 30 s, and 1 s. */
        conf_equal(conf, "default TTL", get_be16(tlv.value),
                   4 * INTERVAL_S + 1);
    }
}

static void lldp_identity(struct conf *conf)
{
    const struct packet *packet = take_first_lldpdu(conf, 0);
    struct tlv tlv;

    find_tlv(conf, packet, LLDP_CHASSIS_ID, &tlv);
    conf_check(conf, tlv.len >= 2 && tlv.len <= 256,
               "the chassis ID has %u bytes", tlv.len);
    conf_check(conf, tlv.value[0] >= 1 && tlv.value[0] <= SUBTYPES_CHASSIS,
               "chassis ID subtype %u is reserved", tlv.value[0]);
    conf_check(conf, tlv.value[0] != LLDP_CHASSIS_MAC || tlv.len == 7,
               "the MAC address has %u bytes", tlv.len - 1u);
    find_tlv(conf, packet, LLDP_PORT_ID, &tlv);
    conf_check(conf, tlv.len >= 2 && tlv.len <= 256, "the port ID has %u bytes",
               tlv.len);
    conf_check(conf, tlv.value[0] >= 1 && tlv.value[0] <= SUBTYPES_PORT,
               "port ID subtype %u is reserved", tlv.value[0]);
}

static void two_ports(struct conf *conf)
{
    const struct packet *one = take_first_lldpdu(conf, 0),
                        *two = take_first_lldpdu(conf, 1);
    struct tlv a, b;

    find_tlv(conf, one, LLDP_CHASSIS_ID, &a);
    find_tlv(conf, two, LLDP_CHASSIS_ID, &b);
    conf_equal(conf, "length of the chassis ID", b.len, a.len);
    conf_same(conf, "chassis ID", b.value, a.value, a.len);
    find_tlv(conf, one, LLDP_PORT_ID, &a);
    find_tlv(conf, two, LLDP_PORT_ID, &b);
    conf_check(conf, a.len != b.len || memcmp(a.value, b.value, a.len) != 0,
               "both ports have the same port ID");
    conf_same(conf, "source MAC address on port 1", two->eth.src.bytes,
              conf_target(conf)->ports[1].mac.bytes, 6);
}

static void lldp_optional(struct conf *conf)
{
    const struct packet *packet = take_first_lldpdu(conf, 0);
    unsigned int counts[128] = {0};
    size_t at = ETH_LEN;
    struct tlv tlv;

    while (next_tlv(conf, packet, &at, &tlv)) {
        counts[tlv.type]++;
        conf_check(conf,
                   tlv.type <= LLDP_MANAGEMENT_ADDRESS ||
                       tlv.type == LLDP_ORGANISATION,
                   "TLV type %u is reserved", tlv.type);
        conf_check(conf,
                   tlv.type < LLDP_PORT_DESCRIPTION ||
                       tlv.type > LLDP_SYSTEM_DESCRIPTION ||
                       tlv.len <= LLDP_TEXT_MAX,
                   "the text of TLV %u has %u bytes", tlv.type, tlv.len);
        conf_check(conf, tlv.type != LLDP_ORGANISATION || tlv.len >= 4,
                   "an organizationally specific TLV has %u bytes", tlv.len);
    }
    for (uint8_t type = LLDP_PORT_DESCRIPTION; type <= LLDP_CAPABILITIES;
         type++) {
        conf_check(conf, counts[type] <= 1, "TLV %u occurs %u times", type,
                   counts[type]);
    }
}

static void lldp_capabilities(struct conf *conf)
{
    const struct packet *packet = take_first_lldpdu(conf, 0);
    uint16_t can, does;
    struct tlv tlv;

    if (!find_tlv(conf, packet, LLDP_CAPABILITIES, &tlv)) {
        conf_not_applicable(conf, "the target sends no capabilities");
    }
    conf_equal(conf, "length", tlv.len, 4);
    can = get_be16(tlv.value);
    does = get_be16(tlv.value + 2);
    conf_check(
        conf, (does & ~can) == 0,
        "the enabled capabilities %04x are not all among the system's, %04x",
        does, can);
    conf_check(conf, !(can & LLDP_CAN_STATION) || can == LLDP_CAN_STATION,
               "a station must have no other capabilities: %04x", can);
}

static void lldp_management(struct conf *conf)
{
    const struct packet *packet = take_first_lldpdu(conf, 0);
    const struct ip_addr *own = &conf_target(conf)->ports[0].ip4;
    unsigned int count = 0;
    bool is_found = false;
    size_t at = ETH_LEN;
    struct tlv tlv;

    while (next_tlv(conf, packet, &at, &tlv)) {
        uint8_t len;

        if (tlv.type != LLDP_MANAGEMENT_ADDRESS) {
            continue;
        }
        count++;
        conf_check(conf, tlv.len >= 9 && tlv.len <= 167,
                   "a management address TLV has %u bytes", tlv.len);
        len = tlv.value[0];
        conf_check(conf, len >= 2 && len <= 32 && 1u + len + 6 <= tlv.len,
                   "an address of %u bytes is in a TLV of %u", len, tlv.len);
        conf_check(conf, tlv.value[1 + len] >= 1 && tlv.value[1 + len] <= 3,
                   "interface numbering subtype %u is not defined",
                   tlv.value[1 + len]);
        conf_equal(conf, "length with the OID",
                   1u + len + 6 + tlv.value[len + 6], tlv.len);
        is_found = is_found || (len == 5 && tlv.value[1] == 1 &&
                                memcmp(tlv.value + 2, own->bytes + 12, 4) == 0);
    }
    if (count == 0) {
        conf_not_applicable(conf, "the target sends no management address");
    }
    conf_check(
        conf, is_found,
        "the port's IPv4 address is not among the %u management addresses",
        count);
}

static void longest_frame(struct conf *conf)
{
    const struct packet *packet = take_first_lldpdu(conf, 0);
    size_t at = ETH_LEN;
    struct tlv tlv;

    while (next_tlv(conf, packet, &at, &tlv)) {
        if (tlv.type == LLDP_ORGANISATION && get_be24(tlv.value) == OUI_8023 &&
            tlv.value[3] == SUBTYPE_MAX_FRAME) {
            uint16_t frame_len, mtu_bytes = conf_target(conf)->mtu_bytes;

            conf_equal(conf, "length", tlv.len, 6);
            frame_len = get_be16(tlv.value + 4);
            conf_check(conf,
                       frame_len == mtu_bytes + 18 ||
                           frame_len == mtu_bytes + 22,
                       "the maximum frame size is %u bytes at an MTU of %u",
                       frame_len, mtu_bytes);
            return;
        }
    }
    conf_not_applicable(conf, "the target sends no maximum frame size");
}

/* ---- When the drive sends. */

static unsigned int count_said(struct conf *conf)
{
    return conf_count(conf, is_lldp, &(unsigned int){0});
}

static void lldp_credit(struct conf *conf)
{
    struct pdu *pdus[MANY];
    unsigned int count;

    take_first_lldpdu(conf, 0);
    count = count_said(conf);
    for (unsigned int i = 0; i < MANY; i++) {
        pdus[i] = new_neighbour_pdu(conf, 0, TTL_S);
        send_farewell(conf, pdus[i]);
    }
    count = count_said(conf) - count;
    conf_note(conf, "%u LLDPDUs came for %u new neighbours", count, MANY);
    conf_check(conf, count <= CREDIT + 1,
               "%u LLDPDUs came at once; txCreditMax is %u", count, CREDIT);
}

static void lldp_fast(struct conf *conf)
{
    struct pdu *pdu;
    unsigned int count;

    /* Let the LLDPDUs of the drive's start pass, and credit build up. */
    conf_pass(conf, 10 * SECOND_US);
    count = count_said(conf);
    pdu = new_neighbour_pdu(conf, 0, TTL_S);
    conf_pass(conf, (FAST_FRAMES + 1) * SECOND_US);
    count = count_said(conf) - count;
    send_farewell(conf, pdu);
    needs_lldp(conf, count != 0);
    conf_equal(conf, "LLDPDUs for a new neighbour, a second apart", count,
               FAST_FRAMES);
}

static void lldp_interval(struct conf *conf)
{
    const struct packet *one, *two;
    uint64_t apart_us;

    conf_pass(conf, 10 * SECOND_US);
    conf_flush(conf);
    one = conf_take_within(conf, is_lldp, &(unsigned int){0},
                           (INTERVAL_S + 2) * UINT64_C(1000000));
    needs_lldp(conf, one != NULL);
    conf_check(conf, one != NULL, "no LLDPDU came within msgTxInterval");
    two = conf_take_within(conf, is_lldp, &(unsigned int){0},
                           (INTERVAL_S + 2) * UINT64_C(1000000));
    conf_check(conf, two != NULL, "no second LLDPDU came within msgTxInterval");
    apart_us = two->time_us - one->time_us;
    conf_check(conf, apart_us >= (INTERVAL_S - 1) * UINT64_C(1000000),
               "two LLDPDUs are %llu us apart", (unsigned long long)apart_us);
    conf_equal(conf, "length of the second LLDPDU", two->len_bytes,
               one->len_bytes);
    conf_same(conf, "contents of the second LLDPDU", two->frame, one->frame,
              one->len_bytes);
}

/* ---- Which neighbours the drive knows, as its console shows. */

static bool is_known(struct conf *conf, const struct pdu *pdu)
{
    char line[32];

    net_settle(conf, pdu->port);
    snprintf(line, sizeof(line), "neighbours %u", pdu->port);
    return strstr(conf_console(conf, line), pdu->name) != NULL;
}

static void expect_known(struct conf *conf, const struct pdu *pdu)
{
    conf_check(conf, is_known(conf, pdu),
               "the drive does not know the neighbour %s", pdu->name);
}

static void expect_unknown(struct conf *conf, const struct pdu *pdu)
{
    if (is_known(conf, pdu)) {
        send_farewell(conf, pdu);
        conf_fail(conf, "the drive knows the neighbour %s", pdu->name);
    }
}

static void lldp_seen(struct conf *conf)
{
    struct pdu *pdu = new_neighbour_pdu(conf, 0, TTL_S);

    expect_known(conf, pdu);
    send_farewell(conf, pdu);
}

static void lldp_gone(struct conf *conf)
{
    struct pdu *pdu = new_neighbour_pdu(conf, 0, TTL_S);

    expect_known(conf, pdu);
    send_farewell(conf, pdu);
    expect_unknown(conf, pdu);
}

static void lldp_ageing(struct conf *conf)
{
    struct pdu *pdu = new_neighbour_pdu(conf, 0, 2);

    expect_known(conf, pdu);
    conf_pass(conf, 2 * SECOND_US + SECOND_US / 2);
    expect_unknown(conf, pdu);
}

static void lldp_refreshed(struct conf *conf)
{
    struct pdu *pdu = new_neighbour_pdu(conf, 0, 2);

    conf_pass(conf, SECOND_US);
    send_pdu(conf, pdu);
    conf_pass(conf, SECOND_US + SECOND_US / 2);
    expect_known(conf, pdu); /* 2.5 s after the first LLDPDU. */
    send_farewell(conf, pdu);
}

static void lldp_updated(struct conf *conf)
{
    struct pdu *pdu = new_neighbour_pdu(conf, 0, TTL_S);
    struct pdu *again = new_pdu(conf, 0);
    static const char text[] = "said-later";

    memcpy(again->name, pdu->name, sizeof(again->name));
    add_chassis(again);
    add_port(again);
    add_ttl(again, TTL_S);
    add_tlv(again, LLDP_SYSTEM_DESCRIPTION, text, sizeof(text) - 1);
    add_tlv(again, LLDP_END, NULL, 0);
    send_pdu(conf, again);
    net_settle(conf, 0);
    conf_check(conf, strstr(conf_console(conf, "neighbours 0"), text) != NULL,
               "the drive does not know what the neighbour sent later");
    send_farewell(conf, pdu);
}

static void passed_over(struct conf *conf)
{
    static const uint8_t unknown[5] = {1, 2, 3, 4, 5};
    static const uint8_t organisation[6] = {0x00, 0xaa, 0xbb, 7, 1, 2};
    struct pdu *pdu = new_pdu(conf, 0);

    add_chassis(pdu);
    add_port(pdu);
    add_ttl(pdu, TTL_S);
    add_tlv(pdu, 100, unknown, sizeof(unknown));
    add_tlv(pdu, LLDP_ORGANISATION, organisation, sizeof(organisation));
    add_rest(pdu);
    send_pdu(conf, pdu);
    expect_known(conf, pdu);
    send_farewell(conf, pdu);
}

static void other_port(struct conf *conf)
{
    struct pdu *pdu = new_neighbour_pdu(conf, 1, TTL_S);

    expect_known(conf, pdu);
    conf_check(conf,
               strstr(conf_console(conf, "neighbours 0"), pdu->name) == NULL,
               "port 1's neighbour is port 0's, too");
    send_farewell(conf, pdu);
}

static void lldp_crowd(struct conf *conf)
{
    struct pdu *pdus[MANY];

    for (unsigned int i = 0; i < MANY; i++) {
        pdus[i] = new_neighbour_pdu(conf, 0, TTL_S);
        net_settle(conf, 0);
    }
    expect_known(conf, pdus[0]); /* The first neighbour is kept. */
    for (unsigned int i = 0; i < MANY; i++) {
        send_farewell(conf, pdus[i]);
    }
    for (unsigned int i = 0; i < MANY; i++) {
        expect_unknown(conf, pdus[i]);
    }
}

/* ---- LLDPDUs that are invalid. */

static void expect_pdu_refused(struct conf *conf, struct pdu *pdu)
{
    send_pdu(conf, pdu);
    expect_unknown(conf, pdu);
}

static void wrong_order(struct conf *conf)
{
    struct pdu *pdu = new_pdu(conf, 0);

    add_port(pdu);
    add_chassis(pdu);
    add_ttl(pdu, TTL_S);
    add_rest(pdu);
    expect_pdu_refused(conf, pdu);
    pdu = new_pdu(conf, 0);
    add_chassis(pdu);
    add_ttl(pdu, TTL_S);
    add_port(pdu);
    add_rest(pdu);
    expect_pdu_refused(conf, pdu);
}

static void lldp_missing(struct conf *conf)
{
    for (unsigned int without = 0; without < 3; without++) {
        struct pdu *pdu = new_pdu(conf, 0);

        if (without != 0) {
            add_chassis(pdu);
        }
        if (without != 1) {
            add_port(pdu);
        }
        if (without != 2) {
            add_ttl(pdu, TTL_S);
        }
        add_rest(pdu);
        expect_pdu_refused(conf, pdu);
    }
}

static void lldp_twice(struct conf *conf)
{
    for (unsigned int which = 0; which < 3; which++) {
        struct pdu *pdu = new_pdu(conf, 0);

        add_chassis(pdu);
        add_port(pdu);
        add_ttl(pdu, TTL_S);
        if (which == 0) {
            add_chassis(pdu);
        } else if (which == 1) {
            add_port(pdu);
        } else {
            add_ttl(pdu, TTL_S);
        }
        add_rest(pdu);
        expect_pdu_refused(conf, pdu);
    }
}

static void short_ids(struct conf *conf)
{
    static const uint8_t subtype[1] = {LLDP_CHASSIS_MAC};
    struct pdu *pdu = new_pdu(conf, 0);

    add_tlv(pdu, LLDP_CHASSIS_ID, subtype, 1);
    add_port(pdu);
    add_ttl(pdu, TTL_S);
    add_rest(pdu);
    expect_pdu_refused(conf, pdu);
    pdu = new_pdu(conf, 0);
    add_chassis(pdu);
    add_tlv(pdu, LLDP_PORT_ID, subtype, 1);
    add_ttl(pdu, TTL_S);
    add_rest(pdu);
    expect_pdu_refused(conf, pdu);
}

static void short_ttl(struct conf *conf)
{
    static const uint8_t one[1] = {1};
    struct pdu *pdu = new_pdu(conf, 0);

    add_chassis(pdu);
    add_port(pdu);
    add_tlv(pdu, LLDP_TTL, one, sizeof(one));
    add_rest(pdu);
    expect_pdu_refused(conf, pdu);
}

static void lldp_overrun(struct conf *conf)
{
    struct pdu *pdu = new_pdu(conf, 0);

    add_chassis(pdu);
    add_port(pdu);
    add_ttl(pdu, TTL_S);
    add_tlv(pdu, LLDP_SYSTEM_NAME, pdu->name, strlen(pdu->name));
    put_be16(pdu->frame + pdu->len_bytes, LLDP_SYSTEM_DESCRIPTION << 9 | 400);
    pdu->len_bytes += LLDP_TLV_HEADER;
    expect_pdu_refused(conf, pdu);
}

static void other_destination(struct conf *conf)
{
    struct pdu *pdu = new_pdu(conf, 0);

    add_chassis(pdu);
    add_port(pdu);
    add_ttl(pdu, TTL_S);
    add_rest(pdu);
    memset(pdu->frame, 0xff, 6);
    expect_pdu_refused(conf, pdu);
    memcpy(pdu->frame, conf_target(conf)->ports[0].mac.bytes, 6);
    expect_pdu_refused(conf, pdu);
}

/* ---- A drive that shuts down. */

static void shutting_down(struct conf *conf)
{
    const struct packet *packet;
    struct tlv tlv;
    size_t at = ETH_LEN;

    /* An LLDPDU of the drive's start may come first. */
    conf_pass(conf, SECOND_US);
    conf_flush(conf);
    conf_console(conf, "shutdown");
    packet = conf_take(conf, "the LLDPDU of a drive that shuts down", is_lldp,
                       &(unsigned int){0});
    conf_check(conf, find_tlv(conf, packet, LLDP_TTL, &tlv),
               "the LLDPDU has no TTL");
    conf_equal(conf, "TTL", get_be16(tlv.value), 0);
    while (next_tlv(conf, packet, &at, &tlv)) {
        conf_check(conf, tlv.type <= LLDP_TTL,
                   "TLV %u is in an LLDPDU with TTL 0", tlv.type);
    }
    conf_reset(conf);
}

static const struct conf_test tests[] = {
    CONF_TEST("lldp.frame", "IEEE 802.1AB-2016 7.1, 7.3",
              "LLDPDUs go to the nearest bridge group, from the port's "
              "address, untagged",
              lldp_frame),
    CONF_TEST(
        "lldp.mandatory", "IEEE 802.1AB-2016 8.2",
        "chassis ID, port ID and TTL come first, in this order, once each",
        lldp_mandatory),
    CONF_TEST("lldp.end", "IEEE 802.1AB-2016 8.5.1",
              "the End TLV is the last one, and only padding follows",
              lldp_end),
    CONF_TEST("lldp.ttl", "IEEE 802.1AB-2016 8.5.4",
              "the TTL has 2 bytes, and is not 0 while the drive runs",
              lldp_ttl),
    CONF_TEST("lldp.identity", "IEEE 802.1AB-2016 8.5.2, 8.5.3",
              "IDs have defined subtypes and correct lengths", lldp_identity),
    CONF_TEST("lldp.two-ports", "IEEE 802.1AB-2016 8.5.2, 8.5.3",
              "both ports have the same chassis ID, and different port IDs",
              two_ports, .needs = CONF_NEEDS_TWO_PORTS),
    CONF_TEST(
        "lldp.optional", "IEEE 802.1AB-2016 8.5",
        "optional TLVs have defined types and correct lengths, and occur once",
        lldp_optional),
    CONF_TEST("lldp.capabilities", "IEEE 802.1AB-2016 8.5.8",
              "enabled capabilities are capabilities of the system; a station "
              "has no other",
              lldp_capabilities),
    CONF_TEST("lldp.management", "IEEE 802.1AB-2016 8.5.9",
              "management addresses are well-formed, and include the port's",
              lldp_management),
    CONF_TEST("lldp.longest-frame", "IEEE 802.3 79.3.4",
              "the maximum frame size agrees with the MTU", longest_frame),
    CONF_TEST("lldp.credit", "IEEE 802.1AB-2016 9.2.5.17",
              "many new neighbours cause at most txCreditMax LLDPDUs at once",
              lldp_credit),
    CONF_TEST("lldp.fast", "IEEE 802.1AB-2016 9.2.5.11",
              "a new neighbour causes txFastInit LLDPDUs, a second apart",
              lldp_fast, .needs = CONF_LONG),
    CONF_TEST("lldp.interval", "IEEE 802.1AB-2016 9.2.5.7",
              "an LLDPDU is sent every 30 s", lldp_interval,
              .needs = CONF_LONG),
    CONF_TEST("lldp.seen", "IEEE 802.1AB-2016 9.2.7.7.5",
              "the drive knows a neighbour that sends an LLDPDU", lldp_seen,
              .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("lldp.gone", "IEEE 802.1AB-2016 9.2.7.7.3",
              "a neighbour that sends TTL 0 is forgotten at once", lldp_gone,
              .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("lldp.ageing", "IEEE 802.1AB-2016 9.2.7.7.2",
              "a silent neighbour is forgotten when its TTL has passed",
              lldp_ageing, .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("lldp.refreshed", "IEEE 802.1AB-2016 9.2.7.7.4",
              "a neighbour that repeats its LLDPDU is kept", lldp_refreshed,
              .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("lldp.updated", "IEEE 802.1AB-2016 9.2.7.7.5",
              "a neighbour's later LLDPDU replaces the earlier one",
              lldp_updated, .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("lldp.passed-over", "IEEE 802.1AB-2016 9.2.7.7.1",
              "unknown TLVs are skipped", passed_over,
              .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("lldp.other-port", "IEEE 802.1AB-2016 6.1",
              "a neighbour is listed for the port that received it", other_port,
              .needs = CONF_NEEDS_CONTROL | CONF_NEEDS_TWO_PORTS),
    CONF_TEST(
        "lldp.crowd", "IEEE 802.1AB-2016 9.2.7.7.5",
        "of 32 neighbours the first one is kept, and all can be forgotten",
        lldp_crowd, .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("lldp.wrong-order", "IEEE 802.1AB-2016 9.2.7.7.1",
              "an LLDPDU with mandatory TLVs in another order is discarded",
              wrong_order, .needs = CONF_NEEDS_CONTROL, .is_malformed = true),
    CONF_TEST("lldp.missing", "IEEE 802.1AB-2016 9.2.7.7.1",
              "an LLDPDU without one of the mandatory TLVs is discarded",
              lldp_missing, .needs = CONF_NEEDS_CONTROL, .is_malformed = true),
    CONF_TEST("lldp.twice", "IEEE 802.1AB-2016 9.2.7.7.1",
              "an LLDPDU with a mandatory TLV twice is discarded", lldp_twice,
              .needs = CONF_NEEDS_CONTROL, .is_malformed = true),
    CONF_TEST("lldp.short-ids", "IEEE 802.1AB-2016 9.2.7.7.1",
              "an LLDPDU with IDs without a value is discarded", short_ids,
              .needs = CONF_NEEDS_CONTROL, .is_malformed = true),
    CONF_TEST("lldp.short-ttl", "IEEE 802.1AB-2016 9.2.7.7.1",
              "an LLDPDU with a TTL of 1 byte is discarded", short_ttl,
              .needs = CONF_NEEDS_CONTROL, .is_malformed = true),
    CONF_TEST("lldp.overrun", "IEEE 802.1AB-2016 9.2.7.7.1",
              "an LLDPDU with a TLV beyond the frame is discarded",
              lldp_overrun, .needs = CONF_NEEDS_CONTROL, .is_malformed = true),
    CONF_TEST(
        "lldp.other-destination", "IEEE 802.1AB-2016 7.1",
        "LLDPDUs to the broadcast address or to the drive's own are ignored",
        other_destination, .needs = CONF_NEEDS_CONTROL, .is_malformed = true),
    CONF_TEST("lldp.shutdown", "IEEE 802.1AB-2016 9.1.2.2",
              "a drive that shuts down sends TTL 0 and nothing else",
              shutting_down, .needs = CONF_NEEDS_CONTROL | CONF_LONG),
};
CONF_TESTS(conf_tests_net_lldp, "net", tests);
