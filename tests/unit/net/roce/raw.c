/* SPDX-License-Identifier: BSD-2-Clause */
/* Hand-made packets: see raw.h. */
#include "raw.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "net/wire/eth.h"
#include "net/wire/icrc.h"
#include "net/wire/ipv4.h"
#include "net/wire/udp.h"

struct bed *raw_bed(const struct bed_path *path)
{
    struct bed *bed = bed_new();
    struct bed_path p = *path;

    p.mtu = p.mtu != 0 ? p.mtu : 1;
    p.psn = RAW_PSN;
    bed_start(bed);
    bed_connect(bed, 0, &p);
    return bed;
}

uint32_t raw_build(struct bed *bed, const struct raw *raw, uint8_t *frame)
{
    static const uint8_t zeroes[64];
    uint32_t header_len = roce_opcodes[raw->opcode].header_len_bytes;
    uint32_t ext_len = header_len != 0 ? header_len - BTH_LEN : 0;
    uint32_t pad = -raw->len & 3;
    uint32_t udp_len = UDP_LEN + BTH_LEN + ext_len + raw->len + pad + ICRC_LEN;
    struct eth eth = {
        .type = ETHERTYPE_IPV4, .tagged = raw->is_tagged, .vlan = raw->vlan};
    uint8_t *ip = frame + eth_header_len(&eth);
    uint8_t *p = ip + IPV4_LEN + UDP_LEN + BTH_LEN;
    uint32_t icrc;
    struct bth bth = {
        .opcode = raw->opcode,
        .pad_bytes = (uint8_t)(pad + raw->more_pad) & 3,
        .ack_requested = raw->ack_requested,
        .pkey = raw->pkey != 0 ? raw->pkey : BTH_PKEY_DEFAULT,
        .dest_qp = raw->qpn != 0 ? raw->qpn : bed_qpn(&bed->side[1], 0),
        .psn = raw->psn,
    };

    eth_emit(&eth, frame);
    ipv4_emit(
        &(struct ipv4){.src = ip_addr_from_v4(
                           (0x0a000001u + (raw->port * 256u)) ^ raw->bad_src),
                       .dst = ip_addr_from_v4(
                           (0x0a000002u + (raw->port * 256u)) ^ raw->bad_dst),
                       .total_len_bytes = (uint16_t)(IPV4_LEN + udp_len),
                       .tos = raw->tos,
                       .ttl = 64,
                       .protocol = IP_PROTOCOL_UDP},
        ip);
    udp_emit(&(struct udp){.src_port = 0xc000,
                           .dst_port = UDP_PORT_ROCE,
                           .length_bytes = (uint16_t)udp_len},
             ip + IPV4_LEN);
    bth_emit(&bth, ip + IPV4_LEN + UDP_LEN);
    if (roce_opcode_is(raw->opcode, ROCE_RETH) && raw->ext == NULL) {
        reth_emit(&raw->reth, p);
    } else {
        memcpy(p, raw->ext != NULL ? raw->ext : zeroes, ext_len);
    }
    memset(p + ext_len, raw->fill, raw->len);
    memset(p + ext_len + raw->len, 0, pad);
    icrc = icrc_add(icrc_begin_ipv4(ip), p, ext_len + raw->len + pad);
    icrc_emit(raw->bad_icrc ? ~icrc : icrc, p + ext_len + raw->len + pad);
    return (uint32_t)eth_header_len(&eth) + IPV4_LEN + udp_len;
}

void raw_give(struct bed *bed, unsigned int port, const uint8_t *frame,
              uint32_t len)
{
    uint8_t *copy = malloc(len); /* ASan detects reads beyond its end */

    memcpy(copy, frame, len);
    rnic_rx(bed->side[1].rnic, port,
            &(struct frame_rx){.data = copy, .len_bytes = len}, 1);
    free(copy);
    while (bed->side[1].deferred) {
        bed->side[1].deferred = false;
        rnic_run(bed->side[1].rnic);
    }
}

void raw_send(struct bed *bed, const struct raw *raw)
{
    uint8_t frame[5000];

    raw_give(bed, raw->port, frame, raw_build(bed, raw, frame));
}

bool raw_take(struct bed *bed, struct raw_reply *reply)
{
    struct bed_side *to = &bed->side[0];
    const uint32_t at = ETH_LEN + IPV4_LEN + UDP_LEN;
    const uint8_t *ext;
    struct bed_frame frame;
    uint32_t header_len;

    if (to->in_head == to->in_tail) {
        return false;
    }
    frame = to->in[to->in_head++ % BED_FRAMES];
    memset(reply, 0, sizeof(*reply));
    assert_true(bth_parse(&reply->bth, frame.data + at, frame.len - at));
    ext = frame.data + at + BTH_LEN;
    header_len = roce_opcodes[reply->bth.opcode].header_len_bytes;
    if (roce_opcode_is(reply->bth.opcode, ROCE_AETH)) {
        assert_true(aeth_parse(&reply->aeth, ext, AETH_LEN));
    }
    if (roce_opcode_is(reply->bth.opcode, ROCE_RETH)) {
        assert_true(reth_parse(&reply->reth, ext, RETH_LEN));
    }
    reply->len = frame.len - at - header_len - ICRC_LEN - reply->bth.pad_bytes;
    memcpy(reply->payload, frame.data + at + header_len, reply->len);
    free(frame.data);
    return true;
}

void raw_expect(struct bed *bed, enum aeth_kind kind, uint8_t value,
                uint32_t psn)
{
    struct raw_reply reply;

    assert_true(raw_take(bed, &reply));
    assert_int_equal(reply.bth.opcode, RC_ACKNOWLEDGE);
    assert_int_equal(reply.bth.dest_qp, bed_qpn(&bed->side[0], 0));
    assert_int_equal(reply.aeth.kind, kind);
    assert_int_equal(reply.aeth.value, value);
    assert_int_equal(reply.bth.psn, psn);
    raw_expect_silence(bed);
}

void raw_expect_silence(struct bed *bed)
{
    assert_int_equal(bed->side[0].in_head, bed->side[0].in_tail);
}
