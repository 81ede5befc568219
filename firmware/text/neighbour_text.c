/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/text/neighbour_text.h"

#include "firmware/text/ip_text.h"

/* IEEE 802.1AB table 8-4. */
static const char *const capability_name[] = {
    "other",  "repeater",  "bridge",         "access-point",
    "router", "telephone", "docsis",         "station",
    "c-vlan", "s-vlan",    "two-port-relay",
};

_Static_assert(ARRAY_LEN(capability_name) == NEIGHBOUR_CAPABILITIES,
               "see neighbour_text.h");

const char *neighbour_capability(unsigned int i)
{
    return capability_name[i];
}

struct neighbour_text neighbour_text(const struct lldp_text *text)
{
    struct neighbour_text out;
    size_t len = MIN((size_t)NEIGHBOUR_TEXT_MAX, text->len_bytes);

    for (size_t i = 0; i < len; i++) {
        uint8_t byte = text->bytes[i];

        out.text[i] = byte >= ' ' && byte <= '~' ? (char)byte : '?';
    }
    out.text[len] = '\0';
    return out;
}

struct neighbour_text neighbour_text_id(const struct lldp_id *id,
                                        uint8_t mac_subtype)
{
    const uint8_t *b = id->value.bytes;
    struct neighbour_text out;

    if (id->subtype != mac_subtype || id->value.len_bytes != 6) {
        return neighbour_text(&id->value);
    }
    log_format(out.text, sizeof(out.text), "%02x:%02x:%02x:%02x:%02x:%02x",
               b[0], b[1], b[2], b[3], b[4], b[5]);
    return out;
}

/* Print one fact on each line, so that programs can parse it. */
#define say(key, format, ...)                                                  \
    log_text(log, "port %u: neighbour %zu: " key " " format, port, place,      \
             __VA_ARGS__)

static void say_capabilities(struct log *log, const struct lldp *lldp,
                             uint8_t port, size_t place)
{
    char text[128] = "";
    size_t len = 0;

    if (!lldp->has_capabilities) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(capability_name); i++) {
        if ((lldp->capabilities_enabled >> i & 1) != 0) {
            len += log_format(text + len, sizeof(text) - len, "%s%s",
                              len != 0 ? " " : "", capability_name[i]);
        }
    }
    say("capabilities", "%s", len != 0 ? text : "none");
}

static void say_neighbour(struct log *log, const struct lldp *lldp,
                          uint8_t port, size_t place)
{
    say("chassis", "%s",
        neighbour_text_id(&lldp->chassis, LLDP_CHASSIS_MAC).text);
    say("port", "%s", neighbour_text_id(&lldp->port, LLDP_PORT_MAC).text);
    if (lldp->port_description.bytes != NULL) {
        say("port-description", "%s",
            neighbour_text(&lldp->port_description).text);
    }
    if (lldp->system_name.bytes != NULL) {
        say("system", "%s", neighbour_text(&lldp->system_name).text);
    }
    if (lldp->system_description.bytes != NULL) {
        say("system-description", "%s",
            neighbour_text(&lldp->system_description).text);
    }
    for (size_t i = 0; i < lldp->management_count; i++) {
        say("address", "%s", ip_text(&lldp->management[i].ip).text);
    }
    say_capabilities(log, lldp, port, place);
    if (lldp->pvid != 0) {
        say("vlan", "%u", lldp->pvid);
    }
    if (lldp->max_frame != 0) {
        say("longest-frame", "%u", lldp->max_frame);
    }
}

void neighbour_text_say(struct log *log, const struct lldp_agent *agent,
                        uint8_t port, uint64_t now_us)
{
    bool is_alone = true;
    struct lldp lldp;
    uint32_t left_s;

    for (size_t place = 0; place < LLDP_NEIGHBOURS; place++) {
        if (!lldp_neighbour_read(agent, port, place, now_us, &lldp, &left_s)) {
            continue;
        }
        is_alone = false;
        say_neighbour(log, &lldp, port, place);
        say("forgotten-in", "%u", left_s);
    }
    if (!is_alone) {
        return;
    }
    if (!agent->config.ports[port].receives) {
        log_text(log, "port %u: does not listen to LLDP", port);
    } else if (agent->ports[port].state == LLDP_DOWN) {
        log_text(log, "port %u: nothing heard: the link is down", port);
    } else {
        log_text(log, "port %u: nothing heard yet", port);
    }
}
