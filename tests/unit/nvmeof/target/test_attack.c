/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts that use every command which changes namespaces or data, at random and
 * all at once, on a target with a real volume and a medium in memory.  The
 * medium ends operations in any order and sometimes fails, connections end,
 * the subsystem is reset, and the power fails.
 *
 * Each sector that is written names its namespace and its command.  So a Read
 * shows whether it got the data of another namespace (or of the namespace
 * before it was deleted or formatted), and whether an old write has overwritten
 * a newer one.  A failed test names the seed.
 */
#include "fake.h"

#include "tests/test_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "firmware/hal/time.h"
#include "storage/volume/volume.h"
#include "lib/bytes.h"

enum {
    SEEDS = 12,
    STEPS = 4000,
    MEDIUM_MIB = 9,
    SECTORS = MEDIUM_MIB * 2048 + 3, /* the last window is a short one */
    OPS = 256,
    HOSTS = 3, /* the first two are one host with two controllers */
    QUEUES = 2,
    COMMANDS = 64, /* in flight */
    NAMESPACES = 12,
    HOT = 24,      /* blocks of each namespace that hosts use */
    HISTORY = 160, /* writes to one block */
    BLOCKS_MAX = 12,
    DATA_LEN = BLOCKS_MAX * 4096,
    ANY = 1 << 30, /* as a tag: data that were copied from other blocks */
    RUN_STEPS = 100000,
    FIRST = 1, /* FUSE */
    SECOND = 2,
};

struct past_write {
    uint32_t tag; /* 0: zeroes */
    bool is_certain;
    uint64_t begun, ended; /* UINT64_MAX: it goes on */
};

struct oracle {
    uint32_t creation;   /* of the table; 0: no namespace */
    uint32_t generation; /* changes with each Format too */
    struct past_write past[HOT][HISTORY];
    unsigned int count[HOT];
    unsigned int protections; /* commands in flight that change it */
    bool protections_meet;    /* several were in flight at once: the order of
                               * their answers does not say which counts */
    bool is_protected;        /* for certain */
    bool is_lossy;            /* more writes than `past` holds */
};

struct command {
    struct fake_request *request; /* NULL: unused */
    struct nvme_sqe sqe;
    uint8_t host, queue;
    uint16_t qpair;
    uint32_t generation, tag;
    uint64_t begun;
    uint16_t hot, count; /* blocks, if it has any */
    bool was_protected;
    uint8_t data[DATA_LEN];
};

struct host {
    bool is_connected;
    uint16_t admin, io[QUEUES];
};

struct world {
    struct fake *fake;
    struct volume *volume;
    struct log log;
    struct identity identity;
    uint8_t *medium;
    struct media_io ops[OPS];
    unsigned int op_count;
    uint8_t record[VOLUME_RECORD_MAX];
    size_t record_len;
    uint32_t writes;
    struct host host[HOSTS];
    struct command command[COMMANDS];
    struct oracle ns[NAMESPACES];
    uint32_t generations, tags;
    uint64_t now;
    uint64_t random;
    unsigned int stalled;     /* steps that the medium still stands still */
    unsigned int disconnects; /* of the transport that are done */
    unsigned int successes, drops; /* of commands */
};

static struct world *world;

uint64_t hal_now_us(void)
{
    return 0;
}

static uint32_t random_below(uint32_t below)
{
    world->random = world->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(world->random >> 33) % below;
}

static bool one_in(uint32_t n)
{
    return random_below(n) == 0;
}

/* ---- The oracle. */

static void forget_data(struct oracle *ns, uint32_t creation)
{
    memset(ns->count, 0, sizeof(ns->count));
    ns->creation = creation;
    ns->generation = ++world->generations;
    ns->is_lossy = false;
    ns->is_protected = false;
}

/* Compare the oracle's namespaces with those of the table. */
static void follow_table(void)
{
    for (uint32_t i = 0; i < NAMESPACES; i++) {
        uint32_t creation = volume_now(world->volume)->ns[i].creation;

        if (world->ns[i].creation != creation) {
            forget_data(&world->ns[i], creation);
        }
    }
}

static void note_write(const struct command *command, uint32_t tag)
{
    struct oracle *ns = &world->ns[command->sqe.nsid - 1];

    for (uint32_t i = 0; i < command->count; i++) {
        uint32_t hot = command->hot + i;

        if (ns->count[hot] == HISTORY) {
            ns->is_lossy = true;
            continue;
        }
        ns->past[hot][ns->count[hot]++] =
            (struct past_write){tag, false, command->begun, UINT64_MAX};
    }
}

/* A command that writes has ended; `has_run`: it may have written, too. */
static void note_end(const struct command *command, bool is_certain,
                     bool has_run)
{
    struct oracle *ns = &world->ns[command->sqe.nsid - 1];

    if (ns->generation != command->generation) {
        return;
    }
    for (uint32_t i = 0; i < command->count; i++) {
        uint32_t hot = command->hot + i;

        for (unsigned int k = 0; k < ns->count[hot]; k++) {
            struct past_write *past = &ns->past[hot][k];

            if (past->begun != command->begun) {
                continue;
            }
            past->is_certain = is_certain;
            past->ended = world->now;
            if (!has_run) {
                *past = ns->past[hot][--ns->count[hot]];
                k--;
            }
        }
    }
}

/* Whether a certain write followed `past` and ended before `begun`. */
static bool is_overwritten(const struct oracle *ns, uint32_t hot,
                           const struct past_write *past, uint64_t begun)
{
    for (unsigned int k = 0; k < ns->count[hot]; k++) {
        const struct past_write *other = &ns->past[hot][k];

        if (other->is_certain && other->ended < begun &&
            (past == NULL || other->begun > past->ended)) {
            return true;
        }
    }
    return false;
}

/* Whether a Read that began at `begun` and ends now may return `tag`. */
static bool is_possible(const struct oracle *ns, uint32_t hot, uint32_t tag,
                        uint64_t begun)
{
    if (ns->is_lossy || (tag == 0 && !is_overwritten(ns, hot, NULL, begun))) {
        return true;
    }
    for (unsigned int k = 0; k < ns->count[hot]; k++) {
        const struct past_write *past = &ns->past[hot][k];

        if ((past->tag == tag || past->tag == ANY) &&
            !is_overwritten(ns, hot, past, begun)) {
            return true;
        }
    }
    return false;
}

/* ---- The medium. */

/* Whether the medium does something for the target.  If so, the target tries
 * again when that ends. */
static bool serves_target(void)
{
    for (unsigned int i = 0; i < world->op_count; i++) {
        if (world->ops[i].owner != &world->volume->erasure) {
            return true;
        }
    }
    return false;
}

static bool submit_op(void *ctx, const struct media_io *io)
{
    (void)ctx;
    assert_true(io->op == MEDIA_FLUSH ||
                io->first_lba + io->count_blocks <= SECTORS);
    if (world->op_count == OPS || (one_in(16) && serves_target())) {
        return false;
    }
    world->ops[world->op_count++] = *io;
    return true;
}

static bool submit_io(void *ctx, const struct media_io *io)
{
    struct media_io placed = *io;

    if (io->op != MEDIA_FLUSH &&
        !volume_locate_linear(world->volume, io, &placed.first_lba,
                              &placed.count_blocks) &&
        !volume_locate(world->volume, io, &placed.first_lba,
                       &placed.count_blocks)) {
        return volume_submit(world->volume, io);
    }
    return submit_op(ctx, &placed);
}

/* Move the first `sectors` of an operation. */
static void move_sectors(const struct media_io *io, uint32_t sectors)
{
    uint8_t *at = world->medium + io->first_lba * 512;
    size_t left = (size_t)sectors * 512;

    if (io->op == MEDIA_WRITE_ZEROES || io->op == MEDIA_DEALLOCATE) {
        memset(at, 0, left);
    }
    for (uint8_t i = 0; i < io->piece_count && left > 0; i++) {
        size_t n = MIN(left, (size_t)io->pieces[i].len_bytes);

        if (io->op == MEDIA_READ) {
            memcpy(io->pieces[i].ptr, at, n);
        } else {
            memcpy(at, io->pieces[i].ptr, n);
        }
        at += n;
        left -= n;
    }
}

static void end_op(unsigned int i, bool may_fail)
{
    struct media_io io = world->ops[i];
    enum media_status status = MEDIA_OK;

    world->ops[i] = world->ops[--world->op_count];
    if (may_fail && one_in(100)) {
        status = io.op == MEDIA_READ ? MEDIA_READ_ERROR : MEDIA_WRITE_ERROR;
        move_sectors(&io, random_below(io.count_blocks + 1));
    } else {
        move_sectors(&io, io.count_blocks);
    }
    media_end(io.owner, status);
}

static void read_geometry(void *ctx, uint32_t ns,
                          struct media_geometry *geometry)
{
    (void)ctx;
    volume_geometry(world->volume, ns, geometry);
}

static void set_cache(void *ctx, bool is_on)
{
    (void)ctx;
    (void)is_on;
}

/* ---- The drive. */

static bool save_record(void *ctx, const uint8_t *record, size_t len)
{
    (void)ctx;
    if (one_in(40)) {
        return false;
    }
    memcpy(world->record, record, len);
    world->record_len = len;
    world->writes++;
    return true;
}

static void job_done(void *ctx, enum nvmf_volume_result result, uint32_t nsid)
{
    (void)ctx;
    follow_table();
    if (result == NVMF_VOLUME_OK &&
        world->fake->target->manager.job.op == NVMF_VOLUME_FORMAT) {
        forget_data(&world->ns[nsid - 1], world->ns[nsid - 1].creation);
    }
    nvmf_volume_done(world->fake->target, result, nsid);
}

static void ns_changed(void *ctx, uint32_t nsid)
{
    (void)ctx;
    forget_data(&world->ns[nsid - 1], world->ns[nsid - 1].creation);
    nvmf_target_ns_loaded(world->fake->target, nsid);
}

static size_t drop_text(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    (void)text;
    return len;
}

static void start_drive(void)
{
    const struct volume_config config = {
        .log = &world->log,
        .medium_blocks = SECTORS,
        .is_power_on = !one_in(3),
        .identity = &world->identity,
        .record_state =
            world->writes != 0 ? VOLUME_RECORD_OK : VOLUME_RECORD_NONE,
        .record = world->record,
        .record_len = world->record_len,
        .writes = 0,
        .save = save_record,
        .submit = submit_op,
        .job_done = job_done,
        .ns_changed = ns_changed,
    };
    struct fake *fake = fake_new();

    world->fake = fake;
    world->disconnects = 0;
    world->op_count = 0;
    volume_init(world->volume, &config);
    follow_table();
    for (uint32_t i = 0; i < NAMESPACES; i++) {
        world->ns[i].protections = 0;
        world->ns[i].protections_meet = false;
        world->ns[i].is_protected = false;
    }
    fake->has_spare = true;
    fake->piece_bytes = 4096;
    fake->window_max = 4096u << random_below(4);
    fake->buffers_free = 16 * 4096;
    fake->reserve = 3; /* as the real pool: one current command, two waiting */
    fake->config.namespace_count = 0;
    fake->config.volume = volume_seam(world->volume);
    fake->config.media =
        (struct nvmf_media){NULL, submit_io, set_cache, read_geometry, NULL};
    fake->config.genctr = (uint64_t)world->generations << 16;
    fake_start(fake);
    memset(world->host, 0, sizeof(world->host));
}

/* ---- Ends of commands. */

static bool writes_data(const struct command *command)
{
    return command->count != 0 && command->sqe.opcode != NVM_READ &&
           command->sqe.opcode != NVM_COMPARE;
}

static bool is_protection(const struct command *command)
{
    return command->queue == QUEUES &&
           command->sqe.opcode == ADMIN_SET_FEATURES;
}

static void end_protection(struct oracle *ns)
{
    ns->protections--;
    if (ns->protections == 0) {
        ns->protections_meet = false;
    }
}

static void check_sector(const struct command *command, uint32_t block,
                         const uint8_t *sector)
{
    const struct oracle *ns = &world->ns[command->sqe.nsid - 1];
    uint32_t generation = get_le32(sector), tag = get_le32(sector + 4);

    if (generation != 0 && generation != command->generation) {
        fail_msg("NSID %u: a Read got data of generation %u instead of %u",
                 command->sqe.nsid, generation, command->generation);
    }
    if (ns->generation == command->generation &&
        !is_possible(ns, command->hot + block, tag, command->begun)) {
        for (unsigned int k = 0; k < ns->count[command->hot + block]; k++) {
            const struct past_write *past = &ns->past[command->hot + block][k];

            print_message("write %u: %lu to %ld, %s\n", past->tag,
                          (unsigned long)past->begun, (long)past->ended,
                          past->is_certain ? "certain" : "perhaps");
        }
        print_message("Read: %lu to %lu\n", (unsigned long)command->begun,
                      (unsigned long)world->now);
        fail_msg("NSID %u, block %u: a Read got old data: command %u",
                 command->sqe.nsid, command->hot + block, tag);
    }
}

static uint32_t block_bytes(const struct command *command)
{
    return command->request->host_len / command->count;
}

static void check_answer(struct command *command)
{
    uint16_t status = command->request->cqe.status & NVME_SC_MASK;
    bool is_success = status == NVME_SC_SUCCESS;

    world->successes += is_success;
    if (writes_data(command)) {
        assert_false(is_success && command->was_protected);
        note_end(command, is_success,
                 is_success || status == NVME_SC_WRITE_FAULT ||
                     status == NVME_SC_READ_ERROR ||
                     status == NVME_SC_ABORT_REQUESTED);
    }
    if (command->sqe.opcode == NVM_READ && command->count != 0 && is_success) {
        for (uint32_t at = 0; at < command->request->host_len; at += 512) {
            check_sector(command, at / block_bytes(command),
                         command->data + at);
        }
    }
    if (is_protection(command)) {
        struct oracle *ns = &world->ns[command->sqe.nsid - 1];
        bool met = ns->protections_meet;

        end_protection(ns);
        if (is_success && ns->generation == command->generation) {
            ns->is_protected =
                ns->protections == 0 && !met && command->sqe.cdw11 != 0;
        }
    }
    command->request = NULL;
}

static void drop_command(struct command *command)
{
    world->drops++;
    if (writes_data(command)) {
        note_end(command, false, true);
    }
    if (is_protection(command)) {
        end_protection(&world->ns[command->sqe.nsid - 1]);
        world->ns[command->sqe.nsid - 1].is_protected = false;
    }
}

/* The requests of commands that were dropped can be used again. */
static void reap_commands(void)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        struct command *command = &world->command[i];

        if (command->request == NULL) {
            continue;
        }
        if (command->request->is_answered) {
            if (command->qpair != NO_QPAIR) {
                check_answer(command);
            }
            command->request = NULL;
        } else if (command->qpair == NO_QPAIR &&
                   command->request->req.state == NVMF_REQUEST_FREE) {
            command->request->is_done = true;
            command->request = NULL;
        }
    }
}

static void drop_commands(uint16_t qpair)
{
    reap_commands();
    for (size_t i = 0; i < COMMANDS; i++) {
        struct command *command = &world->command[i];

        if (command->request != NULL && command->qpair == qpair) {
            drop_command(command);
            command->qpair = NO_QPAIR;
        }
    }
}

/* The connection has ended; commands may still be in progress. */
static void end_qpair(uint16_t qpair)
{
    bool is_free;

    drop_commands(qpair);
    is_free = nvmf_qpair_closed(world->fake->target, qpair);
    assert_true(is_free || world->fake->target->qpair[qpair].in_flight != 0);
}

static void close_qpair(uint16_t qpair)
{
    for (unsigned int h = 0; h < HOSTS; h++) {
        struct host *host = &world->host[h];

        if (host->is_connected && host->admin == qpair) {
            host->is_connected = false;
            for (unsigned int q = 0; q < QUEUES; q++) {
                if (host->io[q] != NO_QPAIR) {
                    end_qpair(host->io[q]);
                }
            }
        }
        for (unsigned int q = 0; q < QUEUES; q++) {
            host->io[q] = host->is_connected && host->io[q] == qpair
                              ? NO_QPAIR
                              : host->io[q];
        }
    }
    end_qpair(qpair);
}

/* Connections that the target ends. */
static void follow_disconnects(void)
{
    struct fake *fake = world->fake;

    while (world->disconnects < fake->disconnect_count) {
        uint16_t qpair = fake->disconnected[world->disconnects++ % 64];

        if (fake->target->qpair[qpair].state == QPAIR_CLOSING) {
            close_qpair(qpair);
        }
    }
}

/* ---- Hosts. */

static uint16_t connect_queue(unsigned int h, uint16_t qid, uint16_t cntlid,
                              uint16_t *status)
{
    struct connect_command command = {
        .qid = qid, .sqsize = 31, .has_sq_flow_control = true};
    struct connect_data data;
    uint16_t qpair = fake_open(world->fake, qid, 31);

    fake_connect_data(&data, cntlid, FAKE_SUBNQN);
    data.hostnqn[strlen(data.hostnqn) - 1] = h < 2 ? 'A' : 'B';
    *status = fake_connect_with(world->fake, qpair, &command, &data).status;
    reap_commands(); /* before requests are used again */
    return qpair;
}

static void connect_host(unsigned int h)
{
    struct host *host = &world->host[h];
    struct fake *fake = world->fake;
    uint16_t cntlid, status;

    host->admin = connect_queue(h, 0, 0xffff, &status);
    assert_int_equal(status, 0);
    cntlid = fake->target->ctrl[fake->target->qpair[host->admin].ctrl].cntlid;
    fake_property_set(fake, host->admin, PROPERTY_CC, CC_ENABLE);
    reap_commands();
    host->is_connected = true;
    for (uint16_t q = 0; q < QUEUES; q++) {
        host->io[q] = connect_queue(h, (uint16_t)(q + 1), cntlid, &status);
        assert_int_equal(status, 0);
    }
}

static struct command *free_command(void)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        if (world->command[i].request == NULL) {
            return &world->command[i];
        }
    }
    return NULL;
}

static struct command *new_command(unsigned int h, unsigned int queue)
{
    struct host *host = &world->host[h];
    struct command *command = free_command();
    uint16_t qpair = queue == QUEUES ? host->admin : host->io[queue];

    if (command == NULL || qpair == NO_QPAIR ||
        world->fake->target->qpair[qpair].state != QPAIR_LIVE) {
        return NULL;
    }
    *command = (struct command){.host = (uint8_t)h,
                                .queue = (uint8_t)queue,
                                .qpair = qpair,
                                .begun = ++world->now};
    return command;
}

static void send_command(struct command *command, uint32_t len)
{
    command->request = fake_send(world->fake, command->qpair, &command->sqe,
                                 len != 0 ? command->data : NULL, len);
}

static void fill_data(struct command *command, uint32_t len)
{
    for (uint32_t at = 0; at < len; at += 512) {
        memset(command->data + at, (int)(command->tag & 0xff), 512);
        put_le32(command->data + at, command->generation);
        put_le32(command->data + at + 4, command->tag);
    }
}

/* The block with this number among those that hosts use: the first ones, those
 * around the first window's end, and the last ones. */
static uint64_t hot_block(uint32_t nsid, uint32_t hot)
{
    const struct volume_entry *ns = &volume_now(world->volume)->ns[nsid - 1];
    uint64_t size = ns->size_bytes >> ns->block_shift;

    if (hot >= 16) {
        return size - HOT + hot;
    }
    return hot < 8 ? hot : (UINT64_C(1) << 20 >> ns->block_shift) - 12 + hot;
}

/* Mostly a namespace that is attached to the host. */
static uint32_t choose_nsid(unsigned int h)
{
    const struct nvmf_target *target = world->fake->target;
    uint8_t index = target->qpair[world->host[h].admin].ctrl;
    uint32_t nsid = 1;

    for (unsigned int i = 0; i < 8; i++) {
        nsid = 1 + random_below(NAMESPACES / 2);
        if (index != NO_CTRL &&
            (target->ctrl[index].active_ns[0] >> (nsid - 1) & 1)) {
            break;
        }
    }
    return nsid;
}

/* Choose blocks of a namespace.  @return bytes of a block, 0 without one */
static uint32_t choose_blocks(struct command *command)
{
    uint32_t nsid = choose_nsid(command->host);
    const struct volume_entry *ns = &volume_now(world->volume)->ns[nsid - 1];
    uint32_t part = random_below(3);
    uint64_t lba;

    command->sqe.nsid = nsid;
    if (ns->creation == 0 || ns->size_bytes < 2 << 20) {
        part = 0;
    }
    if (ns->creation == 0 || ns->size_bytes >> ns->block_shift < HOT) {
        return 0;
    }
    command->generation = world->ns[nsid - 1].generation;
    command->was_protected = world->ns[nsid - 1].is_protected;
    command->hot = (uint16_t)(part * 8 + random_below(one_in(2) ? 2 : 8));
    command->count = (uint16_t)(1 + random_below(8 - command->hot % 8));
    lba = hot_block(nsid, command->hot);
    command->sqe.cdw10 = (uint32_t)lba;
    command->sqe.cdw11 = (uint32_t)(lba >> 32);
    command->sqe.cdw12 = command->count - 1u;
    return 1u << ns->block_shift;
}

static void send_write(struct command *command)
{
    uint32_t bytes = choose_blocks(command);

    command->sqe.opcode = NVM_WRITE;
    if (bytes == 0) {
        command->count = 0;
        send_command(command, 512);
        return;
    }
    command->tag = ++world->tags;
    fill_data(command, command->count * bytes);
    note_write(command, command->tag);
    /* An SGL of a wrong length is refused. */
    send_command(command, command->count * bytes + (one_in(30) ? 512 : 0));
}

static void send_read(struct command *command, uint8_t opcode)
{
    uint32_t bytes = choose_blocks(command);

    command->sqe.opcode = opcode;
    send_command(command, bytes != 0 ? command->count * bytes : 512);
}

/* Write Zeroes, Dataset Management and Verify. */
static void send_without_data(struct command *command, uint8_t opcode)
{
    if (choose_blocks(command) == 0) {
        return;
    }
    command->sqe.opcode = opcode;
    if (opcode == NVM_VERIFY) {
        command->count = 0;
    } else {
        note_write(command, 0);
    }
    if (opcode == NVM_DATASET_MANAGEMENT) {
        put_le32(command->data + 4, command->count);
        put_le64(command->data + 8,
                 command->sqe.cdw10 | (uint64_t)command->sqe.cdw11 << 32);
        command->sqe.cdw10 = 0;
        command->sqe.cdw11 = 4; /* Deallocate */
        send_command(command, 16);
    } else {
        send_command(command, 0);
    }
}

/* Copy one or two overlapping ranges. */
static void send_copy(struct command *command)
{
    uint32_t ranges = 1 + random_below(2);
    uint32_t part;

    if (choose_blocks(command) == 0 || command->count < ranges) {
        return;
    }
    part = command->hot / 8;
    for (uint32_t i = 0; i < ranges; i++) {
        uint32_t blocks = i == 0 ? command->count - ranges + 1u : 1;
        uint32_t hot = part * 8 + random_below(8 - (blocks - 1));

        put_le64(command->data + 32 * i + 8, hot_block(command->sqe.nsid, hot));
        put_le16(command->data + 32 * i + 16, (uint16_t)(blocks - 1));
    }
    command->sqe.opcode = NVM_COPY;
    command->sqe.cdw12 = ranges - 1;
    command->tag = ANY;
    note_write(command, ANY);
    send_command(command, ranges * 32);
}

/* Compare and Write of one block; sometimes the second half does not follow. */
static void send_fused(struct command *first)
{
    uint32_t bytes = choose_blocks(first);
    struct command *second;

    first->count = 1;
    first->sqe.cdw12 = 0;
    first->sqe.opcode = NVM_COMPARE;
    first->sqe.fuse = FIRST;
    if (bytes == 0) {
        return;
    }
    send_command(first, bytes);
    second = new_command(first->host, first->queue);
    if (second == NULL || one_in(5)) {
        return;
    }
    second->sqe = first->sqe;
    second->sqe.opcode = NVM_WRITE;
    second->sqe.fuse = SECOND;
    second->generation = first->generation;
    second->was_protected = first->was_protected;
    second->hot = first->hot;
    second->count = 1;
    second->tag = ++world->tags;
    fill_data(second, bytes);
    note_write(second, second->tag);
    send_command(second, bytes);
}

static void send_io(unsigned int h)
{
    struct command *command = new_command(h, random_below(QUEUES));

    if (command == NULL) {
        return;
    }
    switch (random_below(16)) {
    case 0:
        send_copy(command);
        break;
    case 1:
        send_fused(command);
        break;
    case 2:
        send_read(command, NVM_COMPARE);
        break;
    case 3:
        send_without_data(command, NVM_WRITE_ZEROES);
        break;
    case 4:
        send_without_data(command, NVM_DATASET_MANAGEMENT);
        break;
    case 5:
        send_without_data(command, NVM_VERIFY);
        break;
    case 6:
        command->sqe.opcode = NVM_FLUSH;
        command->sqe.nsid = one_in(2) ? NVME_NSID_ALL : 1;
        send_command(command, 0);
        break;
    case 7:
    case 8:
    case 9:
    case 10:
        send_read(command, NVM_READ);
        break;
    default:
        send_write(command);
        break;
    }
}

static void send_create(struct command *command)
{
    static const uint64_t sizes[] = {1 << 20, 2 << 20, 3 << 20, 512 * 77,
                                     4096 * 300};
    uint8_t format = (uint8_t)random_below(2);
    uint64_t blocks = sizes[random_below(5)] >> (format == 0 ? 9 : 12);

    if (one_in(20)) {
        blocks = UINT64_MAX >> random_below(24);
    }
    put_le64(command->data + ID_NS_NSZE, blocks);
    put_le64(command->data + ID_NS_NCAP, blocks);
    command->data[ID_NS_FLBAS] = format;
    command->data[ID_NS_NMIC] = !one_in(3);
    command->sqe.opcode = ADMIN_NS_MANAGEMENT;
    send_command(command, NVME_IDENTIFY_LEN);
}

static void send_attachment(struct command *command)
{
    const struct host *other = &world->host[random_below(HOSTS)];
    const struct nvmf_target *target = world->fake->target;
    uint16_t count = (uint16_t)(one_in(20) ? random_below(2048) : 1);

    put_le16(command->data, count);
    for (uint16_t i = 0; i < 4; i++) {
        uint16_t ctrl =
            other->is_connected ? target->qpair[other->admin].ctrl : NO_CTRL;

        put_le16(command->data + 2 + 2 * i,
                 ctrl != NO_CTRL ? target->ctrl[ctrl].cntlid
                                 : (uint16_t)random_below(65536));
    }
    command->sqe.opcode = ADMIN_NS_ATTACHMENT;
    command->sqe.nsid = 1 + random_below(NAMESPACES / 2);
    command->sqe.cdw10 = one_in(4);
    send_command(command, NVME_IDENTIFY_LEN);
}

static void send_protection(struct command *command)
{
    struct oracle *ns;

    command->sqe.opcode = ADMIN_SET_FEATURES;
    command->sqe.nsid = 1 + random_below(NAMESPACES / 2);
    command->sqe.cdw10 = FEATURE_NS_WRITE_PROTECTION;
    command->sqe.cdw11 = one_in(3);
    ns = &world->ns[command->sqe.nsid - 1];
    command->generation = ns->generation;
    ns->protections_meet |= ns->protections != 0;
    ns->protections++;
    ns->is_protected = false;
    send_command(command, 0);
}

static void send_abort(struct command *command)
{
    const struct command *other = &world->command[random_below(COMMANDS)];

    if (other->request == NULL || other->host != command->host) {
        return;
    }
    command->sqe.opcode = ADMIN_ABORT;
    command->sqe.cdw10 = (uint32_t)other->request->req.sqe.cid << 16 |
                         (other->queue == QUEUES ? 0 : other->queue + 1u);
    send_command(command, 0);
}

/* Get LBA Status: scans, and what is tracked, of all or a few blocks. */
static void send_status(struct command *command, uint32_t nsid)
{
    uint32_t action = one_in(2) ? 0x10 : 0x11;

    command->sqe = fake_admin(ADMIN_GET_LBA_STATUS, nsid,
                              one_in(2) ? 0 : random_below(3000), 0);
    command->sqe.cdw12 = one_in(4) ? random_below(40) : 1023;
    command->sqe.cdw13 = action << 24 | (one_in(2) ? 0 : random_below(2000));
    send_command(command, MIN(command->sqe.cdw12 + 1, 1024u) * 4);
}

static void send_lba_log(struct command *command)
{
    command->sqe = fake_admin(
        ADMIN_GET_LOG_PAGE, 0,
        1023u << 16 | (one_in(2) ? 0 : 1u << 15) | LOG_LBA_STATUS, 0);
    send_command(command, 4096);
}

static void send_admin(unsigned int h)
{
    struct command *command = new_command(h, QUEUES);
    uint32_t nsid =
        one_in(30) ? NVME_NSID_ALL : 1 + random_below(NAMESPACES / 2);

    if (command == NULL) {
        return;
    }
    switch (random_below(15)) {
    case 0:
    case 1:
        send_create(command);
        break;
    case 2:
        command->sqe = fake_admin(ADMIN_NS_MANAGEMENT, nsid, 1, 0); /* delete */
        send_command(command, 0);
        break;
    case 3:
        command->sqe = fake_admin(ADMIN_FORMAT_NVM, nsid, one_in(2), 0);
        send_command(command, 0);
        break;
    case 4:
        send_protection(command);
        break;
    case 5:
        send_abort(command);
        break;
    case 6:
        command->sqe = fake_admin(ADMIN_IDENTIFY, 0, CNS_CONTROLLER, 0);
        send_command(command, NVME_IDENTIFY_LEN);
        break;
    case 7:
    case 8:
        send_status(command, nsid);
        break;
    case 9:
        send_lba_log(command);
        break;
    default:
        send_attachment(command);
        break;
    }
}

/* ---- What happens to the drive. */

static void set_holds(struct fake *fake, bool is_on)
{
    fake->hold_fetch = is_on && !one_in(3);
    fake->hold_send = is_on && !one_in(3);
    fake->hold_done = is_on && !one_in(3);
}

static void run_some(void)
{
    set_holds(world->fake, true);
    fake_run(world->fake);
    set_holds(world->fake, false);
    world->stalled = one_in(100)           ? random_below(60)
                     : world->stalled != 0 ? world->stalled - 1
                                           : 0;
    for (unsigned int i = random_below(world->stalled != 0 ? 2 : 6);
         i > 0 && world->op_count > 0; i--) {
        end_op(random_below(world->op_count), true);
    }
    if (!one_in(3)) {
        (void)volume_step(world->volume);
    }
    reap_commands();
    follow_disconnects();
}

static void cut_power(void)
{
    reap_commands();
    for (unsigned int i = 0; i < world->op_count; i++) {
        const struct media_io *io = &world->ops[i];

        if (io->op != MEDIA_READ && io->op != MEDIA_FLUSH) {
            move_sectors(io, random_below(io->count_blocks + 1));
        }
    }
    for (size_t i = 0; i < COMMANDS; i++) {
        if (world->command[i].request != NULL &&
            world->command[i].qpair != NO_QPAIR) {
            drop_command(&world->command[i]);
        }
        world->command[i].request = NULL;
    }
    world->now++;
    fake_free(world->fake);
    start_drive();
}

static void disturb_host(unsigned int h)
{
    struct host *host = &world->host[h];
    struct nvme_sqe reset = {.fctype = FABRICS_PROPERTY_SET};
    unsigned int q = random_below(QUEUES);

    switch (random_below(8)) {
    case 0:
        close_qpair(host->admin);
        break;
    case 1:
        if (host->io[q] != NO_QPAIR) {
            close_qpair(host->io[q]);
        }
        break;
    case 2: /* a controller reset, or one of the subsystem */
        property_command_build(
            &reset, &(struct property_command){
                        .size_bytes = 4,
                        .offset = one_in(3) ? PROPERTY_NSSR : PROPERTY_CC,
                        .value = NSSR_RESET & ~(uint64_t)CC_EN});
        if (reset.cdw11 == PROPERTY_NSSR) {
            reset.cdw12 = NSSR_RESET;
        }
        reset.psdt = 0;
        if (world->fake->target->qpair[host->admin].state == QPAIR_LIVE) {
            (void)fake_send(world->fake, host->admin, &reset, NULL, 0);
            follow_disconnects();
            if (host->is_connected) {
                close_qpair(host->admin);
            }
        }
        break;
    default:
        break;
    }
}

static void check_idle(void)
{
    const struct nvmf_target *target = world->fake->target;

    assert_int_equal(target->order.count, 0);
    assert_null(target->order.waiting.head);
    assert_int_equal(target->scratch.used, 0);
    assert_null(target->manager.req);
    assert_null(target->lba.scan);
    assert_null(target->lba.waiting.head);
    for (uint32_t i = 0; i < NVMF_MAX_NAMESPACES; i++) {
        assert_int_equal(target->ns[i].users, 0);
    }
    assert_int_equal(world->fake->buffers_out, 0);
}

/* Tracked blocks are in a namespace that there is, whose commands note what
 * they write. */
static void check_tracked(const struct nvmf_target *target)
{
    const struct lba_list *list = &target->lba.list;

    assert_true(list->count <= LBA_LIST_MAX);
    for (uint16_t i = 0; i < list->count; i++) {
        const struct nvmf_ns *ns = &target->ns[list->range[i].nsid - 1];

        assert_int_not_equal(ns->state, NS_FREE);
        assert_true(lba_range_end(&list->range[i]) <= ns->geometry.size_blocks);
        assert_true(ns->caution & CAUTION_TRACKED);
    }
    assert_true(target->lba.waiting.head == NULL || target->lba.scan != NULL);
}

/* What must hold at any time. */
static void check_state(void)
{
    const struct nvmf_target *target = world->fake->target;
    const struct volume_table *table = volume_now(world->volume);
    struct volume_capacity capacity;
    uint64_t owned = 0;

    volume_table_capacity(table, &capacity);
    for (uint32_t i = 0; i < NAMESPACES; i++) {
        unsigned int active = 0;

        owned += table->ns[i].creation != 0
                     ? volume_table_owned_bytes(table, i + 1)
                     : 0;
        for (uint32_t c = 0; c < NVMF_MAX_HOSTS; c++) {
            active += target->ctrl[c].active_ns[i / 32] >> i % 32 & 1;
        }
        assert_true(active == 0 || target->ns[i].state != NS_FREE);
        assert_true(active <= 1 || !target->ns[i].volume.is_private);
    }
    assert_int_equal(owned + capacity.free_bytes, capacity.total_bytes);
    check_tracked(target);
}

/* Nothing may be left of other namespaces, wherever a host might read. */
static void check_medium(void)
{
    const struct volume_table *table = volume_now(world->volume);

    for (uint32_t i = 0; i < NAMESPACES; i++) {
        const struct volume_entry *ns = &table->ns[i];

        for (uint32_t w = 0; w < ns->windows && !ns->is_erasing; w++) {
            uint32_t window = table->list[ns->first_entry + w];
            const uint8_t *at = world->medium + ((size_t)window << 20);
            size_t len = volume_table_window_bytes(table, window);

            for (size_t k = 0; k < len; k += 512) {
                uint32_t found = get_le32(at + k);

                if (found != 0 && found != world->ns[i].generation) {
                    fail_msg("NSID %u has data of generation %u, not %u", i + 1,
                             found, world->ns[i].generation);
                }
            }
        }
    }
}

/* Run until nothing moves any more. */
static void run_all(void)
{
    const struct fake *fake = world->fake;
    bool is_busy = true;

    for (unsigned int i = 0; is_busy; i++) {
        assert_true(i < RUN_STEPS);
        fake_run(world->fake);
        is_busy = world->op_count != 0;
        if (is_busy) {
            end_op(random_below(world->op_count), false);
        }
        is_busy |= volume_step(world->volume);
        reap_commands();
        follow_disconnects();
        is_busy |= fake->fetch_count != 0 || fake->respond_count != 0 ||
                   fake->sending_count != 0;
    }
}

/* Let everything end that is in flight. */
static void settle_hosts(void)
{
    run_all();
    /* Now only first halves of fused pairs wait, for the second ones, and hold
     * nobody up. */
    assert_null(world->fake->target->manager.req);
    for (unsigned int h = 0; h < HOSTS; h++) {
        if (world->host[h].is_connected) {
            close_qpair(world->host[h].admin);
        }
    }
    run_all();
    for (size_t i = 0; i < COMMANDS; i++) {
        const struct command *command = &world->command[i];

        if (command->request != NULL) {
            fail_msg("a command is never answered: opcode %02x, state %u",
                     command->sqe.opcode, command->request->req.state);
        }
    }
    check_idle();
}

static void run_seed(uint64_t seed, unsigned int steps)
{
    world = calloc(1, sizeof(*world));
    world->volume = calloc(1, sizeof(*world->volume));
    world->medium = calloc(SECTORS, 512);
    world->random = seed;
    log_init(&world->log, (struct log_sink){.write = drop_text});
    start_drive();
    for (unsigned int i = 0; i < steps; i++) {
        unsigned int h = random_below(HOSTS);

        world->now++;
        if (!world->host[h].is_connected) {
            if (one_in(2)) {
                connect_host(h);
            }
        } else if (one_in(6)) {
            send_admin(h);
        } else if (one_in(80) || world->host[h].io[0] == NO_QPAIR) {
            disturb_host(h);
        } else {
            send_io(h);
        }
        if (one_in(2)) {
            run_some();
        }
        if (one_in(2000)) {
            cut_power();
        } else if (one_in(400)) {
            settle_hosts();
            check_medium();
        }
        check_state();
    }
    settle_hosts();
    check_medium();
    /* Otherwise this tests little. */
    assert_true(world->successes > steps / 10);
    assert_true(world->drops > steps / 400);
    fake_free(world->fake);
    free(world->medium);
    free(world->volume);
    free(world);
}

/* ATTACK_FIRST and ATTACK_SEEDS in the environment: the first seed, and how
 * many. */
static unsigned int read_number(const char *name, unsigned int otherwise)
{
    const char *text = getenv(name);

    return text != NULL ? (unsigned int)strtoul(text, NULL, 10) : otherwise;
}

static void test_hosts_at_random_lose_and_leak_no_data(void **state)
{
    unsigned int first = read_number("ATTACK_FIRST", 1);
    unsigned int end = first + read_number("ATTACK_SEEDS", SEEDS);

    (void)state;
    for (unsigned int seed = first; seed < end; seed++) {
        print_message("ATTACK_FIRST=%u ATTACK_SEEDS=1 repeats this:\n", seed);
        run_seed(seed, STEPS);
    }
}

TEST_FIXTURE(NULL, NULL)
