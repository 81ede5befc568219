/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/tcp/tcp_pdu.h"

#include <string.h>

#include "lib/bytes.h"

enum { /* FLAGS */
       FLAG_HEADER_DIGEST = 0x01,
       FLAG_DATA_DIGEST = 0x02,
       FLAG_LAST = 0x04,
       FLAG_SUCCESS = 0x08,
};

enum { /* DGST of ICReq and ICResp */
       IC_HEADER_DIGEST = 0x01,
       IC_DATA_DIGEST = 0x02,
};

void tcp_pdu_head_parse(struct tcp_pdu_head *head, const uint8_t *buf)
{
    /* The first PDUs and the last ones have no digests, whatever they say. */
    uint8_t flags = buf[PDU_TYPE] < PDU_CAPSULE_CMD ? 0 : buf[PDU_FLAGS];

    *head = (struct tcp_pdu_head){
        .type = buf[PDU_TYPE],
        .hlen = buf[PDU_HLEN],
        .pdo = buf[PDU_PDO],
        .has_header_digest = flags & FLAG_HEADER_DIGEST,
        .has_data_digest = flags & FLAG_DATA_DIGEST,
        .is_last = flags & FLAG_LAST,
        .is_success = flags & FLAG_SUCCESS,
        .plen = get_le32(buf + PDU_PLEN),
    };
}

void tcp_pdu_head_emit(uint8_t *buf, const struct tcp_pdu_head *head)
{
    memset(buf, 0, head->hlen);
    buf[PDU_TYPE] = head->type;
    buf[PDU_FLAGS] =
        (uint8_t)((head->has_header_digest ? FLAG_HEADER_DIGEST : 0) |
                  (head->has_data_digest ? FLAG_DATA_DIGEST : 0) |
                  (head->is_last ? FLAG_LAST : 0) |
                  (head->is_success ? FLAG_SUCCESS : 0));
    buf[PDU_HLEN] = head->hlen;
    buf[PDU_PDO] = head->pdo;
    put_le32(buf + PDU_PLEN, head->plen);
}

/* ---- What a host may send. */

static struct tcp_pdu_term make_fault(enum tcp_fes fes, uint32_t fei)
{
    return (struct tcp_pdu_term){(uint16_t)fes, fei};
}

static struct tcp_pdu_term wrong_field(uint32_t offset)
{
    return make_fault(PDU_FES_HEADER_FIELD, offset);
}

/* The length of a host's header; 0: a host sends no such PDU. */
static uint8_t host_header_len(uint8_t type)
{
    static const uint8_t len[] = {
        [PDU_IC_REQ] = PDU_IC_LEN,
        [PDU_H2C_TERM] = PDU_TERM_LEN,
        [PDU_CAPSULE_CMD] = PDU_CAPSULE_CMD_LEN,
        [PDU_H2C_DATA] = PDU_DATA_LEN,
    };

    return type < sizeof(len) ? len[type] : 0;
}

/* Judge the flags of digests, PDO and PLEN of a PDU that may have data. */
static struct tcp_pdu_term judge_data(const struct tcp_pdu_head *head,
                                      const struct tcp_pdu_rules *rules)
{
    uint32_t begin =
        head->hlen + (rules->has_header_digest ? (uint32_t)PDU_DIGEST_LEN : 0);
    uint32_t end = rules->has_data_digest ? PDU_DIGEST_LEN : 0;
    bool is_capsule = head->type == PDU_CAPSULE_CMD;
    uint32_t len;

    if (head->has_header_digest != rules->has_header_digest) {
        return wrong_field(PDU_FLAGS);
    }
    if (is_capsule && head->plen == begin) {
        return make_fault(PDU_FES_NONE, 0);
    }
    if (head->has_data_digest != rules->has_data_digest) {
        return wrong_field(PDU_FLAGS);
    }
    if (head->pdo != begin) {
        return wrong_field(PDU_PDO); /* CPDA 0: no bytes before the data */
    }
    if (head->plen <= begin + end) {
        return wrong_field(PDU_PLEN);
    }
    len = head->plen - begin - end;
    if (is_capsule && len > rules->capsule_data_max) {
        return wrong_field(PDU_PLEN);
    }
    return make_fault(
        !is_capsule && len > rules->data_max ? PDU_FES_LIMIT : PDU_FES_NONE, 0);
}

struct tcp_pdu_term tcp_pdu_judge(const struct tcp_pdu_head *head,
                                  const struct tcp_pdu_rules *rules)
{
    uint8_t hlen = host_header_len(head->type);

    if (hlen == 0) {
        return wrong_field(PDU_TYPE);
    }
    if (head->type != PDU_H2C_TERM &&
        rules->is_ready == (head->type == PDU_IC_REQ)) {
        return make_fault(PDU_FES_SEQUENCE, 0);
    }
    if (head->hlen != hlen) {
        return wrong_field(PDU_HLEN);
    }
    if (head->type == PDU_IC_REQ) {
        return head->plen == PDU_IC_LEN ? make_fault(PDU_FES_NONE, 0)
                                        : wrong_field(PDU_PLEN);
    }
    if (head->type == PDU_H2C_TERM) {
        return head->plen >= PDU_TERM_LEN &&
                       head->plen <= PDU_TERM_LEN + PDU_TERM_HEADER_MAX
                   ? make_fault(PDU_FES_NONE, 0)
                   : wrong_field(PDU_PLEN);
    }
    return judge_data(head, rules);
}

uint32_t tcp_pdu_data_len(const struct tcp_pdu_head *head)
{
    uint32_t begin =
        head->hlen + (head->has_header_digest ? (uint32_t)PDU_DIGEST_LEN : 0);

    if (head->plen == begin) {
        return 0;
    }
    return head->plen - begin -
           (head->has_data_digest ? (uint32_t)PDU_DIGEST_LEN : 0);
}

/* ---- The headers of each type. */

void tcp_pdu_ic_parse(struct tcp_pdu_ic *ic, const uint8_t *buf)
{
    *ic = (struct tcp_pdu_ic){
        .pfv = get_le16(buf + PDU_IC_PFV),
        .pda = buf[PDU_IC_PDA],
        .has_header_digest = buf[PDU_IC_DIGEST] & IC_HEADER_DIGEST,
        .has_data_digest = buf[PDU_IC_DIGEST] & IC_DATA_DIGEST,
        .limit = get_le32(buf + PDU_IC_LIMIT),
    };
}

void tcp_pdu_ic_emit(uint8_t *buf, const struct tcp_pdu_ic *ic)
{
    memset(buf + PDU_HEAD_LEN, 0, PDU_IC_LEN - PDU_HEAD_LEN);
    put_le16(buf + PDU_IC_PFV, ic->pfv);
    buf[PDU_IC_PDA] = ic->pda;
    buf[PDU_IC_DIGEST] =
        (uint8_t)((ic->has_header_digest ? IC_HEADER_DIGEST : 0) |
                  (ic->has_data_digest ? IC_DATA_DIGEST : 0));
    put_le32(buf + PDU_IC_LIMIT, ic->limit);
}

void tcp_pdu_term_parse(struct tcp_pdu_term *term, const uint8_t *buf)
{
    *term = (struct tcp_pdu_term){
        .fes = get_le16(buf + PDU_TERM_FES),
        .fei = get_le32(buf + PDU_TERM_FEI),
    };
}

void tcp_pdu_term_emit(uint8_t *buf, const struct tcp_pdu_term *term)
{
    memset(buf + PDU_HEAD_LEN, 0, PDU_TERM_LEN - PDU_HEAD_LEN);
    put_le16(buf + PDU_TERM_FES, term->fes);
    put_le32(buf + PDU_TERM_FEI, term->fei);
}

void tcp_pdu_data_parse(struct tcp_pdu_data *data, const uint8_t *buf)
{
    *data = (struct tcp_pdu_data){
        .cccid = get_le16(buf + PDU_DATA_CCCID),
        .ttag = get_le16(buf + PDU_DATA_TTAG),
        .offset = get_le32(buf + PDU_DATA_OFFSET),
        .len_bytes = get_le32(buf + PDU_DATA_LENGTH),
    };
}

void tcp_pdu_data_emit(uint8_t *buf, const struct tcp_pdu_data *data)
{
    memset(buf + PDU_HEAD_LEN, 0, PDU_DATA_LEN - PDU_HEAD_LEN);
    put_le16(buf + PDU_DATA_CCCID, data->cccid);
    put_le16(buf + PDU_DATA_TTAG, data->ttag);
    put_le32(buf + PDU_DATA_OFFSET, data->offset);
    put_le32(buf + PDU_DATA_LENGTH, data->len_bytes);
}
