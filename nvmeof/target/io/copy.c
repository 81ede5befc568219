/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copy: the drive copies blocks by itself, through a scratch buffer.
 * Spec: NVM Express NVM Command Set 1.0 section 3.2.2.
 *
 * Source ranges are copied one after the other.  A source range that overlaps
 * the destination is read as the ranges before it have left it.
 *
 * Format 2 names the source's namespace in each range.  A host enables it with
 * the feature Host Behavior Support.
 * Spec: NVM Command Set 1.1 section 3.3.2.
 *
 * Left out: descriptor formats 1 and 3 (protection information of 16 bytes).
 */
#include "nvmeof/target/namespaces/namespaces.h"
#include "nvmeof/target/io/io.h"

#include "lib/bytes.h"

enum { /* fields of dword 12 */
       COPY_FORMAT_SHIFT = 8,
       COPY_FUA_BIT = 30,
};

enum { COPY_FORMAT_OTHER_NS = 2 };

enum { /* byte offsets in a source range; the first and SOPT: of format 2 */
       COPY_RANGE_SNSID = 0,
       COPY_RANGE_SOPT = 22,
       COPY_RANGE_SLBA = 8,
       COPY_RANGE_NLB = 16, /* 0's based */
       COPY_RANGE_REF_TAG = 24,
       COPY_RANGE_APP_TAG = 28, /* the tag, then the mask */
       COPY_RANGE_LEN = 32,
};

struct copy_range {
    uint32_t nsid;
    uint16_t options;
    uint64_t first_lba;
    uint32_t count_blocks;
    uint32_t ref_tag; /* of protection information, as dwords 14 and 15 */
    uint32_t app_tags;
};

static uint32_t count_ranges(const struct nvmf_request *req)
{
    return (req->sqe.cdw12 & 0xff) + 1;
}

static uint32_t copy_format(const struct nvmf_request *req)
{
    return req->sqe.cdw12 >> COPY_FORMAT_SHIFT & 0xf;
}

static struct copy_range copy_range(const struct nvmf_request *req, uint32_t i)
{
    bool has_ns = copy_format(req) == COPY_FORMAT_OTHER_NS;
    uint8_t buf[COPY_RANGE_LEN];

    request_read_data(req, i * COPY_RANGE_LEN, buf, sizeof(buf));
    return (struct copy_range){
        .nsid = has_ns ? get_le32(buf + COPY_RANGE_SNSID) : req->sqe.nsid,
        .options = has_ns ? get_le16(buf + COPY_RANGE_SOPT) : 0,
        .first_lba = get_le64(buf + COPY_RANGE_SLBA),
        .count_blocks = get_le16(buf + COPY_RANGE_NLB) + 1u,
        .ref_tag = get_le32(buf + COPY_RANGE_REF_TAG),
        .app_tags = get_le32(buf + COPY_RANGE_APP_TAG),
    };
}

uint16_t copy_check(struct nvmf_target *target, struct nvmf_request *req)
{
    uint16_t status = io_check_level(target, req);

    if (status == NVME_SC_SUCCESS) {
        status = io_check_writable(req);
    }
    if (status == NVME_SC_SUCCESS) {
        status = io_check_directive(req);
    }
    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    if (copy_format(req) != 0 &&
        (copy_format(req) != COPY_FORMAT_OTHER_NS ||
         !(request_ctrl(target, req)->features.copy_formats &
           BIT(COPY_FORMAT_OTHER_NS)))) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW12 + 1, 0);
    }
    if (count_ranges(req) > COPY_MAX_RANGES) {
        return refuse_field(req, NVME_SC_SIZE_LIMIT, SQE_CDW12, 0);
    }
    req->data_len = count_ranges(req) * COPY_RANGE_LEN;
    req->steps = STEPS_UNKNOWN;
    req->chunk = (struct nvmf_chunk){0};
    return NVME_SC_SUCCESS;
}

/*
 * Find the namespace of a source range, and check that the range is in it. What
 * is checked here stays true, because hold_sources() follows.
 *
 * @return a status, or 0
 */
static uint16_t find_source(struct nvmf_target *target,
                            struct nvmf_request *req,
                            const struct copy_range *range, struct nvmf_ns **ns)
{
    uint16_t status;

    *ns = req->ns;
    if (range->nsid != req->sqe.nsid) {
        status = ns_check_source(target, req, range->nsid, ns);
        if (status != NVME_SC_SUCCESS) {
            return status;
        }
    }
    if ((*ns)->geometry.block_shift != req->ns->geometry.block_shift ||
        (*ns)->geometry.has_metadata != req->ns->geometry.has_metadata ||
        (*ns)->geometry.pi_type != req->ns->geometry.pi_type) {
        return refuse_status(NVME_SC_INCOMPATIBLE_NS);
    }
    if ((*ns)->geometry.has_metadata) {
        status =
            protection_check_copy_range(req, range->first_lba, range->ref_tag);
        if (status != NVME_SC_SUCCESS) {
            return status;
        }
    }
    return io_is_in_range(*ns, range->first_lba, range->count_blocks)
               ? NVME_SC_SUCCESS
               : refuse_status(NVME_SC_LBA_RANGE);
}

/* Whether a source range of format 2 overlaps the destination. */
static bool overlaps_destination(const struct nvmf_request *req,
                                 const struct copy_range *range, uint32_t total)
{
    uint64_t to = io_first_lba(&req->sqe);

    return copy_format(req) == COPY_FORMAT_OTHER_NS &&
           range->nsid == req->sqe.nsid && range->first_lba < to + total &&
           to < range->first_lba + range->count_blocks;
}

/* Check all ranges before the first one is copied.  Sets *total to the length
 * of the destination. */
static uint16_t check_ranges(struct nvmf_target *target,
                             struct nvmf_request *req, uint32_t *total)
{
    struct nvmf_ns *ns;
    uint16_t status;

    *total = 0;
    for (uint32_t i = 0; i < count_ranges(req); i++) {
        struct copy_range range = copy_range(req, i);

        *total += range.count_blocks;
        if (range.count_blocks > COPY_MAX_RANGE_BLOCKS ||
            *total > COPY_MAX_BLOCKS) {
            return refuse_status(NVME_SC_SIZE_LIMIT);
        }
        status = find_source(target, req, &range, &ns);
        if (status != NVME_SC_SUCCESS) {
            return status;
        }
        if (range.options != 0) { /* only fast copies, which there are none */
            return refuse_status(NVME_SC_FAST_COPY_IMPOSSIBLE);
        }
    }
    if (!io_is_in_range(req->ns, io_first_lba(&req->sqe), *total)) {
        return refuse_field(req, NVME_SC_LBA_RANGE, SQE_CDW10, 0);
    }
    for (uint32_t i = 0; i < count_ranges(req); i++) {
        struct copy_range range = copy_range(req, i);

        if (overlaps_destination(req, &range, *total)) {
            return refuse_status(NVME_SC_OVERLAPPING_RANGE);
        }
    }
    return NVME_SC_SUCCESS;
}

/* A chunk has been written: continue with the next one. */
static void copy_advance_chunk(struct nvmf_request *req)
{
    struct nvmf_chunk *chunk = &req->chunk;
    uint32_t count = copy_range(req, chunk->range).count_blocks;

    chunk->done += chunk->blocks;
    if (chunk->done == count) {
        chunk->total += count;
        chunk->done = 0;
        chunk->range++;
    }
}

/*
 * The source ranges are valid: keep their namespaces as they are until the
 * command ends, also while it waits for earlier writes or for a scratch buffer.
 * Format, deletion and Sanitize wait for it, as they do for commands whose NSID
 * names the namespace.
 */
static void hold_sources(struct nvmf_target *target, struct nvmf_request *req)
{
    req->holds |= HOLDS_SOURCE;
    for (uint32_t i = 0; i < count_ranges(req); i++) {
        uint32_t nsid = copy_range(req, i).nsid;

        if (nsid != req->sqe.nsid && !copy_reads(req, nsid)) {
            req->chunk.sources[(nsid - 1) / 32] |= BIT((nsid - 1) % 32);
            target->ns[nsid - 1].users++;
        }
    }
}

/* The command reads its source namespaces no more.  Whoever has waited for one
 * of them goes on at once, and must not begin to wait for this command again.
 */
void copy_leave_sources(struct nvmf_target *target, struct nvmf_request *req)
{
    for (uint32_t nsid = 1; nsid <= NVMF_MAX_NAMESPACES; nsid++) {
        struct nvmf_ns *ns = &target->ns[nsid - 1];

        if (copy_reads(req, nsid)) {
            req->chunk.sources[(nsid - 1) / 32] &= ~BIT((nsid - 1) % 32);
            ns->users--;
            if (ns->caution != 0) {
                request_hooks.source_released(target, req, ns);
            }
        }
    }
    req->holds &= (uint8_t)~HOLDS_SOURCE;
}

static uint16_t copy_read_chunk(struct nvmf_target *target,
                                struct nvmf_request *req)
{
    struct copy_range range = copy_range(req, req->chunk.range);
    const struct nvmf_ns *ns = &target->ns[range.nsid - 1];
    struct media_io io = {
        .op = MEDIA_READ,
        .ns = ns->config.media_ns,
        .first_lba = range.first_lba + req->chunk.done,
    };

    if (!scratch_take(target, req)) {
        return NVMF_PENDING;
    }
    req->chunk.blocks =
        scratch_blocks(req, range.count_blocks - req->chunk.done);
    if (ns->geometry.has_metadata) {
        req->chunk.blocks = MIN(req->chunk.blocks, protection_copy_room(req));
    }
    io.count_blocks = req->chunk.blocks;
    return ns->geometry.has_metadata
               ? protection_copy_chunk(target, req, &io, range.ref_tag,
                                       range.app_tags, req->chunk.done)
               : scratch_media(target, req, &io);
}

static uint16_t copy_write_chunk(struct nvmf_target *target,
                                 struct nvmf_request *req)
{
    struct media_io io = {
        .op = MEDIA_WRITE,
        .fua = req->sqe.cdw12 >> COPY_FUA_BIT & 1,
        .ns = req->ns->config.media_ns,
        .first_lba =
            io_first_lba(&req->sqe) + req->chunk.total + req->chunk.done,
        .count_blocks = req->chunk.blocks,
    };

    return req->ns->geometry.has_metadata
               ? protection_copy_chunk(target, req, &io, req->sqe.cdw14,
                                       req->sqe.cdw15,
                                       req->chunk.total + req->chunk.done)
               : scratch_media(target, req, &io);
}

/* Media operations alternate: a chunk is read, then written. */
uint16_t copy_execute(struct nvmf_target *target, struct nvmf_request *req)
{
    bool was_written =
        req->progress != req->chunk.ops && req->progress % 2 == 0;
    uint16_t status;
    uint32_t total;

    if (!(req->holds & HOLDS_SOURCE)) {
        status = check_ranges(target, req, &total);
        if (status != NVME_SC_SUCCESS) {
            return status;
        }
        hold_sources(target, req);
        if (order_is_due(target, req) &&
            !order_enter_list(target, req, io_first_lba(&req->sqe), total)) {
            return NVMF_PENDING;
        }
    }
    req->chunk.ops = req->progress;
    if (was_written) {
        copy_advance_chunk(req);
        scratch_share(target, req);
    }
    if (req->chunk.range == count_ranges(req)) {
        target->counters.host_writes++;
        target->counters.written_blocks_512 +=
            ((uint64_t)req->chunk.total << req->ns->geometry.block_shift) / 512;
        return NVME_SC_SUCCESS;
    }
    return req->progress % 2 == 0 ? copy_read_chunk(target, req)
                                  : copy_write_chunk(target, req);
}

/* The blocks that the current chunk is read from. */
void copy_find_source(const struct nvmf_request *req, uint32_t *nsid,
                      uint64_t *first_lba)
{
    struct copy_range range = copy_range(req, req->chunk.range);

    *nsid = range.nsid;
    *first_lba = range.first_lba + req->chunk.done;
}

/* Dword 0 names the first range that was not copied completely. */
void copy_fail(struct nvmf_target *target, struct nvmf_request *req)
{
    (void)target;
    req->result[0] = req->chunk.range;
}

const struct nvmf_command copy_row = {
    .direction = DATA_TO_CONTROLLER,
    .flags = COMMAND_NEEDS_NS | COMMAND_WRITES | COMMAND_HAS_LBA,
    .check = copy_check,
    .execute = copy_execute,
    .fail = copy_fail,
};
