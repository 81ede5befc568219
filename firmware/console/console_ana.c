/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/console/console_ana.h"

#include <string.h>

static const char *const refusals[NVMF_ANA_RESULTS] = {
    [NVMF_ANA_OK] = NULL,
    [NVMF_ANA_NO_GROUP] = "There is no such group; choose 1 to 16.",
    [NVMF_ANA_NO_PORT] = "There is no such port; choose 0 or 1.",
    [NVMF_ANA_BAD_TIME] = "A transition takes 10000 ms at most.",
    [NVMF_ANA_LOST] = "Only a start of the drive ends a persistent loss.",
    [NVMF_ANA_ABSENT] = "The data sheet's profile (NVMe 1.2.1) has no ANA.",
};

/* The first and the last group or port that a wish names. */
struct range {
    uint64_t first, last;
};

static struct range range_of(uint64_t wish, uint64_t first, uint64_t last)
{
    return wish == ANA_WISH_ALL ? (struct range){first, last}
                                : (struct range){wish, wish};
}

/* The change that a wish asks for, in the target's words. */
struct change {
    struct range groups, portids;
    enum ana_state state;
    uint32_t ms;
};

static enum nvmf_ana_result check_change(const struct nvmf_target *target,
                                         const struct change *change)
{
    enum nvmf_ana_result result = NVMF_ANA_OK;

    for (uint64_t g = change->groups.first; g <= change->groups.last; g++) {
        for (uint64_t p = change->portids.first; p <= change->portids.last;
             p++) {
            result = nvmf_target_check_ana(target, (uint32_t)g, (uint16_t)p,
                                           change->state, change->ms);
            if (result != NVMF_ANA_OK) {
                return result;
            }
        }
    }
    return result;
}

static void make_change(struct nvmf_target *target, const struct change *change,
                        uint64_t now_us)
{
    for (uint64_t g = change->groups.first; g <= change->groups.last; g++) {
        for (uint64_t p = change->portids.first; p <= change->portids.last;
             p++) {
            nvmf_target_set_ana(target, (uint32_t)g, (uint16_t)p, change->state,
                                change->ms, now_us);
        }
    }
}

static void log_change(struct log *log, const struct ana_wish *wish)
{
    char group[24] = "all groups", port[24] = "both ports";

    if (wish->group != ANA_WISH_ALL) {
        log_format(group, sizeof(group), "group %u", (unsigned)wish->group);
    }
    if (wish->port != ANA_WISH_ALL) {
        log_format(port, sizeof(port), "port %u", (unsigned)wish->port);
    }
    if (wish->transition_ms != 0) {
        log_line(log, "ana: %s at %s: %s, transition of %u ms", group, port,
                 wish->state, (unsigned)wish->transition_ms);
    } else {
        log_line(log, "ana: %s at %s: %s", group, port, wish->state);
    }
}

const char *ana_text_set(struct log *log, struct nvmf_target *target,
                         const struct ana_wish *wish, uint64_t now_us)
{
    struct change change = {
        .groups = range_of(wish->group, 1, NVMF_ANA_GROUPS),
        .portids = range_of(wish->port, 0, NVMF_ANA_PORTS - 1),
        .ms = (uint32_t)MIN(wish->transition_ms, (uint64_t)UINT32_MAX),
    };
    enum nvmf_ana_result result;

    if (!nvmf_ana_by_name(wish->state, &change.state)) {
        return "There is no such state; choose optimized, non-optimized, "
               "inaccessible, persistent-loss or change.";
    }
    if (change.groups.last > NVMF_ANA_GROUPS) {
        return refusals[NVMF_ANA_NO_GROUP];
    }
    if (change.portids.last >= NVMF_ANA_PORTS) {
        return refusals[NVMF_ANA_NO_PORT];
    }
    change.portids.first++; /* port 0 has the port identifier 1 */
    change.portids.last++;
    result = check_change(target, &change);
    if (result == NVMF_ANA_OK) {
        make_change(target, &change, now_us);
        log_change(log, wish);
    }
    return refusals[result];
}

/* Print the groups that are not optimized at both ports. */
static void print_states(struct log *log, const struct nvmf_target *target)
{
    bool is_any = false;

    for (uint32_t g = 1; g <= NVMF_ANA_GROUPS; g++) {
        for (uint16_t p = 0; p < NVMF_ANA_PORTS; p++) {
            enum ana_state state =
                nvmf_target_ana(target, g, (uint16_t)(p + 1));

            if (state != ANA_OPTIMIZED) {
                log_text(log, "group %u at port %u: %s", g, p,
                         nvmf_ana_name(state));
                is_any = true;
            }
        }
    }
    log_text(log, is_any ? "all others: optimized"
                         : "all groups are optimized at both ports");
}

/* @return whether a word is a number, or "all" */
static bool parse_wish(const char *word, uint64_t *wish)
{
    *wish = ANA_WISH_ALL;
    if (strcmp(word, "all") == 0) {
        return true;
    }
    *wish = 0;
    for (; *word >= '0' && *word <= '9' && *wish < 1000000; word++) {
        *wish = *wish * 10 + (uint64_t)(*word - '0');
    }
    return *word == '\0';
}

void console_ana(struct log *log, struct nvmf_target *target, char **words,
                 unsigned int count, uint64_t now_us)
{
    struct ana_wish wish = {0};
    const char *refusal;

    if (count == 1) {
        print_states(log, target);
        return;
    }
    if (count < 4 || !parse_wish(words[1], &wish.group) ||
        !parse_wish(words[2], &wish.port) ||
        (count > 4 && (!parse_wish(words[4], &wish.transition_ms) ||
                       wish.transition_ms == ANA_WISH_ALL))) {
        log_text(log, "error: write: ana GROUP|all PORT|all STATE "
                      "[TRANSITION-MS]");
        return;
    }
    wish.state = words[3];
    refusal = ana_text_set(log, target, &wish, now_us);
    log_text(log, "%s%s", refusal == NULL ? "ok" : "error: ",
             refusal == NULL ? "" : refusal);
}
