/* SPDX-License-Identifier: BSD-2-Clause */
#include "chapters.h"

/* clang-format off */
/* One line for each file of tests, whose table is conf_tests_NAME. The files of
 * a chapter stand together, and the chapters in the order of the layers. */
#define CHAPTERS(X) \
    X(smoke) \
    X(eth_frame) \
    X(eth_link) \
    X(net_arp) \
    X(net_icmp) \
    X(net_ip) \
    X(net_ip6) \
    X(net_nd) \
    X(net_lldp) \
    X(net_sntp) \
    X(net_mdns) \
    X(net_literal) \
    X(net_lacp) \
    X(tcp_open) \
    X(tcp_data) \
    X(tcp_close) \
    X(tcp_attack) \
    X(tcp_loss) \
    X(tcp_frame) \
    X(tcp_many) \
    X(iwarp_setup) \
    X(iwarp_segment) \
    X(iwarp_limits) \
    X(iwarp_nvme) \
    X(roce_order) \
    X(roce_send) \
    X(roce_rdma) \
    X(roce_header) \
    X(roce_requester) \
    X(cm_half_open) \
    X(cm_req) \
    X(cm_states) \
    X(nvmf_connect) \
    X(nvmf_property) \
    X(nvmf_auth) \
    X(nvmf_data) \
    X(nvmf_life) \
    X(nvmf_more) \
    X(nvmf_pipeline) \
    X(nvmf_literal) \
    X(nvme_identify) \
    X(nvme_namespace) \
    X(nvme_manage) \
    X(nvme_feature) \
    X(nvme_firmware) \
    X(nvme_value) \
    X(nvme_log) \
    X(nvme_page) \
    X(nvme_ana) \
    X(nvme_aer) \
    X(nvme_command) \
    X(nvme_sgl) \
    X(nvme_io) \
    X(nvme_more) \
    X(nvme_copy) \
    X(nvme_protection) \
    X(nvme_uncorrectable) \
    X(nvme_level) \
    X(nvme_reservation) \
    X(nvme_self_test) \
    X(nvme_sanitize) \
    X(nvme_persistent) \
    X(nvme_support) \
    X(nvme_ocp) \
    X(nvme_telemetry) \
    X(nvme_endurance) \
    X(nvme_lba_status) \
    X(aoe_disk) \
    X(aoe_flood) \
    X(limits_budget) \
    X(limits_queue) \
    X(limits_peer) \
    X(limits_more) \
    X(robust_more) \
    X(robust_loss) \
    X(robust_mix) \
    X(robust_vanish) \
    X(robust_cycle) \
    X(robust_hostile) \
    X(nvme_tcp_ic) \
    X(nvme_tcp_connect) \
    X(nvme_tcp_io) \
    X(nvme_tcp_digest) \
    X(nvme_tcp_wrong) \
    X(nvme_tcp_life) \
    X(nvme_tcp_hostile) \
    X(tls_handshake) \
    X(tls_attack) \
    X(tls_record) \
    X(tls_many) \
    X(tls_concat)
/* clang-format on */

#define DECLARE(name) extern const struct conf_tests conf_tests_##name;
CHAPTERS(DECLARE)

#define LIST(name) &conf_tests_##name,
const struct conf_tests *const conf_chapters[] = {CHAPTERS(LIST)};
const unsigned int num_conf_chapters = ARRAY_LEN(conf_chapters);
