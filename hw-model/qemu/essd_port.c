/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * essd-port: one Ethernet port of the drive; the core is hw-model/port.
 * Reference: docs/hardware/port.md
 *
 * QEMU interface:
 *  + sysbus MMIO region 0: the registers of hw-model/regs/port.h
 *  + sysbus IRQ 0: level, high while an enabled PORT_IRQ_STATUS bit is set
 *  + properties "netdev" and "mac", as for every QEMU network card; the netdev
 *    is the link partner.  "mac" only names the port to people: the firmware
 *    takes its addresses from flash
 *  + property "port": 0 or 1, which port of the drive this is
 *  + link "lag": where RoCE frames go; default: the machine's only essd-lag
 *  + link "dram": the memory region that DMA reaches; default: the machine's
 *    RAM.  Bus addresses begin at SOC_DRAM_BASE
 *  + property "link-up", read-only: the link as both ends see it: the firmware
 *    has it enabled, the cable is plugged (QMP set_link), the far end is
 *    present, and speed and FEC agree.  Each change sends the QMP event
 *    ESSD_PORT_LINK, on which the program that connects two machines sets the
 *    link of the far end's card
 *  + the link partner, all changeable while running: "partner-speed" (10 or
 *    25, in Gb/s; default 25), "partner-fec" ("none", "fc", "rs" or "auto", the
 *    default), "present" (default on), "partner-fault" (default off: it
 *    receives what the drive sends)
 *  + bit errors of the cable, both ways, changeable while running: "ber", a
 *    number from 0 to 0.5, and "seed"; writing either of them restarts the
 *    random sequence
 *  + property "state", read-only: the link, the partner and the counters
 *  + query-rx-filter, as for other cards
 *
 * Everything runs under the big lock, in the threads that essd_data.h names.
 * When the netdev takes no frames, the transmitter stops.  The receiver takes
 * every frame and drops it if the ring is full, as on a wire.  While the
 * machine is stopped, QEMU queues received frames.
 *
 * Not modelled: frame check sequences (netdevs carry none); see also the list
 * in the guide.  Writes to DRAM are not logged as dirty, so a machine must be
 * stopped before it is saved or migrated.
 */
#include "qemu/osdep.h"
#include "essd_port.h"

#include "hw/qdev-properties.h"
#include "hw/sysbus.h"
#include "migration/vmstate.h"
#include "net/net.h"
#include "qapi/error.h"
#include "qapi/qapi-events-essd.h"
#include "qapi/visitor.h"
#include "qemu/module.h"
#include "system/runstate.h"
#include "system/system.h"
#include "trace.h"

#include "essd_batch.h"
#include "essd_core.h"
#include "essd_faults.h"
#include "essd_lag.h"
#include "lib/regfields.h"
#include "hw-model/fault/fault_wire.h"
#include "hw-model/port/hw_port.h"
#include "hw-model/regs/port.h"
#include "hw-model/regs/port_names.h"

/* Most frames taken from the netdev at once. */
enum { PORT_BURST = 32 };

struct EssdPortState {
    SysBusDevice parent_obj;

    EssdCore core;
    Notifier machine_done;
    NICState *nic;
    NICConf conf;
    EssdLagState *lag;
    uint8_t index;
    uint64_t seed; /* of the bit errors */
    EssdDataLink link;
    EssdBatch batch;
    struct hw_port port;
    struct fault_wire faults; /* between the port and the netdev */
    QEMUTimer *faults_timer;
};

/* The environment of the core. */

static void essd_port_run(void *opaque)
{
    EssdPortState *s = opaque;

    hw_port_run(&s->port);
}

static void essd_port_timer(void *opaque)
{
    EssdPortState *s = opaque;

    hw_port_timer(&s->port);
}

static void essd_port_resumed(void *opaque)
{
    EssdPortState *s = opaque;

    if (!s->batch.waits) {
        s->port.link_blocked = 0;
        essd_core_timer_mod(s->faults_timer, 0); /* held frames have room */
    }
}

static void essd_port_rnic_rx(void *ctx, const struct frame_rx *frames,
                              unsigned int n)
{
    EssdPortState *s = ctx;

    if (s->lag) {
        essd_lag_rx(s->lag, s->index, frames, n);
    }
}

static void essd_port_toe_rx(void *ctx, const struct frame_rx *frames,
                             unsigned int n)
{
    EssdPortState *s = ctx;

    if (s->lag) {
        essd_lag_rx_toe(s->lag, s->index, frames, n);
    }
}

static void essd_port_rnic_ready(void *ctx)
{
    EssdPortState *s = ctx;

    if (s->lag) {
        essd_lag_port_ready(s->lag, s->index);
    }
}

static void essd_port_link_changed(void *ctx, bool is_up)
{
    EssdPortState *s = ctx;

    trace_essd_port_link(s->index, is_up);
    /* Who hears of the change may end the other end's link. */
    essd_data_send_now();
    if (s->lag) {
        essd_lag_link_changed(s->lag, s->index, is_up);
    }
    qapi_event_send_essd_port_link(s->index, is_up);
}

/* Transmit. */

static void essd_port_flush(void *opaque, unsigned int at_least)
{
    EssdPortState *s = opaque;

    if (essd_batch_count(&s->batch) >= at_least) {
        essd_batch_flush(&s->batch);
    }
}

static void essd_port_sent(NetClientState *nc, ssize_t ret)
{
    EssdPortState *s = qemu_get_nic_opaque(nc);

    s->batch.waits = false;
    trace_essd_port_tx_ready(s->index);
    essd_batch_flush(&s->batch);
    if (runstate_is_running() && !s->batch.waits) {
        essd_data_enter();
        if (!fault_wire_is_idle(&s->faults)) {
            fault_wire_timer(&s->faults);
        }
        hw_port_link_ready(&s->port);
        essd_data_leave();
    }
}

/* Send as many frames as the netdev takes. */
static unsigned int essd_port_netdev_send(EssdPortState *s,
                                          const struct frame_tx *burst,
                                          unsigned int count)
{
    unsigned int sent = essd_batch_add(&s->batch, burst, count);

    if (!essd_data_is_inside()) {
        essd_batch_flush(&s->batch);
    }
    trace_essd_port_tx(s->index, sent, count);
    return sent;
}

static unsigned int essd_port_link_send(void *ctx, const struct frame_tx *burst,
                                        unsigned int count)
{
    EssdPortState *s = ctx;

    return fault_wire_is_idle(&s->faults)
               ? essd_port_netdev_send(s, burst, count)
               : fault_wire_tx(&s->faults, burst, count);
}

/* Receive. */

static void essd_port_take(EssdPortState *s, const struct frame_rx *frames,
                           unsigned int n)
{
    if (fault_wire_is_idle(&s->faults)) {
        hw_port_rx(&s->port, frames, n);
    } else {
        fault_wire_rx(&s->faults, frames, n);
    }
}

static bool essd_port_can_receive(NetClientState *nc)
{
    return runstate_is_running();
}

static ssize_t essd_port_receive(NetClientState *nc, const uint8_t *buf,
                                 size_t size)
{
    EssdPortState *s = qemu_get_nic_opaque(nc);
    struct frame_rx frame = {.data = buf, .len_bytes = size};

    trace_essd_port_rx(s->index, size);
    essd_port_take(s, &frame, 1);
    return size;
}

/* Pass the whole burst to the core in one call. */
static int essd_port_receive_burst(NetClientState *nc, const NetFrame *frames,
                                   int count)
{
    EssdPortState *s = qemu_get_nic_opaque(nc);
    struct frame_rx burst[PORT_BURST];
    int n;

    for (n = 0; n < MIN(count, PORT_BURST) && frames[n].iovcnt == 1; n++) {
        const struct iovec *iov = frames[n].iov;

        trace_essd_port_rx(s->index, iov->iov_len);
        burst[n] =
            (struct frame_rx){.data = iov->iov_base, .len_bytes = iov->iov_len};
    }
    essd_port_take(s, burst, n);
    return n;
}

static void essd_port_link_status_changed(NetClientState *nc)
{
    EssdPortState *s = qemu_get_nic_opaque(nc);

    if (!nc->peer || nc->link_down) {
        fault_wire_clear(&s->faults);
        essd_batch_clear(&s->batch);
    }
    hw_port_set_cable(&s->port, nc->peer && !nc->link_down);
}

/* The environment of the wire faults. */

static void essd_port_faults_receive(void *ctx, const struct frame_rx *frames,
                                     unsigned int n)
{
    EssdPortState *s = ctx;

    hw_port_rx(&s->port, frames, n);
}

static bool essd_port_faults_has_room(void *ctx)
{
    EssdPortState *s = ctx;

    return !s->batch.waits;
}

static void essd_port_faults_send(void *ctx, const struct frame_tx *frame)
{
    EssdPortState *s = ctx;

    essd_port_netdev_send(s, frame, 1);
}

static void essd_port_faults_set_timer(void *ctx, uint64_t deadline_ns)
{
    EssdPortState *s = ctx;

    essd_core_timer_mod(s->faults_timer, deadline_ns);
}

static void essd_port_faults_timer(void *opaque)
{
    EssdPortState *s = opaque;

    fault_wire_timer(&s->faults);
}

/* query-rx-filter. */

static char *essd_port_mac_text(const uint32_t *words)
{
    uint8_t mac[6];

    stw_be_p(mac, words[1]);
    stl_be_p(mac + 2, words[0]);
    return qemu_mac_strdup_printf(mac);
}

static strList *essd_port_mac_list(const uint32_t *table, unsigned entries)
{
    strList *list = NULL;

    for (unsigned i = entries; i-- > 0;) {
        if (FIELD_GET(table[2 * i + 1], PORT_MAC_HI, VALID)) {
            QAPI_LIST_PREPEND(list, essd_port_mac_text(&table[2 * i]));
        }
    }
    return list;
}

static intList *essd_port_vlan_list(const uint32_t *table)
{
    intList *list = NULL;

    for (int vlan = 32 * PORT_VLAN_WORDS; vlan-- > 0;) {
        if (table[vlan / 32] >> (vlan % 32) & 1) {
            QAPI_LIST_PREPEND(list, vlan);
        }
    }
    return list;
}

static RxFilterInfo *essd_port_query_rx_filter(NetClientState *nc)
{
    EssdPortState *s = qemu_get_nic_opaque(nc);
    RxFilterInfo *info = g_new0(RxFilterInfo, 1);
    uint32_t ctrl = s->port.ctrl;

    info->name = g_strdup(nc->name);
    info->promiscuous = FIELD_GET(ctrl, PORT_CTRL, UNICAST_ALL);
    info->unicast = info->promiscuous ? RX_STATE_ALL : RX_STATE_NORMAL;
    info->multicast = FIELD_GET(ctrl, PORT_CTRL, MULTICAST_ALL)
                          ? RX_STATE_ALL
                          : RX_STATE_NORMAL;
    if (!s->port.link_up || !FIELD_GET(ctrl, PORT_CTRL, RX_ENABLE)) {
        info->unicast = RX_STATE_NONE;
        info->multicast = RX_STATE_NONE;
    }
    info->broadcast_allowed = info->unicast != RX_STATE_NONE;
    info->vlan = FIELD_GET(ctrl, PORT_CTRL, VLAN_FILTER) ? RX_STATE_NORMAL
                                                         : RX_STATE_ALL;
    info->main_mac = essd_port_mac_text(s->port.mac);
    info->unicast_table = essd_port_mac_list(s->port.mac, PORT_MACS);
    info->multicast_table =
        essd_port_mac_list(s->port.multicast, PORT_MULTICASTS);
    info->vlan_table = essd_port_vlan_list(s->port.vlan);
    return info;
}

static NetClientInfo essd_port_net_info = {
    .type = NET_CLIENT_DRIVER_NIC,
    .size = sizeof(NICState),
    .can_receive = essd_port_can_receive,
    .receive = essd_port_receive,
    .receive_burst = essd_port_receive_burst,
    .link_status_changed = essd_port_link_status_changed,
    .query_rx_filter = essd_port_query_rx_filter,
};

/* Registers. */

static bool essd_port_read(void *opaque, uint64_t offset, uint32_t *value)
{
    EssdPortState *s = opaque;

    return hw_port_read(&s->port, offset, value);
}

static bool essd_port_write(void *opaque, uint64_t offset, uint32_t value)
{
    EssdPortState *s = opaque;

    return hw_port_write(&s->port, offset, value);
}

static const EssdCoreOps essd_port_core_ops = {
    .type = TYPE_ESSD_PORT,
    .size = SOC_PORT_SIZE,
    .has_dma = true,
    .has_irq = true,
    .thread = ESSD_CORE_DATA,
    .read = essd_port_read,
    .write = essd_port_write,
    .run = essd_port_run,
    .timer = essd_port_timer,
    .resumed = essd_port_resumed,
};

/* Creation, reset and migration. */

static void essd_port_reset_hold(Object *obj, ResetType type)
{
    EssdPortState *s = ESSD_PORT(obj);

    essd_core_cancel(&s->core);
    hw_port_reset(&s->port);
}

/* The aggregation block is created after the ports. */
static void essd_port_machine_done(Notifier *notifier, void *data)
{
    EssdPortState *s = container_of(notifier, EssdPortState, machine_done);

    if (!s->lag) {
        Object *lag = object_resolve_path_type("", TYPE_ESSD_LAG, NULL);

        s->lag = lag ? ESSD_LAG(lag) : NULL;
    }
    if (s->lag) {
        essd_lag_attach_port(s->lag, s->index,
                             &(struct frame_sink){
                                 .ctx = &s->port,
                                 .send = hw_port_tx,
                                 .paused = &s->port.held,
                             },
                             &s->port.link_up);
    }
}

static void essd_port_join_data_path(EssdPortState *s)
{
    s->batch.nc = qemu_get_queue(s->nic);
    s->batch.sent = essd_port_sent;
    s->link = (EssdDataLink){
        .nc = qemu_get_queue(s->nic),
        .flush = essd_port_flush,
        .opaque = s,
    };
    essd_data_add_link(&s->link);
}

static void essd_port_realize(DeviceState *dev, Error **errp)
{
    EssdPortState *s = ESSD_PORT(dev);
    /* The properties have set it. */
    struct phy_partner partner = s->port.partner;
    uint64_t ber_atto = s->port.lane_rx.ber_atto;

    if (s->index >= SOC_PORTS) {
        error_setg(errp, "essd-port: \"port\" has to be 0 or 1, not %u",
                   s->index);
        return;
    }
    snprintf(s->core.name, sizeof(s->core.name), TYPE_ESSD_PORT " %u",
             s->index);
    if (!essd_core_realize(&s->core, errp)) {
        return;
    }
    qemu_macaddr_default_if_unset(&s->conf.macaddr);
    s->nic = qemu_new_nic(&essd_port_net_info, &s->conf, TYPE_ESSD_PORT,
                          dev->id, &dev->mem_reentrancy_guard, s);
    qemu_format_nic_info_str(qemu_get_queue(s->nic), s->conf.macaddr.a);
    hw_port_init(&s->port, &(struct hw_port_config){
                               .env = essd_core_env(&s->core),
                               .ops =
                                   {
                                       .ctx = s,
                                       .rnic_rx = essd_port_rnic_rx,
                                       .toe_rx = essd_port_toe_rx,
                                       .rnic_ready = essd_port_rnic_ready,
                                       .link_changed = essd_port_link_changed,
                                   },
                               .link = {.ctx = s, .send = essd_port_link_send},
                               .index = s->index,
                           });
    hw_port_set_partner(&s->port, &partner);
    hw_port_set_errors(&s->port, s->seed, ber_atto);
    s->faults_timer =
        timer_new_ns(QEMU_CLOCK_VIRTUAL, essd_port_faults_timer, s);
    fault_wire_init(&s->faults, &(struct fault_wire_config){
                                    .table = essd_faults_table(),
                                    .port = s->index,
                                    .ctx = s,
                                    .receive = essd_port_faults_receive,
                                    .has_room = essd_port_faults_has_room,
                                    .send = essd_port_faults_send,
                                    .now_ns = essd_core_now_ns,
                                    .set_timer = essd_port_faults_set_timer,
                                    .power_cut = essd_faults_power_cut,
                                });
    essd_port_link_status_changed(qemu_get_queue(s->nic));
    essd_port_join_data_path(s);
    s->machine_done.notify = essd_port_machine_done;
    qemu_add_machine_init_done_notifier(&s->machine_done);
}

static void essd_port_unrealize(DeviceState *dev)
{
    EssdPortState *s = ESSD_PORT(dev);

    qemu_remove_machine_init_done_notifier(&s->machine_done);
    essd_core_unrealize(&s->core);
    timer_free(s->faults_timer);
    essd_data_remove_link(&s->link);
    qemu_del_nic(s->nic);
}

static bool essd_port_get_link_up(Object *obj, Error **errp)
{
    return ESSD_PORT(obj)->port.link_up;
}

/* The link partner. */

static const char *const essd_port_fec_name[] = {
    [PORT_FEC_NONE] = "none",
    [PORT_FEC_FC] = "fc",
    [PORT_FEC_RS] = "rs",
    [PHY_PARTNER_AUTO] = "auto",
};

static void essd_port_set_partner(EssdPortState *s,
                                  const struct phy_partner *partner)
{
    if (DEVICE(s)->realized) {
        hw_port_set_partner(&s->port, partner);
    } else {
        s->port.partner = *partner;
    }
}

static void essd_port_set_errors(EssdPortState *s, uint64_t ber_atto)
{
    if (DEVICE(s)->realized) {
        hw_port_set_errors(&s->port, s->seed, ber_atto);
    } else {
        s->port.lane_rx.ber_atto = ber_atto;
    }
}

static void essd_port_get_speed(Object *obj, Visitor *v, const char *name,
                                void *opaque, Error **errp)
{
    uint32_t gbps = ESSD_PORT(obj)->port.partner.speed_mbps / 1000;

    visit_type_uint32(v, name, &gbps, errp);
}

static void essd_port_set_speed(Object *obj, Visitor *v, const char *name,
                                void *opaque, Error **errp)
{
    EssdPortState *s = ESSD_PORT(obj);
    struct phy_partner partner = s->port.partner;
    uint32_t gbps;

    if (!visit_type_uint32(v, name, &gbps, errp)) {
        return;
    }
    if (gbps != 10 && gbps != 25) {
        error_setg(errp, "\"%s\" has to be 10 or 25, not %u", name, gbps);
        return;
    }
    partner.speed_mbps = gbps * 1000;
    essd_port_set_partner(s, &partner);
}

static char *essd_port_get_partner_fec(Object *obj, Error **errp)
{
    return g_strdup(essd_port_fec_name[ESSD_PORT(obj)->port.partner.fec]);
}

static void essd_port_set_partner_fec(Object *obj, const char *value,
                                      Error **errp)
{
    EssdPortState *s = ESSD_PORT(obj);
    struct phy_partner partner = s->port.partner;

    for (unsigned i = 0; i < ARRAY_SIZE(essd_port_fec_name); i++) {
        if (g_str_equal(value, essd_port_fec_name[i])) {
            partner.fec = i;
            essd_port_set_partner(s, &partner);
            return;
        }
    }
    error_setg(errp,
               "\"partner-fec\" has to be none, fc, rs or auto, not \"%s\"",
               value);
}

static bool essd_port_get_present(Object *obj, Error **errp)
{
    return ESSD_PORT(obj)->port.partner.is_present;
}

static void essd_port_set_present(Object *obj, bool value, Error **errp)
{
    EssdPortState *s = ESSD_PORT(obj);
    struct phy_partner partner = s->port.partner;

    partner.is_present = value;
    essd_port_set_partner(s, &partner);
}

static bool essd_port_get_fault(Object *obj, Error **errp)
{
    return ESSD_PORT(obj)->port.partner.has_fault;
}

static void essd_port_set_fault(Object *obj, bool value, Error **errp)
{
    EssdPortState *s = ESSD_PORT(obj);
    struct phy_partner partner = s->port.partner;

    partner.has_fault = value;
    essd_port_set_partner(s, &partner);
}

static void essd_port_get_ber(Object *obj, Visitor *v, const char *name,
                              void *opaque, Error **errp)
{
    double ber = (double)ESSD_PORT(obj)->port.lane_rx.ber_atto / FEC_BER_ONE;

    visit_type_number(v, name, &ber, errp);
}

static void essd_port_set_ber(Object *obj, Visitor *v, const char *name,
                              void *opaque, Error **errp)
{
    double ber;

    if (!visit_type_number(v, name, &ber, errp)) {
        return;
    }
    if (!(ber >= 0 && ber <= 0.5)) {
        error_setg(errp, "\"%s\" has to be a number from 0 to 0.5", name);
        return;
    }
    essd_port_set_errors(ESSD_PORT(obj), (uint64_t)(ber * FEC_BER_ONE + 0.5));
}

static void essd_port_get_seed(Object *obj, Visitor *v, const char *name,
                               void *opaque, Error **errp)
{
    visit_type_uint64(v, name, &ESSD_PORT(obj)->seed, errp);
}

static void essd_port_set_seed(Object *obj, Visitor *v, const char *name,
                               void *opaque, Error **errp)
{
    EssdPortState *s = ESSD_PORT(obj);

    if (visit_type_uint64(v, name, &s->seed, errp)) {
        essd_port_set_errors(s, s->port.lane_rx.ber_atto);
    }
}

/* All state at once, for people and programs that observe the port. */

static bool essd_port_visit_str(Visitor *v, const char *name, const char *text,
                                Error **errp)
{
    g_autofree char *copy = g_strdup(text);

    return visit_type_str(v, name, &copy, errp);
}

static bool essd_port_visit_counters(Visitor *v, EssdPortState *s, Error **errp)
{
    if (!visit_start_struct(v, "counters", NULL, 0, errp)) {
        return false;
    }
    for (unsigned i = 0; i < PORT_COUNTERS; i++) {
        if (!visit_type_uint64(v, port_counter_name[i], &s->port.counters[i],
                               errp)) {
            return false;
        }
    }
    visit_end_struct(v, NULL);
    return true;
}

static void essd_port_get_state(Object *obj, Visitor *v, const char *name,
                                void *opaque, Error **errp)
{
    EssdPortState *s = ESSD_PORT(obj);
    struct phy_link link = hw_port_link(&s->port);
    uint32_t ctrl = s->port.link_ctrl;
    uint32_t speed = FIELD_GET(ctrl, PORT_LINK_CTRL, SPEED_MBPS) / 1000;
    const char *fec = essd_port_fec_name[FIELD_GET(ctrl, PORT_LINK_CTRL, FEC)];
    bool up = link.reason == PORT_REASON_NONE;

    if (!visit_start_struct(v, name, NULL, 0, errp)) {
        return;
    }
    if (visit_type_bool(v, "up", &up, errp) &&
        visit_type_uint32(v, "speed", &speed, errp) &&
        essd_port_visit_str(v, "fec", fec, errp) &&
        essd_port_visit_str(v, "fec-in-use",
                            up ? essd_port_fec_name[link.fec] : "", errp) &&
        essd_port_visit_str(v, "reason", port_reason_name[link.reason], errp) &&
        visit_type_bool(v, "signal", &link.has_signal, errp) &&
        visit_type_bool(v, "local-fault", &link.has_local_fault, errp) &&
        visit_type_bool(v, "remote-fault", &link.has_remote_fault, errp) &&
        essd_port_visit_counters(v, s, errp)) {
        visit_type_uint64(v, "partner-lost", &s->port.partner_lost, errp);
    }
    visit_end_struct(v, NULL);
}

static void essd_port_init(Object *obj)
{
    EssdPortState *s = ESSD_PORT(obj);

    s->port.partner = (struct phy_partner){
        .speed_mbps = 25000,
        .fec = PHY_PARTNER_AUTO,
        .is_present = true,
    };
    essd_core_init(&s->core, SYS_BUS_DEVICE(obj), &essd_port_core_ops, s);
}

struct mdio_bus essd_port_mdio(EssdPortState *s)
{
    return (struct mdio_bus){.ctx = &s->port, .frame = hw_port_mdio};
}

/* The cable and the netdev are those of the new machine, not the saved ones. */
static int essd_port_post_load(void *opaque, int version_id)
{
    EssdPortState *s = opaque;

    s->port.link_blocked = s->batch.waits;
    if (!hw_port_loaded(&s->port)) {
        return -EINVAL;
    }
    essd_port_link_status_changed(qemu_get_queue(s->nic));
    return 0;
}

static const VMStateDescription essd_port_vmstate = {
    .name = TYPE_ESSD_PORT,
    .version_id = 6,
    .minimum_version_id = 6,
    .post_load = essd_port_post_load,
    .fields = (const VMStateField[]){
        VMSTATE_UINT32(port.ctrl, EssdPortState),
        VMSTATE_UINT32(port.mtu, EssdPortState),
        VMSTATE_UINT32(port.link_ctrl, EssdPortState),
        VMSTATE_UINT32(port.irq_status, EssdPortState),
        VMSTATE_UINT32(port.irq_enable, EssdPortState),
        VMSTATE_UINT32(port.pause, EssdPortState),
        VMSTATE_UINT32(port.tx_timeout_ms, EssdPortState),
        VMSTATE_UINT32_ARRAY(port.mac, EssdPortState, 2 * HW_PORT_MACS),
        VMSTATE_UINT32_ARRAY(port.multicast, EssdPortState,
                             2 * HW_PORT_MULTICASTS),
        VMSTATE_UINT32_ARRAY(port.vlan, EssdPortState, HW_PORT_VLAN_WORDS),
        VMSTATE_UINT32_ARRAY(port.page, EssdPortState, 2),
        VMSTATE_UINT32_ARRAY(port.rx, EssdPortState, 2),
        VMSTATE_UINT32_ARRAY(port.tx, EssdPortState, 2),
        VMSTATE_UINT32(port.ring_sizes, EssdPortState),
        VMSTATE_UINT8(port.rings_on, EssdPortState),
        VMSTATE_UINT64(port.page_addr, EssdPortState),
        VMSTATE_UINT64(port.rx_addr, EssdPortState),
        VMSTATE_UINT64(port.tx_addr, EssdPortState),
        VMSTATE_UINT32(port.rx_mask, EssdPortState),
        VMSTATE_UINT32(port.tx_mask, EssdPortState),
        VMSTATE_UINT32(port.rx_pi, EssdPortState),
        VMSTATE_UINT32(port.tx_ci, EssdPortState),
        VMSTATE_UINT8(port.has_cable, EssdPortState),
        VMSTATE_UINT8(port.link_up, EssdPortState),
        VMSTATE_UINT8(port.reason, EssdPortState),
        VMSTATE_UINT32(port.partner.speed_mbps, EssdPortState),
        VMSTATE_UINT8(port.partner.fec, EssdPortState),
        VMSTATE_UINT8(port.partner.is_present, EssdPortState),
        VMSTATE_UINT8(port.partner.has_fault, EssdPortState),
        VMSTATE_UINT64(seed, EssdPortState),
        VMSTATE_UINT64(port.lane_rx.random, EssdPortState),
        VMSTATE_UINT64(port.lane_rx.gap_bits, EssdPortState),
        VMSTATE_UINT64(port.lane_rx.ber_atto, EssdPortState),
        VMSTATE_UINT64(port.lane_tx.random, EssdPortState),
        VMSTATE_UINT64(port.lane_tx.gap_bits, EssdPortState),
        VMSTATE_UINT64(port.lane_tx.ber_atto, EssdPortState),
        VMSTATE_UINT8(port.tx_is_sound, EssdPortState),
        VMSTATE_UINT64(port.partner_lost, EssdPortState),
        VMSTATE_UINT16_ARRAY(port.mdio_reg, EssdPortState, HW_PORT_MMDS),
        VMSTATE_UINT8(port.mdio_low, EssdPortState),
        VMSTATE_UINT8(port.raw_waiting, EssdPortState),
        VMSTATE_UINT8(port.rnic_waiting, EssdPortState),
        VMSTATE_UINT8(port.rnic_priority, EssdPortState),
        VMSTATE_UINT8(port.rnic_turn, EssdPortState),
        VMSTATE_UINT8(port.paused, EssdPortState),
        VMSTATE_UINT8(port.pause_expired, EssdPortState),
        VMSTATE_UINT64_ARRAY(port.pause_until_ns, EssdPortState,
                             HW_PORT_PRIORITIES),
        VMSTATE_UINT64_ARRAY(port.pause_since_ns, EssdPortState,
                             HW_PORT_PRIORITIES),
        VMSTATE_UINT64_ARRAY(port.pause_begin_ns, EssdPortState,
                             HW_PORT_PRIORITIES),
        VMSTATE_UINT64(port.tx_ahead, EssdPortState),
        VMSTATE_UINT32(port.counter_high, EssdPortState),
        VMSTATE_UINT64_ARRAY(port.counters, EssdPortState, HW_PORT_COUNTERS),
        VMSTATE_END_OF_LIST()}};

static const Property essd_port_properties[] = {
    DEFINE_NIC_PROPERTIES(EssdPortState, conf),
    DEFINE_PROP_UINT8("port", EssdPortState, index, 0),
    DEFINE_PROP_LINK("lag", EssdPortState, lag, TYPE_ESSD_LAG, EssdLagState *),
    DEFINE_PROP_LINK("dram", EssdPortState, core.dram, TYPE_MEMORY_REGION,
                     MemoryRegion *),
};

static void essd_port_class_init(ObjectClass *oc, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(oc);
    ResettableClass *rc = RESETTABLE_CLASS(oc);

    dc->desc = "Ethernet port of the drive";
    dc->realize = essd_port_realize;
    dc->unrealize = essd_port_unrealize;
    dc->vmsd = &essd_port_vmstate;
    dc->user_creatable = false;
    device_class_set_props(dc, essd_port_properties);
    object_class_property_add_bool(oc, "link-up", essd_port_get_link_up, NULL);
    object_class_property_set_description(
        oc, "link-up",
        "the link is enabled by the firmware and both ends agree");
    object_class_property_add(oc, "partner-speed", "uint32",
                              essd_port_get_speed, essd_port_set_speed, NULL,
                              NULL);
    object_class_property_add_str(oc, "partner-fec", essd_port_get_partner_fec,
                                  essd_port_set_partner_fec);
    object_class_property_add_bool(oc, "present", essd_port_get_present,
                                   essd_port_set_present);
    object_class_property_add_bool(oc, "partner-fault", essd_port_get_fault,
                                   essd_port_set_fault);
    object_class_property_add(oc, "ber", "number", essd_port_get_ber,
                              essd_port_set_ber, NULL, NULL);
    object_class_property_add(oc, "seed", "uint64", essd_port_get_seed,
                              essd_port_set_seed, NULL, NULL);
    object_class_property_add(oc, "state", "struct", essd_port_get_state, NULL,
                              NULL, NULL);
    rc->phases.hold = essd_port_reset_hold;
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
}

static const TypeInfo essd_port_types[] = {
    {
        .name = TYPE_ESSD_PORT,
        .parent = TYPE_SYS_BUS_DEVICE,
        .instance_size = sizeof(EssdPortState),
        .instance_init = essd_port_init,
        .class_init = essd_port_class_init,
    },
};

DEFINE_TYPES(essd_port_types)
