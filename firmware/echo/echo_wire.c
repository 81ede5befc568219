/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/echo/echo_wire.h"

#include "lib/bytes.h"

#define REQ_MAGIC UINT32_C(0x45445101) /* "EDQ", 1 */
#define REP_MAGIC UINT32_C(0x45445201) /* "EDR", 1 */

bool ping_info_parse(struct ping_info *info, const uint8_t *buf, size_t len)
{
    if (len != PING_INFO_LEN) {
        return false;
    }
    *info = (struct ping_info){
        .addr = get_be64(buf + PING_INFO_ADDR),
        .rkey = get_be32(buf + PING_INFO_RKEY),
        .size_bytes = get_be32(buf + PING_INFO_SIZE),
    };
    return true;
}

void ping_info_emit(const struct ping_info *info, uint8_t *buf)
{
    put_be64(buf + PING_INFO_ADDR, info->addr);
    put_be32(buf + PING_INFO_RKEY, info->rkey);
    put_be32(buf + PING_INFO_SIZE, info->size_bytes);
}

bool echo_req_parse(struct echo_req *req, const uint8_t *buf, size_t len)
{
    if (len < ECHO_REQ_LEN || get_be32(buf + ECHO_REQ_MAGIC) != REQ_MAGIC) {
        return false;
    }
    *req = (struct echo_req){
        .buffers = buf[ECHO_REQ_BUFFERS],
        .hold_ms = get_be16(buf + ECHO_REQ_HOLD_MS),
    };
    return true;
}

void echo_req_emit(const struct echo_req *req, uint8_t *buf)
{
    put_be32(buf + ECHO_REQ_MAGIC, REQ_MAGIC);
    buf[ECHO_REQ_BUFFERS] = req->buffers;
    buf[ECHO_REQ_RESERVED] = 0;
    put_be16(buf + ECHO_REQ_HOLD_MS, req->hold_ms);
}

bool echo_rep_parse(struct echo_rep *rep, const uint8_t *buf, size_t len)
{
    if (len < ECHO_REP_LEN || get_be32(buf + ECHO_REP_MAGIC) != REP_MAGIC) {
        return false;
    }
    *rep = (struct echo_rep){
        .addr = get_be64(buf + ECHO_REP_ADDR),
        .rkey = get_be32(buf + ECHO_REP_RKEY),
        .size_bytes = get_be32(buf + ECHO_REP_SIZE),
        .read_addr = get_be64(buf + ECHO_REP_READ_ADDR),
        .read_rkey = get_be32(buf + ECHO_REP_READ_RKEY),
        .read_size_bytes = get_be32(buf + ECHO_REP_READ_SIZE),
        .write_rkey = get_be32(buf + ECHO_REP_WRITE_RKEY),
        .buffers = get_be16(buf + ECHO_REP_BUFFERS),
        .buffer_size_bytes = get_be16(buf + ECHO_REP_BUFFER_SIZE),
    };
    return true;
}

void echo_rep_emit(const struct echo_rep *rep, uint8_t *buf)
{
    put_be32(buf + ECHO_REP_MAGIC, REP_MAGIC);
    put_be64(buf + ECHO_REP_ADDR, rep->addr);
    put_be32(buf + ECHO_REP_RKEY, rep->rkey);
    put_be32(buf + ECHO_REP_SIZE, rep->size_bytes);
    put_be64(buf + ECHO_REP_READ_ADDR, rep->read_addr);
    put_be32(buf + ECHO_REP_READ_RKEY, rep->read_rkey);
    put_be32(buf + ECHO_REP_READ_SIZE, rep->read_size_bytes);
    put_be32(buf + ECHO_REP_WRITE_RKEY, rep->write_rkey);
    put_be16(buf + ECHO_REP_BUFFERS, rep->buffers);
    put_be16(buf + ECHO_REP_BUFFER_SIZE, rep->buffer_size_bytes);
}
