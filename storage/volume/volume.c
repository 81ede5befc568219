/* SPDX-License-Identifier: BSD-2-Clause */
#include "storage/volume/volume.h"

#include <string.h>

#include "lib/t10_pi.h"

enum {
    BLOCKS_MAX = 1 << 30, /* of one operation at the medium */
    FORMAT_WRITES = 2,    /* of the table: that it begins, and that it ends */
};

_Static_assert((int)VOLUME_ANA_GROUPS == (int)NVMF_ANA_GROUPS,
               "a namespace can be in each group");

/* ---- The table, and what follows from it. */

/* Whether a namespace's windows are adjacent, in the order of its blocks. */
static bool is_linear(const uint16_t *list, uint16_t windows)
{
    for (uint16_t i = 1; i < windows; i++) {
        if (list[i] != list[0] + i) {
            return false;
        }
    }
    return true;
}

static void update_maps(struct volume *volume)
{
    const struct volume_table *table = &volume->table;

    volume->window_shift = (uint8_t)(table->window_shift - VOLUME_MEDIA_SHIFT);
    for (uint32_t i = 0; i < VOLUME_NAMESPACES; i++) {
        const struct volume_entry *ns = &table->ns[i];

        const uint16_t *list = &table->list[ns->first_entry];

        volume->map[i] = (struct volume_map){
            .is_linear = !volume->is_watched && is_linear(list, ns->windows),
            .base = (uint64_t)list[0] << volume->window_shift,
            .windows = list,
            .shift = ns->creation != 0
                         ? (uint8_t)(ns->block_shift - VOLUME_MEDIA_SHIFT)
                         : 0,
            .size_blocks =
                ns->creation != 0 ? ns->size_bytes >> ns->block_shift : 0,
        };
    }
}

static uint32_t acting_host(const struct volume *volume)
{
    const struct volume_config *config = &volume->config;

    return config->acting_host != NULL ? config->acting_host(config->acting_ctx)
                                       : 0;
}

static uint64_t hours_on(const struct volume *volume)
{
    const struct volume_config *config = &volume->config;

    return config->power_on_hours != NULL
               ? config->power_on_hours(config->hours_ctx)
               : 0;
}

/* How many writes are left for all hosts. */
static uint64_t writes_left(const struct volume *volume)
{
    uint64_t allowed =
        VOLUME_WRITES_FREE + hours_on(volume) * VOLUME_WRITES_PER_HOUR;

    return allowed > volume->writes ? allowed - volume->writes : 0;
}

static bool may_write(struct volume *volume, uint32_t host)
{
    uint64_t left = writes_left(volume);

    return volume->config.acting_host == NULL
               ? left != 0
               : write_shares_allow(&volume->shares, host, hours_on(volume),
                                    left);
}

static struct volume_table *begin_change(struct volume *volume)
{
    volume->draft = volume->table;
    return &volume->draft;
}

/* Save the draft, which then becomes the table, however often it was written.
 */
static enum nvmf_volume_result save_draft(struct volume *volume)
{
    const struct volume_config *config = &volume->config;
    size_t len = volume_record_emit(&volume->draft, volume->record);

    if (config->save == NULL ||
        !config->save(config->save_ctx, volume->record, len)) {
        log_line(config->log, "namespaces: writing the table to flash failed; "
                              "nothing has changed");
        return NVMF_VOLUME_FAILED;
    }
    volume->writes++;
    volume->table = volume->draft;
    update_maps(volume);
    return NVMF_VOLUME_OK;
}

/*
 * As save_draft(), unless the table was written too often for this host.
 *
 * @param writes  that the whole change takes, and for which the host counts now
 */
static enum nvmf_volume_result save_change(struct volume *volume, uint32_t host,
                                           uint32_t writes)
{
    enum nvmf_volume_result result;

    if (!may_write(volume, host)) {
        log_line(volume->config.log,
                 "namespaces: a change is refused, because the table in flash "
                 "was written %u times and this host's share is used up; %u "
                 "changes an hour are possible",
                 volume->writes, VOLUME_WRITES_PER_HOUR);
        return NVMF_VOLUME_TOO_OFTEN;
    }
    result = save_draft(volume);
    if (result == NVMF_VOLUME_OK) {
        write_shares_count(&volume->shares, host, writes);
    }
    return result;
}

/* ---- The start. */

/* A drive without a table: divide it as its owner wants, and save that. */
static void divide_medium(struct volume *volume)
{
    static const struct volume_plan whole = {.block_shift = VOLUME_SHIFT_512};
    const struct volume_config *config = &volume->config;
    const struct volume_plan *plan = config->plan;
    uint64_t medium_bytes = config->medium_blocks << VOLUME_MEDIA_SHIFT;
    struct volume_table *table = &volume->table;

    volume_table_init(table, medium_bytes);
    if (plan != NULL && plan->count != 0) {
        if (volume_table_divide(table, plan)) {
            update_maps(volume);
            begin_change(volume);
            (void)save_draft(volume); /* no host is there yet */
            return;
        }
        log_line(config->log,
                 "namespaces: %u namespaces of %u MiB do not fit into %lu MiB; "
                 "there is one over the whole medium instead",
                 plan->count, plan->size_mib,
                 (unsigned long)(medium_bytes >> 20));
    }
    /* Not saved: until the first change, it has the size of the medium. */
    ASSERT(volume_table_divide(table, &whole));
}

static void report_cut(const struct volume *volume)
{
    for (uint32_t i = 0; i < VOLUME_NAMESPACES; i++) {
        const struct volume_entry *ns = &volume->table.ns[i];

        if (ns->creation != 0 && ns->is_cut) {
            log_line(volume->config.log,
                     "namespaces: namespace %u extends beyond the end of the "
                     "medium, so hosts do not see it; give the drive its "
                     "former medium back",
                     i + 1);
        }
    }
}

static void take_record(struct volume *volume)
{
    const struct volume_config *config = &volume->config;
    uint64_t medium_bytes = config->medium_blocks << VOLUME_MEDIA_SHIFT;
    bool is_known = config->record_state != VOLUME_RECORD_DAMAGED &&
                    volume_record_parse(&volume->table, medium_bytes,
                                        config->record, config->record_len);

    if (!is_known) {
        log_line(config->log,
                 "namespaces: the table in flash is damaged, so the drive has "
                 "no namespaces; restore the flash, or create them again with "
                 "nvme create-ns, which erases the medium");
        volume_table_init(&volume->table, medium_bytes);
        /* Numbers of creations, from which UUIDs follow, are not used twice.
         * The first write created VOLUME_NAMESPACES at most, each later one
         * created one. */
        volume->table.creations = VOLUME_NAMESPACES + config->writes;
        memset(volume->table.state, WINDOW_DIRTY, volume->table.windows);
        volume->erasure_is_off = true; /* until the first creation */
        return;
    }
    if (config->record_state == VOLUME_RECORD_OLDER) {
        log_line(config->log,
                 "namespaces: the newest table in flash is damaged; those of "
                 "an older one are detached and write-protected until a host "
                 "uses nvme attach-ns, and set-feature -f 0x84 --value=0");
        /* So many may have been created by the writes that are lost. */
        volume->table.creations += VOLUME_COPIES;
        volume_table_close(&volume->table);
        volume->erasure_is_off = true; /* until the first creation */
    }
    if (config->plan != NULL && config->plan->count != 0 &&
        volume_plans_differ(config->plan, &volume->table.plan)) {
        log_line(config->log,
                 "namespaces: the setting is not used, because this drive has "
                 "a table of namespaces already; use nvme delete-ns and nvme "
                 "create-ns, or make a new drive");
    }
    report_cut(volume);
}

/* A power cycle ends one kind of write protection.  That is saved, because a
 * later restart without a power cycle must not bring it back. */
static void end_protections(struct volume *volume)
{
    struct volume_table *draft = begin_change(volume);
    bool has_changed = false;

    for (uint32_t i = 0; i < VOLUME_NAMESPACES; i++) {
        if (draft->ns[i].protection == PROTECTION_UNTIL_POWER_CYCLE) {
            draft->ns[i].protection = PROTECTION_NONE;
            has_changed = true;
        }
    }
    if (has_changed && save_draft(volume) != NVMF_VOLUME_OK) {
        volume->table = *draft; /* until the next restart */
    }
}

/* Go on with the first Format, of namespace i + 1 or a later one, that a power
 * cut has interrupted.  A protected namespace is one of an older table. */
static void resume_format(struct volume *volume, uint32_t i)
{
    for (; i < VOLUME_NAMESPACES && volume->job_state == JOB_NONE; i++) {
        const struct volume_entry *ns = &volume->table.ns[i];

        if (ns->creation != 0 && ns->is_erasing && !ns->is_cut &&
            ns->protection == PROTECTION_NONE) {
            log_line(volume->config.log,
                     "namespaces: the Format of namespace %u goes on, which a "
                     "power cut has interrupted",
                     i + 1);
            volume->job_state = JOB_ERASING;
            volume->job = (struct nvmf_volume_job){
                .op = NVMF_VOLUME_FORMAT,
                .nsid = i + 1,
                .block_shift = ns->block_shift,
                .has_metadata = ns->has_metadata,
                .pi_type = ns->pi_type,
                .pi_is_first = ns->pi_is_first,
            };
            volume->is_resumed = true;
            volume->erase_at = 0;
        }
    }
}

static void end_erasure(struct media_owner *owner, enum media_status status);

void volume_init(struct volume *volume, const struct volume_config *config)
{
    memset(volume, 0, sizeof(*volume));
    volume->config = *config;
    volume->writes = config->writes;
    volume->erasure.done = end_erasure;
    if (config->record_state == VOLUME_RECORD_NONE) {
        divide_medium(volume);
    } else {
        take_record(volume);
    }
    if (config->is_power_on) {
        end_protections(volume);
    }
    update_maps(volume);
    resume_format(volume, 0);
    volume->has_work = true;
    /* The caller may free these after this call. */
    volume->config.plan = NULL;
    volume->config.record = NULL;
}

const struct volume_table *volume_now(const struct volume *volume)
{
    return &volume->table;
}

bool volume_format_has_failed(const struct volume *volume, uint32_t nsid)
{
    const struct volume_entry *ns = volume_table_find(&volume->table, nsid);

    return ns != NULL && ns->is_erasing &&
           (volume->job_state != JOB_ERASING || volume->job.nsid != nsid);
}

void volume_geometry(const struct volume *volume, uint32_t ns,
                     struct media_geometry *geometry)
{
    const struct volume_entry *entry;

    if (ns == MEDIA_NS_ALL) {
        *geometry = (struct media_geometry){
            .has_volatile_cache = volume->config.has_cache,
            .can_mark = volume->config.has_metadata,
        };
        return;
    }
    entry = &volume->table.ns[ns];
    *geometry = (struct media_geometry){
        .size_blocks = entry->size_bytes >> entry->block_shift,
        .block_shift = entry->block_shift,
        .has_metadata = entry->has_metadata,
        .pi_type = entry->pi_type,
        .pi_is_first = entry->pi_is_first,
        .is_read_only = entry->protection != PROTECTION_NONE,
        .has_volatile_cache = volume->config.has_cache,
        .can_mark = volume->config.has_metadata,
        .atomic_shift = volume->config.has_metadata ? VOLUME_SHIFT_4096 : 0,
    };
}

/* ---- Watching for the first write. */

void volume_watch_writes(struct volume *volume)
{
    volume->is_watched = true;
    update_maps(volume);
}

void volume_begin_write(struct volume *volume)
{
    const struct volume_config *config = &volume->config;

    volume->is_watched = false;
    update_maps(volume);
    config->write_begins(config->done_ctx);
}

void volume_medium_erased(struct volume *volume)
{
    struct volume_table *table = &volume->table;

    for (uint16_t i = 0; i < table->windows; i++) {
        if (table->state[i] == WINDOW_DIRTY) {
            table->state[i] = WINDOW_CLEAN;
        }
    }
    volume_watch_writes(volume);
}

/* ---- Operations in parts. */

/*
 * The target and the self-test check the range of what they submit, and hold
 * the namespace until it ends.  If one of them is wrong about that, the
 * operation fails: what lies beyond the end belongs to other namespaces.
 */
bool volume_locate(const struct volume *volume, const struct media_io *io,
                   uint64_t *lba, uint32_t *count)
{
    const struct volume_map *map = &volume->map[io->ns];
    uint64_t block = io->first_lba << map->shift;
    uint64_t blocks = (uint64_t)io->count_blocks << map->shift;
    uint64_t first = block >> volume->window_shift;
    uint64_t last = (block + blocks - 1) >> volume->window_shift;
    uint32_t base;

    if (!volume_has_blocks(map, io)) {
        return false;
    }
    base = map->windows[first];
    *lba = ((uint64_t)base << volume->window_shift) |
           (block & ((UINT64_C(1) << volume->window_shift) - 1));
    *count = (uint32_t)blocks;
    return blocks <= UINT32_MAX &&
           (first == last ||
            (last == first + 1 && map->windows[last] == base + 1));
}

/* The number of an operation's blocks that `blocks_512` blocks are. */
static uint32_t to_ns_blocks(const struct media_io *io, uint64_t blocks_512)
{
    return (uint32_t)(io->protection & MEDIA_4096 ? blocks_512 >> 3
                                                  : blocks_512);
}

/* The length of `blocks_512` blocks in the pieces of an operation. */
static uint64_t piece_bytes(const struct media_io *io, uint64_t blocks_512)
{
    uint64_t bytes = blocks_512 << VOLUME_MEDIA_SHIFT;

    return io->protection & MEDIA_INTERLEAVED
               ? bytes + (uint64_t)to_ns_blocks(io, blocks_512) * T10_PI_LEN
               : bytes;
}

/* Set the pieces of the current part: `len` bytes after those that are done. */
static void cut_pieces(struct volume_split *split, uint64_t len)
{
    uint64_t skip = split->from_offset;

    split->io.piece_count = 0;
    for (uint8_t i = 0; i < split->from_count && len > 0; i++) {
        const struct nvmf_piece *piece = &split->from[i];
        uint32_t n;

        if (skip >= piece->len_bytes) {
            skip -= piece->len_bytes;
            continue;
        }
        n = (uint32_t)MIN(piece->len_bytes - skip, len);
        split->pieces[split->io.piece_count] = *piece;
        split->pieces[split->io.piece_count].ptr = (uint8_t *)piece->ptr + skip;
        split->pieces[split->io.piece_count].len_bytes = n;
        split->io.piece_count++;
        skip = 0;
        len -= n;
    }
}

/* The longest part that is in one place, from next_block on. */
static void set_part(struct volume *volume, struct volume_split *split)
{
    const struct volume_map *map = &volume->map[split->ns];
    uint64_t size = UINT64_C(1) << volume->window_shift;
    uint64_t window = split->next_block >> volume->window_shift;
    uint64_t inside = split->next_block & (size - 1);
    uint64_t len = size - inside;
    uint32_t base = map->windows[window];

    for (uint32_t i = 1; len < split->left_blocks && len < BLOCKS_MAX &&
                         map->windows[window + i] == base + i;
         i++) {
        len += size;
    }
    len = MIN(MIN(len, split->left_blocks), (uint64_t)BLOCKS_MAX);
    split->io.first_lba = ((uint64_t)base << volume->window_shift) + inside;
    split->io.count_blocks = (uint32_t)len;
    if (split->from_count != 0) {
        cut_pieces(split, piece_bytes(&split->io, len));
    }
}

static void start_part(struct volume *volume, struct volume_split *split)
{
    const struct volume_config *config = &volume->config;

    split->is_waiting = !config->submit(config->submit_ctx, &split->io);
    volume->has_work |= split->is_waiting;
}

static void end_part(struct media_owner *owner, enum media_status status);

bool volume_submit(struct volume *volume, const struct media_io *io)
{
    const struct volume_config *config = &volume->config;
    uint8_t shift = volume->map[io->ns].shift;
    struct volume_split *split = NULL;

    for (size_t i = 0; i < VOLUME_SPLITS; i++) {
        if (!volume->split[i].is_used) {
            split = &volume->split[i];
            break;
        }
    }
    if (split == NULL) {
        return false;
    }
    *split = (struct volume_split){
        .io = *io,
        .owner.done = end_part,
        .volume = volume,
        .whole = io->owner,
        .ns = io->ns,
        .next_block = io->first_lba << shift,
        .left_blocks = (uint64_t)io->count_blocks << shift,
        .from = io->pieces,
        .from_count = io->piece_count,
    };
    split->io.ns = 0;
    split->io.owner = &split->owner;
    split->io.pieces = split->pieces;
    if (!volume_has_blocks(&volume->map[io->ns], io)) {
        split->is_used = true;
        split->is_refused = true;
        volume->has_work = true;
        return true;
    }
    set_part(volume, split);
    if (!config->submit(config->submit_ctx, &split->io)) {
        return false;
    }
    split->is_used = true;
    return true;
}

static void end_part(struct media_owner *owner, enum media_status status)
{
    struct volume_split *split =
        container_of(owner, struct volume_split, owner);
    struct volume *volume = split->volume;
    uint32_t blocks = split->io.count_blocks;

    split->next_block += blocks;
    split->left_blocks -= blocks;
    split->from_offset += (uint32_t)piece_bytes(&split->io, blocks);
    if ((split->io.protection & MEDIA_PI_TYPE) != 3) {
        split->io.ref_tag += to_ns_blocks(&split->io, blocks);
    }
    if (status == MEDIA_OK && split->left_blocks != 0) {
        split->done_blocks += blocks;
        set_part(volume, split);
        start_part(volume, split);
        return;
    }
    split->is_used = false;
    split->done_blocks += status == MEDIA_OK ? blocks : 0;
    volume->failed_base = to_ns_blocks(&split->io, split->done_blocks);
    media_end(split->whole, status);
    volume->failed_base = 0;
}

/* End an operation that is not in its namespace. */
static void refuse_split(struct volume *volume, struct volume_split *split)
{
    log_line(volume->config.log,
             "namespaces: an operation of %lu blocks of 512 bytes at %lu is "
             "refused, because namespace %u ends before",
             (unsigned long)split->left_blocks,
             (unsigned long)split->next_block, split->ns + 1);
    split->is_used = false;
    media_end(split->whole, MEDIA_LBA_RANGE);
}

/* ---- Erasing. */

/* Erase `count` adjacent windows.  FUA: they are erased when it completes. */
static void erase_run(struct volume *volume, uint32_t first, uint32_t count)
{
    const struct volume_config *config = &volume->config;
    uint64_t most = BLOCKS_MAX >> volume->window_shift;
    struct media_io io = {
        .op = MEDIA_DEALLOCATE,
        .fua = true,
        .first_lba = (uint64_t)first << volume->window_shift,
        .owner = &volume->erasure,
        .number = MEDIA_NO_NUMBER,
    };
    uint64_t bytes = 0;

    count = (uint32_t)MIN((uint64_t)count, MAX(most, 1));
    for (uint32_t i = 0; i < count; i++) {
        bytes += volume_table_window_bytes(&volume->table, first + i);
    }
    io.count_blocks = (uint32_t)(bytes >> VOLUME_MEDIA_SHIFT);
    volume->is_erasing = config->submit(config->submit_ctx, &io);
    volume->erased = first;
    volume->erasing = count;
}

static void end_job(struct volume *volume, enum nvmf_volume_result result)
{
    const struct volume_config *config = &volume->config;
    uint32_t nsid = volume->job.nsid;

    volume->job_state = JOB_NONE;
    if (volume->job.op == NVMF_VOLUME_FORMAT &&
        volume_format_has_failed(volume, nsid)) {
        log_line(config->log,
                 "namespaces: the Format of namespace %u has failed; the "
                 "namespace takes no I/O until it is formatted again (nvme "
                 "format)",
                 nsid);
    }
    if (volume->is_resumed) {
        volume->is_resumed = false;
        if (volume->has_next) {
            volume->has_next = false;
            volume->job = volume->next;
            volume->job_state = JOB_WAITING;
        } else {
            resume_format(volume, nsid);
        }
        config->ns_changed(config->done_ctx, nsid);
    } else {
        config->job_done(config->done_ctx, result, nsid);
    }
}

static void end_erasure(struct media_owner *owner, enum media_status status)
{
    struct volume *volume = container_of(owner, struct volume, erasure);

    volume->is_erasing = false;
    volume->has_work = true;
    if (volume->job_state == JOB_ERASING) {
        volume->erase_at += volume->erasing;
        if (status != MEDIA_OK) {
            end_job(volume, NVMF_VOLUME_FAILED);
        }
        return;
    }
    if (status != MEDIA_OK) {
        log_line(volume->config.log,
                 "namespaces: the medium does not erase what deleted "
                 "namespaces have left; that space stays unused until the "
                 "next create-ns tries again");
        volume->erasure_is_off = true;
        return;
    }
    memset(volume->table.state + volume->erased, WINDOW_CLEAN, volume->erasing);
}

/* ---- Jobs. */

static enum nvmf_volume_result seam_result(enum volume_result result)
{
    static const uint8_t results[] = {
        [VOLUME_OK] = NVMF_VOLUME_OK,
        [VOLUME_NO_CAPACITY] = NVMF_VOLUME_NO_CAPACITY,
        [VOLUME_NO_IDENTIFIER] = NVMF_VOLUME_NO_IDENTIFIER,
        [VOLUME_NO_HOST] = NVMF_VOLUME_NO_HOST,
        [VOLUME_ALREADY] = NVMF_VOLUME_ALREADY,
        [VOLUME_PRIVATE] = NVMF_VOLUME_PRIVATE,
        [VOLUME_NOT_ATTACHED] = NVMF_VOLUME_NOT_ATTACHED,
    };

    return (enum nvmf_volume_result)results[result];
}

static enum nvmf_volume_result create_ns(struct volume *volume)
{
    struct volume_table *draft = begin_change(volume);
    const struct volume_entry entry = {
        .size_bytes = volume->job.size_bytes,
        .block_shift = volume->job.block_shift,
        .has_metadata = volume->job.has_metadata,
        .pi_type = volume->job.pi_type,
        .pi_is_first = volume->job.pi_is_first,
        .is_private = volume->job.is_private,
        .anagrpid = volume->job.anagrpid,
    };
    enum volume_result result =
        volume_table_create(draft, &entry, &volume->job.nsid);

    if (result != VOLUME_OK) {
        return seam_result(result);
    }
    return save_change(volume, volume->job.host, 1);
}

static enum nvmf_volume_result delete_ns(struct volume *volume)
{
    volume_table_delete(begin_change(volume), volume->job.nsid);
    return save_change(volume, volume->job.host, 1);
}

/* Save that a Format has begun, or that it has ended. */
static enum nvmf_volume_result mark_format(struct volume *volume,
                                           bool is_erasing)
{
    struct volume_entry *ns = &begin_change(volume)->ns[volume->job.nsid - 1];

    ns->block_shift = volume->job.block_shift;
    ns->has_metadata = volume->job.has_metadata;
    ns->pi_type = volume->job.pi_type;
    ns->pi_is_first = volume->job.pi_is_first;
    ns->is_erasing = is_erasing;
    /* The end, which the host has paid for at the beginning, is always saved:
     * else the namespace could not be used. */
    return is_erasing ? save_change(volume, volume->job.host, FORMAT_WRITES)
                      : save_draft(volume);
}

/* Whether a Format would leave a namespace without a block.  The target refuses
 * that, and the record of all namespaces could not be read again. */
static bool leaves_no_block(const struct volume *volume)
{
    const struct volume_entry *ns = &volume->table.ns[volume->job.nsid - 1];

    return ns->size_bytes >> volume->job.block_shift == 0;
}

static void run_job(struct volume *volume)
{
    enum nvmf_volume_result result;

    switch (volume->job.op) {
    case NVMF_VOLUME_CREATE:
        end_job(volume, create_ns(volume));
        break;
    case NVMF_VOLUME_DELETE:
        end_job(volume, delete_ns(volume));
        break;
    case NVMF_VOLUME_FORMAT:
        result = leaves_no_block(volume) ? NVMF_VOLUME_FAILED
                                         : mark_format(volume, true);
        if (result != NVMF_VOLUME_OK) {
            end_job(volume, result);
            break;
        }
        volume->job_state = JOB_ERASING;
        volume->erase_at = 0;
        break;
    }
}

/* Erase the next windows of the namespace that is formatted. */
static void go_on_format(struct volume *volume)
{
    const struct volume_entry *ns = &volume->table.ns[volume->job.nsid - 1];
    const uint16_t *list = &volume->table.list[ns->first_entry];
    uint32_t at = volume->erase_at;
    uint32_t count = 1;

    if (at == ns->windows) {
        end_job(volume, mark_format(volume, false));
        return;
    }
    while (at + count < ns->windows && list[at + count] == list[at] + count) {
        count++;
    }
    erase_run(volume, list[at], count);
}

/* @return whether there is more to do at once */
static bool step_jobs(struct volume *volume)
{
    uint32_t first, count;

    if (volume->is_erasing) {
        return false; /* its completion comes */
    }
    if (volume->job_state == JOB_ERASING) {
        go_on_format(volume);
        return true;
    }
    count =
        volume->erasure_is_off
            ? 0
            : volume_table_find_run(&volume->table, WINDOW_DIRTY, 0, &first);
    if (volume->job_state == JOB_WAITING &&
        (count == 0 || volume->job.op != NVMF_VOLUME_CREATE)) {
        run_job(volume);
        return true;
    }
    if (count != 0) {
        erase_run(volume, first, count);
        return true;
    }
    return false;
}

bool volume_step(struct volume *volume)
{
    if (!volume->has_work) {
        return false;
    }
    volume->has_work = false;
    for (size_t i = 0; i < VOLUME_SPLITS; i++) {
        struct volume_split *split = &volume->split[i];

        if (split->is_used && split->is_refused) {
            refuse_split(volume, split);
        } else if (split->is_used && split->is_waiting) {
            start_part(volume, split);
        }
    }
    volume->has_work |= step_jobs(volume);
    return true;
}

/* ---- The seam. */

static void seam_capacity(void *ctx, struct nvmf_volume_capacity *capacity)
{
    const struct volume *volume = ctx;
    struct volume_capacity own;

    volume_table_capacity(&volume->table, &own);
    *capacity = (struct nvmf_volume_capacity){
        .total_bytes = own.total_bytes,
        .free_bytes = own.free_bytes,
        .granularity_bytes = own.window_bytes,
        .has_metadata = volume->config.has_metadata,
    };
}

static bool seam_describe(void *ctx, uint32_t nsid, struct nvmf_volume_ns *ns)
{
    const struct volume *volume = ctx;
    const struct volume_entry *entry = volume_table_find(&volume->table, nsid);

    if (entry == NULL || entry->is_cut) {
        return false;
    }
    *ns = (struct nvmf_volume_ns){
        .media_ns = nsid - 1,
        .owned_bytes = volume_table_owned_bytes(&volume->table, nsid),
        .is_private = entry->is_private,
        .anagrpid = entry->anagrpid,
        .is_erasing = entry->is_erasing,
        .has_failed = volume_format_has_failed(volume, nsid),
        .protection = entry->protection,
    };
    identity_namespace_uuid(volume->config.identity, entry->creation, ns->uuid);
    identity_namespace_nguid(volume->config.identity, entry->creation,
                             ns->nguid);
    return true;
}

static bool seam_is_attached(void *ctx, uint32_t nsid, const char *hostnqn,
                             uint16_t portid)
{
    const struct volume *volume = ctx;

    return volume_table_is_attached(&volume->table, nsid, hostnqn, portid);
}

static void seam_start(void *ctx, const struct nvmf_volume_job *job)
{
    struct volume *volume = ctx;

    volume->has_work = true;
    if (job->op == NVMF_VOLUME_CREATE) {
        volume->erasure_is_off = false;
    }
    if (volume->is_resumed) {
        ASSERT(!volume->has_next);
        volume->next = *job;
        volume->has_next = true;
        return;
    }
    ASSERT(volume->job_state == JOB_NONE);
    volume->job = *job;
    volume->job_state = JOB_WAITING;
}

static enum nvmf_volume_result seam_attach(void *ctx, uint32_t nsid,
                                           const struct nvmf_volume_host *hosts,
                                           uint16_t count, bool attach)
{
    struct volume *volume = ctx;
    struct volume_table *draft = begin_change(volume);

    for (uint16_t i = 0; i < count; i++) {
        enum volume_result result = volume_table_attach(
            draft, nsid, hosts[i].hostnqn, hosts[i].portid, attach);

        if (result != VOLUME_OK) {
            return seam_result(result);
        }
    }
    return save_change(volume, acting_host(volume), 1);
}

static enum nvmf_volume_result seam_protect(void *ctx, uint32_t nsid,
                                            enum nvmf_protection protection)
{
    struct volume *volume = ctx;

    begin_change(volume)->ns[nsid - 1].protection = (uint8_t)protection;
    return save_change(volume, acting_host(volume), 1);
}

struct nvmf_volume volume_seam(struct volume *volume)
{
    return (struct nvmf_volume){
        .ctx = volume,
        .capacity = seam_capacity,
        .describe = seam_describe,
        .is_attached = seam_is_attached,
        .start = seam_start,
        .attach = seam_attach,
        .protect = seam_protect,
    };
}
