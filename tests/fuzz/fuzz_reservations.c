/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reservations: a record as flash may hold it, and then commands of hosts to
 * namespace 1.  Every accepted state must be consistent, must stay so, and must
 * be the same after it was written and read.
 */
#include "tests/fuzz/replay.h"

#include <stdlib.h>
#include <string.h>

#include "storage/volume/reservations.h"

enum {
    COMMAND_LEN = 4, /* bytes of a command: opcode, action, keys, host */
    LENGTH_LEN = 2,  /* the record's length, before it */
    HOSTS = 8,
};

static struct kept_reservations kept, back; /* static, because they are large */
static uint8_t record[RESERVATIONS_RECORD_MAX];

static void abort_unless(bool is_true)
{
    if (!is_true) {
        abort();
    }
}

/* Nobody is registered although all hold it: a record was lost. */
static bool is_closed(const struct reservation *res)
{
    return res->rtype >= RTYPE_WRITE_EXCLUSIVE_ALL && res->count == 0;
}

static void check_state(const struct reservation *res, bool may_be_closed)
{
    abort_unless(res->rtype < RTYPES && res->count <= NVMF_MAX_REGISTRANTS);
    abort_unless(res->rtype == RTYPE_NONE || res->count != 0 ||
                 (may_be_closed && is_closed(res)));
    abort_unless(res->rtype == RTYPE_NONE ||
                 res->rtype >= RTYPE_WRITE_EXCLUSIVE_ALL ||
                 res->holder < res->count);
    for (uint16_t i = 0; i < res->count; i++) {
        abort_unless(reservation_find(res, res->registrant[i].hostid) == i);
        abort_unless(
            !reservation_is_holder(res, i) ||
            !reservation_forbids(res, res->registrant[i].hostid, true));
    }
}

static void check_record(void)
{
    size_t len = reservations_emit(&kept, record);

    abort_unless(len <= sizeof(record));
    abort_unless(reservations_parse(&back, record, len));
    for (uint32_t i = 0; i < NVMF_RESERVATION_NAMESPACES; i++) {
        const struct reservation *a = &kept.ns[i].state;
        const struct reservation *b = &back.ns[i].state;

        abort_unless(kept.ns[i].is_kept == back.ns[i].is_kept);
        if (!kept.ns[i].is_kept) {
            continue;
        }
        abort_unless(a->rtype == b->rtype && a->count == b->count);
        abort_unless(memcmp(a->registrant, b->registrant,
                            a->count * sizeof(a->registrant[0])) == 0);
        for (uint16_t n = 0; n < a->count; n++) {
            abort_unless(reservation_is_holder(a, n) ==
                         reservation_is_holder(b, n));
        }
    }
}

static void run_command(const uint8_t *bytes)
{
    const uint8_t hostid[RESERVATION_HOSTID_LEN] = {1, [15] = bytes[3] % HOSTS};
    struct reservation *res = &kept.ns[0].state;
    struct reservation before = *res;
    struct reservation_command command = {
        .hostid = hostid,
        .action = bytes[1] & 3,
        .iekey = bytes[1] & 4,
        .rtype = (uint8_t)(1 + (bytes[1] >> 3) % (RTYPES - 1)),
        .key = bytes[2] & 3,
        .key2 = bytes[2] >> 2 & 3,
    };
    enum reservation_result result;
    bool is_released;

    if (bytes[0] % 3 == 0 && command.action < RREGAS) {
        result = reservation_register(res, &command, &is_released);
    } else if (bytes[0] % 3 == 1 && command.action < RACQAS) {
        result = reservation_acquire(res, &command, &is_released);
    } else if (command.action < RRELAS) {
        result = reservation_release(res, &command, &is_released);
    } else {
        return;
    }
    if (result != RESERVATION_OK) {
        abort_unless(memcmp(&before, res, sizeof(before)) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    size_t record_len;

    if (len < LENGTH_LEN) {
        return 0;
    }
    record_len = (size_t)(data[0] | data[1] << 8);
    data += LENGTH_LEN;
    len -= LENGTH_LEN;
    if (record_len > len) {
        return 0;
    }
    if (record_len == 0) {
        memset(&kept, 0, sizeof(kept));
    } else if (!reservations_parse(&kept, data, record_len)) {
        return 0;
    }
    kept.ns[0].is_kept = true;
    kept.ns[0].state.ptpl = true;
    check_state(&kept.ns[0].state, true);
    for (data += record_len, len -= record_len; len >= COMMAND_LEN;
         data += COMMAND_LEN, len -= COMMAND_LEN) {
        bool was_closed = is_closed(&kept.ns[0].state);

        run_command(data);
        check_state(&kept.ns[0].state, was_closed);
    }
    check_record();
    return 0;
}

size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    static const uint8_t commands[] = {
        0, 0,  4,  0, 0, 0, 8, 1,
        0, 0,  12, 2, 1, 0, 1, 0, /* register, acquire */
        1, 1,  6,  1, 0, 2, 5, 1,
        2, 0,  1,  1, 0, 1, 1, 1, /* preempt, replace */
        1, 8,  13, 2, 2, 1, 3, 2,
        1, 32, 2,  1, 2, 1, 2, 1, /* all; clear */
    };
    size_t len = 0;

    if (n > 1) {
        return 0;
    }
    if (n == 1) {
        memset(&kept, 0, sizeof(kept));
        kept.ns[0].is_kept = true;
        for (size_t i = 0; i < sizeof(commands) / 2; i += COMMAND_LEN) {
            run_command(commands + i);
        }
        len = reservations_emit(&kept, record);
    }
    abort_unless(room >= LENGTH_LEN + len + sizeof(commands));
    buf[0] = (uint8_t)len;
    buf[1] = (uint8_t)(len >> 8);
    memcpy(buf + LENGTH_LEN, record, len);
    memcpy(buf + LENGTH_LEN + len, commands, sizeof(commands));
    return LENGTH_LEN + len + sizeof(commands);
}
