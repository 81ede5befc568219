/* SPDX-License-Identifier: BSD-2-Clause */
/* The request for the drive's counters: docs/management.md. */
#include "firmware/requests/mgmt_requests.h"

#include "firmware/drivers/media.h"
#include "firmware/drivers/rnic.h"
#include "firmware/medium/nand_health.h"
#include "firmware/medium/nand_medium.h"
#include "firmware/net/drive_net.h"
#include "firmware/requests/parts.h"
#include "hw-model/regs/rnic.h"
#include "lib/regfields.h"
#include "nvmeof/target/target.h"

/* Bytes of a block in which SMART counts reads and writes. */
enum { COUNTED_BLOCK_BYTES = 512 };

static const char *const media_counter_name[] = {
    [MEDIA_COUNT_READS] = "reads",
    [MEDIA_COUNT_WRITES] = "writes",
    [MEDIA_COUNT_FLUSHES] = "flushes",
    [MEDIA_COUNT_WRITE_ZEROES] = "write-zeroes",
    [MEDIA_COUNT_DEALLOCATES] = "deallocates",
    [MEDIA_COUNT_READ_BLOCKS] = "read-blocks",
    [MEDIA_COUNT_WRITE_BLOCKS] = "write-blocks",
    [MEDIA_COUNT_ERRORS] = "errors",
    [MEDIA_COUNT_CACHE_READS] = "cache-reads",
    [MEDIA_COUNT_CACHE_WRITES] = "cache-writes",
    [MEDIA_COUNT_CACHE_FULL] = "cache-full",
    [MEDIA_COUNT_DESTAGES] = "destages",
    [MEDIA_COUNT_DESTAGED_BLOCKS] = "destaged-blocks",
    [MEDIA_COUNT_DESTAGE_ERRORS] = "destage-errors",
    [MEDIA_COUNT_MEDIUM_READS] = "medium-reads",
    [MEDIA_COUNT_MEDIUM_WRITES] = "medium-writes",
    [MEDIA_COUNT_MEDIUM_FLUSHES] = "medium-flushes",
    [MEDIA_COUNT_CACHE_CORRECTED] = "cache-corrected",
    [MEDIA_COUNT_CACHE_LOST] = "cache-lost",
};
_Static_assert(ARRAY_LEN(media_counter_name) == MEDIA_COUNTERS,
               "every counter of the media engine has a name");

static const char *const nand_counter_name[] = {
    [NAND_COUNT_UNITS_READ] = "units-read",
    [NAND_COUNT_UNITS_PROGRAMMED] = "units-programmed",
    [NAND_COUNT_BLOCKS_ERASED] = "blocks-erased",
    [NAND_COUNT_CORRECTED_BITS] = "corrected-bits",
    [NAND_COUNT_SOFT_READS] = "soft-reads",
    [NAND_COUNT_UNCORRECTABLE] = "uncorrectable",
    [NAND_COUNT_PROGRAM_FAILURES] = "program-failures",
    [NAND_COUNT_ERASE_FAILURES] = "erase-failures",
    [NAND_COUNT_VIOLATIONS] = "violations",
    [NAND_COUNT_SUSPENDS] = "suspends",
};
_Static_assert(ARRAY_LEN(nand_counter_name) == NAND_COUNTERS,
               "every counter of the NAND controller has a name");

static const char *const stack_counter_name[] = {
    [NET_RX_FRAMES] = "received",
    [NET_TX_FRAMES] = "sent",
    [NET_TX_NO_BUFFER] = "unsent-no-buffer",
    [NET_ARP_REPLIES] = "arp-replies",
    [NET_ND_ADVERTS] = "nd-adverts",
    [NET_ECHO_REPLIES] = "echo-replies",
    [NET_ICMP_ERRORS_SENT] = "icmp-errors-sent",
    [NET_ICMP_ERRORS_LIMITED] = "icmp-errors-limited",
    [NET_ICMP_ERRORS_RECEIVED] = "icmp-errors-received",
    [NET_PATH_MTU_NOTED] = "path-mtu-noted",
    [NET_ROUTER_ADVERTS] = "router-adverts",
    [NET_FRAGMENTS_RECEIVED] = "fragments-received",
    [NET_FRAGMENTS_SENT] = "fragments-sent",
    [NET_REASSEMBLED] = "reassembled",
    [NET_UDP_DELIVERED] = "udp-delivered",
    [NET_ETHER_DELIVERED] = "ether-delivered",
    [NET_ADDRESS_CONFLICTS] = "address-conflicts",
    [NET_ADDRESS_REFUSED] = "address-refused",
    [NET_NEIGH_CREATED] = "neigh-created",
    [NET_NEIGH_EVICTED] = "neigh-evicted",
    [NET_NEIGH_REFUSED] = "neigh-refused",
    [NET_NEIGH_FAILED] = "neigh-failed",
    [NET_DROP_SHORT] = "dropped-short",
    [NET_DROP_SOURCE_MAC] = "dropped-source-mac",
    [NET_DROP_ETHERTYPE] = "dropped-ethertype",
    [NET_DROP_ARP_MALFORMED] = "dropped-arp-malformed",
    [NET_DROP_ARP_NOT_OURS] = "dropped-arp-not-ours",
    [NET_DROP_IPV4_HEADER] = "dropped-ipv4-header",
    [NET_DROP_IPV4_OPTIONS] = "dropped-ipv4-options",
    [NET_DROP_IPV6_HEADER] = "dropped-ipv6-header",
    [NET_DROP_IPV6_EXTENSION] = "dropped-ipv6-extension",
    [NET_DROP_IPV6_OPTION] = "dropped-ipv6-option",
    [NET_DROP_FRAGMENT_MALFORMED] = "dropped-fragment-malformed",
    [NET_DROP_FRAGMENT_OVERLAP] = "dropped-fragment-overlap",
    [NET_DROP_FRAGMENT_EVICTED] = "dropped-fragment-evicted",
    [NET_DROP_FRAGMENT_TIMEOUT] = "dropped-fragment-timeout",
    [NET_DROP_SOURCE_IP] = "dropped-source-ip",
    [NET_DROP_NOT_OURS] = "dropped-not-ours",
    [NET_DROP_PROTOCOL] = "dropped-protocol",
    [NET_DROP_ICMP_MALFORMED] = "dropped-icmp-malformed",
    [NET_DROP_ICMP_TYPE] = "dropped-icmp-type",
    [NET_DROP_REDIRECT] = "dropped-redirect",
    [NET_DROP_ECHO_TO_GROUP] = "dropped-echo-to-group",
    [NET_DROP_ND_MALFORMED] = "dropped-nd-malformed",
    [NET_DROP_ND_NOT_OURS] = "dropped-nd-not-ours",
    [NET_DROP_UDP_MALFORMED] = "dropped-udp-malformed",
    [NET_DROP_UDP_CLOSED] = "dropped-udp-closed",
    [NET_DROP_LIMITED] = "dropped-limited",
};
_Static_assert(ARRAY_LEN(stack_counter_name) == NET_COUNTERS,
               "every counter of the network stack has a name");

static const char *const rnic_counter_name[] = {
    [RNIC_COUNT_RX_PACKETS] = "packets-in",
    [RNIC_COUNT_TX_PACKETS] = "packets-out",
    [RNIC_COUNT_RX_BAD_ICRC] = "bad-icrc",
    [RNIC_COUNT_RX_MALFORMED] = "malformed",
    [RNIC_COUNT_RX_NO_QP] = "no-queue-pair",
    [RNIC_COUNT_RX_ADDRESS] = "wrong-address",
    [RNIC_COUNT_RX_KEY] = "wrong-key",
    [RNIC_COUNT_RX_DUPLICATE] = "duplicates",
    [RNIC_COUNT_RX_OUT_OF_ORDER] = "out-of-order",
    [RNIC_COUNT_RX_DROPPED] = "dropped",
    [RNIC_COUNT_TX_NAK_SEQUENCE] = "sequence-naks-out",
    [RNIC_COUNT_TX_NAK_OTHER] = "other-naks-out",
    [RNIC_COUNT_TX_RNR] = "rnr-naks-out",
    [RNIC_COUNT_RX_NAK] = "naks-in",
    [RNIC_COUNT_RX_RNR] = "rnr-naks-in",
    [RNIC_COUNT_TIMEOUTS] = "timeouts",
    [RNIC_COUNT_RETRANSMITTED] = "retransmitted",
    [RNIC_COUNT_CQ_OVERFLOWS] = "cq-overflows",
    [RNIC_COUNT_RX_CNP] = "cnps-in",
    [RNIC_COUNT_RP_CNP_HANDLED] = "cnps-handled",
    [RNIC_COUNT_NP_CNP_SENT] = "cnps-out",
    [RNIC_COUNT_NP_ECN_MARKED] = "ecn-marked-in",
    [RNIC_COUNT_PARITY_ERRORS] = "parity-errors",
};
_Static_assert(ARRAY_LEN(rnic_counter_name) == RNIC_COUNTERS,
               "every counter of the RNIC has a name");

static void put_host_counters(struct json *out,
                              const struct nvmf_counters *counters)
{
    json_number(out, "reads", counters->host_reads);
    json_number(out, "writes", counters->host_writes);
    json_number(out, "read-bytes",
                counters->read_blocks_512 * COUNTED_BLOCK_BYTES);
    json_number(out, "written-bytes",
                counters->written_blocks_512 * COUNTED_BLOCK_BYTES);
    json_number(out, "media-errors", counters->media_errors);
    json_number(out, "error-log-entries", counters->error_log_entries);
}

/* What SMART says of the drive's health now: it is no counter, but those who
 * show "media-errors" have to show it beside. */
static void put_health(struct json *out, const struct nvmf_target *target)
{
    json_number(out, "critical-warning", nvmf_target_critical_warning(target));
}

/* A drive with a NAND array does not use the media engine. */
static void put_media_counters(struct json *out,
                               const struct request_parts *parts)
{
    bool is_used = parts->nand->ftl == NULL;

    json_begin_object(out, "media");
    for (unsigned int i = 0; i < MEDIA_COUNTERS; i++) {
        json_number(
            out, media_counter_name[i],
            is_used ? media_counter_read(parts->media, (enum media_counter)i)
                    : 0);
    }
    json_end_object(out);
}

/* Over the drive's life, as OCP's log page C0h has it. */
static void put_flash_use(struct json *out, struct nand_health *health)
{
    struct nvmf_flash_use use;
    struct usage_flash flash;

    nand_health_read(health, &use);
    nand_health_count(health, &flash);
    json_begin_object(out, "flash");
    json_number(out, "written-bytes", use.written_bytes);
    json_number(out, "read-bytes", use.read_bytes);
    json_number(out, "erased-blocks", flash.erased_blocks);
    json_number(out, "failed-blocks", use.failed_blocks);
    json_number(out, "spare-percent", use.left_percent);
    json_number(out, "free-percent", use.free_percent);
    json_end_object(out);
}

static void put_nand_counters(struct json *out,
                              const struct nand_medium *medium)
{
    const struct ftl_counters *counters = ftl_counters(medium->ftl);

    json_begin_object(out, "ftl");
    json_number(out, "host-units", counters->host_units);
    json_number(out, "rows", counters->rows);
    json_number(out, "units", counters->units);
    json_number(out, "pad-units", counters->pad_units);
    json_number(out, "moved-units", counters->moved_units);
    json_number(out, "map-pages", counters->map_pages);
    json_number(out, "erasures", counters->erasures);
    json_number(out, "scanned-rows", counters->scanned_rows);
    json_number(out, "program-errors", counters->program_errors);
    json_number(out, "erase-errors", counters->erase_errors);
    json_number(out, "read-errors", counters->read_errors);
    json_number(out, "free-superblocks", ftl_free_superblocks(medium->ftl));
    json_number(out, "dead-dies", ftl_dead_dies(medium->ftl));
    json_end_object(out);
    json_begin_object(out, "nand");
    for (unsigned int i = 0; i < NAND_COUNTERS; i++) {
        json_number(out, nand_counter_name[i],
                    nand_counter_read(&medium->nand, (enum nand_counter)i));
    }
    json_end_object(out);
}

/* The connection manager: what it received and what went wrong there. */
static void put_cm_counters(struct json *out, const struct cm_counters *cm)
{
    json_number(out, "requests", cm->received[0]);
    json_number(out, "unexpected", cm->unexpected);
    json_number(out, "duplicates", cm->duplicates);
    json_number(out, "malformed",
                cm->bad_mad + cm->bad_class + cm->bad_attribute);
    json_number(out, "stale", cm->stale);
    json_number(out, "dropped-no-path", cm->no_path);
    json_number(out, "unsent-no-buffer", cm->no_buffer);
    json_number(out, "refused-no-connection", cm->no_conn);
    json_number(out, "retransmitted", cm->retransmits);
    json_number(out, "timeouts", cm->timeouts);
    json_number(out, "restarts", cm->restarts);
}

/* Of both ports: frames that the firmware handles itself, which are all but
 * those of queue pairs. */
static void put_stack_counters(struct json *out, const struct net_stack *stack)
{
    json_begin_object(out, "stack");
    for (unsigned int i = 0; i < NET_COUNTERS; i++) {
        uint64_t count = 0;

        for (uint8_t port = 0; port < NET_PORTS; port++) {
            count += net_stack_counter(stack, port, (enum net_counter)i);
        }
        json_number(out, stack_counter_name[i], count);
    }
    json_end_object(out);
}

bool mgmt_counters(void *ctx, const struct json_args *args, struct json *out,
                   struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;

    (void)args;
    (void)refusal;
    put_host_counters(out, nvmf_target_counters(parts->target));
    put_health(out, parts->target);
    put_media_counters(out, parts);
    if (parts->nand->ftl != NULL) {
        put_flash_use(out, parts->nand_health);
        put_nand_counters(out, parts->nand);
    }
    json_begin_object(out, "rnic");
    for (unsigned int i = 0; i < RNIC_COUNTERS; i++) {
        json_number(out, rnic_counter_name[i],
                    rnic_counter_read(&parts->net->verbs, i));
    }
    json_end_object(out);
    json_begin_object(out, "connection-manager");
    put_cm_counters(out, &parts->net->cm.counters);
    json_end_object(out);
    put_stack_counters(out, &parts->net->stack);
    mgmt_put_tcp_counters(out, parts);
    mgmt_put_iwarp_counters(out, parts);
    mgmt_put_aoe_counters(out, parts);
    return true;
}
