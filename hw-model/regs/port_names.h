/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of the counters and of other values in regs/port.h, for people to read.
 * Include that header first.  A name is that of IEEE 802.3 clause 30 or of RFC
 * 2819 if these define one.
 */
#ifndef ESSD_REGS_PORT_NAMES_H
#define ESSD_REGS_PORT_NAMES_H

static const char *const port_counter_name[PORT_COUNTERS] = {
    [PORT_COUNT_FRAMES_RECEIVED_OK] = "aFramesReceivedOK",
    [PORT_COUNT_OCTETS_RECEIVED_OK] = "aOctetsReceivedOK",
    [PORT_COUNT_MULTICAST_RECEIVED_OK] = "aMulticastFramesReceivedOK",
    [PORT_COUNT_BROADCAST_RECEIVED_OK] = "aBroadcastFramesReceivedOK",
    [PORT_COUNT_FCS_ERRORS] = "aFrameCheckSequenceErrors",
    [PORT_COUNT_TOO_LONG] = "aFrameTooLongErrors",
    [PORT_COUNT_FRAMES_TRANSMITTED_OK] = "aFramesTransmittedOK",
    [PORT_COUNT_OCTETS_TRANSMITTED_OK] = "aOctetsTransmittedOK",
    [PORT_COUNT_MULTICAST_TRANSMITTED_OK] = "aMulticastFramesXmittedOK",
    [PORT_COUNT_BROADCAST_TRANSMITTED_OK] = "aBroadcastFramesXmittedOK",
    [PORT_COUNT_PKTS] = "etherStatsPkts",
    [PORT_COUNT_OCTETS] = "etherStatsOctets",
    [PORT_COUNT_UNDERSIZE_PKTS] = "etherStatsUndersizePkts",
    [PORT_COUNT_FRAGMENTS] = "etherStatsFragments",
    [PORT_COUNT_OVERSIZE_PKTS] = "etherStatsOversizePkts",
    [PORT_COUNT_JABBERS] = "etherStatsJabbers",
    [PORT_COUNT_PKTS_64] = "etherStatsPkts64Octets",
    [PORT_COUNT_PKTS_65_127] = "etherStatsPkts65to127Octets",
    [PORT_COUNT_PKTS_128_255] = "etherStatsPkts128to255Octets",
    [PORT_COUNT_PKTS_256_511] = "etherStatsPkts256to511Octets",
    [PORT_COUNT_PKTS_512_1023] = "etherStatsPkts512to1023Octets",
    [PORT_COUNT_PKTS_1024_1518] = "etherStatsPkts1024to1518Octets",
    [PORT_COUNT_PKTS_1519_MAX] = "pkts1519toMaxOctets",
    [PORT_COUNT_RX_FILTERED_ADDRESS] = "rxFilteredAddress",
    [PORT_COUNT_RX_FILTERED_VLAN] = "rxFilteredVlan",
    [PORT_COUNT_RX_RNIC] = "rxRnic",
    [PORT_COUNT_RX_RAW] = "rxRaw",
    [PORT_COUNT_RX_DROPPED] = "rxDropped",
    [PORT_COUNT_TX_RNIC] = "txRnic",
    [PORT_COUNT_TX_RAW] = "txRaw",
    [PORT_COUNT_TX_DROPPED_LINK] = "txDroppedLink",
    [PORT_COUNT_TX_DROPPED_ERROR] = "txDroppedError",
    [PORT_COUNT_LINK_CHANGES] = "linkChanges",
    [PORT_COUNT_FEC_CORRECTED] = "fecCorrectedFrames",
    [PORT_COUNT_FEC_CORRECTED_BLOCKS] = "aFECCorrectedBlocks",
    [PORT_COUNT_FEC_UNCORRECTABLE_BLOCKS] = "aFECUncorrectableBlocks",
    [PORT_COUNT_MAC_CONTROL_RECEIVED] = "aMACControlFramesReceived",
    [PORT_COUNT_UNSUPPORTED_OPCODES] = "aUnsupportedOpcodesReceived",
    [PORT_COUNT_PAUSE_RECEIVED] = "aPAUSEMACCtrlFramesReceived",
    [PORT_COUNT_PFC_RECEIVED] = "ieee8021PfcIndications",
    [PORT_COUNT_RX_ROCE_V1_DROPPED] = "rxRoceV1Dropped",
    [PORT_COUNT_PRIO_PAUSE + 0] = "rxPrio0Pause",
    [PORT_COUNT_PRIO_PAUSE + 1] = "rxPrio1Pause",
    [PORT_COUNT_PRIO_PAUSE + 2] = "rxPrio2Pause",
    [PORT_COUNT_PRIO_PAUSE + 3] = "rxPrio3Pause",
    [PORT_COUNT_PRIO_PAUSE + 4] = "rxPrio4Pause",
    [PORT_COUNT_PRIO_PAUSE + 5] = "rxPrio5Pause",
    [PORT_COUNT_PRIO_PAUSE + 6] = "rxPrio6Pause",
    [PORT_COUNT_PRIO_PAUSE + 7] = "rxPrio7Pause",
    [PORT_COUNT_PRIO_PAUSED_NS + 0] = "txPrio0PausedNs",
    [PORT_COUNT_PRIO_PAUSED_NS + 1] = "txPrio1PausedNs",
    [PORT_COUNT_PRIO_PAUSED_NS + 2] = "txPrio2PausedNs",
    [PORT_COUNT_PRIO_PAUSED_NS + 3] = "txPrio3PausedNs",
    [PORT_COUNT_PRIO_PAUSED_NS + 4] = "txPrio4PausedNs",
    [PORT_COUNT_PRIO_PAUSED_NS + 5] = "txPrio5PausedNs",
    [PORT_COUNT_PRIO_PAUSED_NS + 6] = "txPrio6PausedNs",
    [PORT_COUNT_PRIO_PAUSED_NS + 7] = "txPrio7PausedNs",
    [PORT_COUNT_TX_DROPPED_TIMEOUT] = "txDroppedTimeout",
    [PORT_COUNT_RX_TOE] = "rxToe",
};

/* Of a link that is down. */
static const char *const port_reason_name[PORT_REASONS] = {
    [PORT_REASON_NONE] = "",
    [PORT_REASON_DISABLED] = "disabled",
    [PORT_REASON_CABLE] = "no cable",
    [PORT_REASON_NO_PARTNER] = "no partner",
    [PORT_REASON_SPEED] = "speed mismatch",
    [PORT_REASON_FEC] = "FEC mismatch",
    [PORT_REASON_REMOTE_FAULT] = "remote fault",
};

#endif
