/* SPDX-License-Identifier: BSD-2-Clause */
#include "storage/volume/reservations.h"

#include <string.h>

/* Whether a host may cause one more write. */
static bool may_save(struct reservations *reservations,
                     const struct reservation_saver *by)
{
    const struct reservations_config *config = &reservations->config;
    uint64_t hours = config->power_on_hours != NULL
                         ? config->power_on_hours(config->hours_ctx)
                         : 0;
    uint64_t allowed =
        RESERVATIONS_WRITES_FREE + hours * RESERVATIONS_WRITES_PER_HOUR;
    uint64_t left =
        allowed > reservations->writes ? allowed - reservations->writes : 0;

    if (by->fences_off) {
        return write_shares_allow(&reservations->fences, by->host, hours, left);
    }
    left -= MIN(left, RESERVATIONS_WRITES_TO_FENCE);
    return write_shares_allow(&reservations->shares, by->host, hours, left);
}

/* Save the draft, which then is what is kept. */
static enum nvmf_volume_result save_draft(struct reservations *reservations,
                                          const struct reservation_saver *by)
{
    const struct reservations_config *config = &reservations->config;
    size_t len;

    if (!may_save(reservations, by)) {
        if (!reservations->has_refused) {
            log_line(config->log,
                     "reservations: a change is refused, because the record in "
                     "flash was written %u times and this host's share is used "
                     "up; %u changes an hour are possible, and any number "
                     "without PTPL",
                     reservations->writes, RESERVATIONS_WRITES_PER_HOUR);
        }
        reservations->has_refused = true;
        return NVMF_VOLUME_TOO_OFTEN;
    }
    reservations->has_refused = false;
    len = reservations_emit(&reservations->draft, reservations->record);
    if (!config->save(config->save_ctx, reservations->record, len)) {
        log_line(config->log, "reservations: writing the record to flash "
                              "failed; nothing has changed");
        return NVMF_VOLUME_FAILED;
    }
    reservations->writes++;
    write_shares_count(by->fences_off ? &reservations->fences
                                      : &reservations->shares,
                       by->host, 1);
    reservations->kept = reservations->draft;
    return NVMF_VOLUME_OK;
}

static enum nvmf_volume_result seam_save(void *ctx, uint32_t nsid,
                                         const uint8_t *uuid,
                                         const struct reservation *res,
                                         const struct reservation_saver *by)
{
    struct reservations *reservations = ctx;
    struct kept_reservation *ns;

    reservations->draft = reservations->kept;
    ns = &reservations->draft.ns[nsid - 1];
    if (!res->ptpl && !ns->is_kept) {
        return NVMF_VOLUME_OK;
    }
    memset(ns, 0, sizeof(*ns));
    if (res->ptpl) {
        ns->is_kept = true;
        ns->state = *res;
        memcpy(ns->uuid, uuid, sizeof(ns->uuid));
    }
    return save_draft(reservations, by);
}

/* Let nobody read or write a namespace before a host has registered.  The next
 * record has this, too. */
static void close_namespace(struct kept_reservation *ns, const uint8_t *uuid)
{
    memset(ns, 0, sizeof(*ns));
    ns->is_kept = true;
    memcpy(ns->uuid, uuid, sizeof(ns->uuid));
    ns->state.ptpl = true;
    ns->state.rtype = RTYPE_EXCLUSIVE_ACCESS_ALL;
}

/* What is kept may be of a deleted namespace that had the same NSID. */
static bool seam_load(void *ctx, uint32_t nsid, const uint8_t *uuid,
                      struct reservation *res)
{
    struct reservations *reservations = ctx;
    struct kept_reservation *ns = &reservations->kept.ns[nsid - 1];

    if (reservations->is_lost) {
        close_namespace(ns, uuid);
    }
    if (!ns->is_kept || memcmp(ns->uuid, uuid, sizeof(ns->uuid)) != 0) {
        return false;
    }
    *res = ns->state;
    return true;
}

/* @return false when the newest record is lost: an older one does not say which
 * hosts were fenced off later */
static bool read_record(struct reservations *reservations)
{
    const struct reservations_config *config = &reservations->config;

    switch (config->state) {
    case VOLUME_RECORD_NONE:
        return true;
    case VOLUME_RECORD_OK:
        return reservations_parse(&reservations->kept, config->record,
                                  config->record_len);
    case VOLUME_RECORD_OLDER:
    case VOLUME_RECORD_DAMAGED:
        break;
    }
    return false;
}

void reservations_init(struct reservations *reservations,
                       const struct reservations_config *config)
{
    memset(reservations, 0, sizeof(*reservations));
    reservations->config = *config;
    reservations->writes = config->writes;
    reservations->is_lost = !read_record(reservations);
    if (reservations->is_lost) {
        memset(&reservations->kept, 0, sizeof(reservations->kept));
        log_line(config->log,
                 "reservations: the newest record in flash is damaged, and may "
                 "have fenced a host off; so no host may read or write a "
                 "shared namespace from 1 to 16 unless it registers there "
                 "(nvme resv-register); when one that has registered clears "
                 "the reservation (nvme resv-release --rrela=1), all hosts may "
                 "again");
    }
    reservations->config.record = NULL;
}

static void close_cut_namespaces(struct reservations *reservations,
                                 const struct volume_table *table)
{
    for (uint32_t i = 0; i < NVMF_RESERVATION_NAMESPACES; i++) {
        const struct volume_entry *ns = &table->ns[i];
        uint8_t uuid[RESERVATIONS_UUID_LEN];

        if (ns->creation != 0 && ns->is_cut && !ns->is_private) {
            identity_namespace_uuid(reservations->config.identity, ns->creation,
                                    uuid);
            close_namespace(&reservations->kept.ns[i], uuid);
        }
    }
}

void reservations_loaded(struct reservations *reservations,
                         const struct volume_table *table)
{
    static const struct reservation_saver drive = {.host = 0};
    enum volume_record state = reservations->config.state;

    if (reservations->is_lost) {
        close_cut_namespaces(reservations, table);
    }
    if (reservations->config.save != NULL &&
        (state == VOLUME_RECORD_OLDER || state == VOLUME_RECORD_DAMAGED)) {
        reservations->draft = reservations->kept;
        (void)save_draft(reservations, &drive);
    }
}

struct nvmf_reservations reservations_seam(struct reservations *reservations)
{
    return (struct nvmf_reservations){
        .ctx = reservations,
        .save = reservations->config.save != NULL ? seam_save : NULL,
        .load = seam_load,
    };
}

struct write_shares *reservations_write_shares(
    struct reservations *reservations)
{
    return &reservations->shares;
}

struct write_shares *reservations_fence_shares(
    struct reservations *reservations)
{
    return &reservations->fences;
}
