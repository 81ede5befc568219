/* SPDX-License-Identifier: BSD-2-Clause */
#include "target_info.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Find the n-th value of that key in a JSON text, if it is a string. */
static bool find_string(const char *json, const char *key, unsigned int n,
                        char *value, size_t room)
{
    char quoted[32];
    size_t len = 0;

    snprintf(quoted, sizeof(quoted), "\"%s\":", key);
    for (json = strstr(json, quoted); json != NULL && n != 0; n--) {
        json = strstr(json + 1, quoted);
    }
    if (json == NULL) {
        return false;
    }
    json += strlen(quoted);
    json += strspn(json, " ");
    if (*json++ != '"') {
        return false;
    }
    while (json[len] != '"' && json[len] != '\0' && len + 1 < room) {
        value[len] = json[len];
        len++;
    }
    value[len] = '\0';
    return true;
}

bool target_parse_ip(struct ip_addr *ip, const char *text)
{
    struct in_addr v4;

    if (inet_pton(AF_INET, text, &v4) == 1) {
        *ip = ip_addr_from_v4(ntohl(v4.s_addr));
        return true;
    }
    return inet_pton(AF_INET6, text, ip->bytes) == 1;
}

static bool parse_mac(struct mac_addr *mac, const char *text)
{
    unsigned int b[6];

    if (sscanf(text, "%x:%x:%x:%x:%x:%x", &b[0], &b[1], &b[2], &b[3], &b[4],
               &b[5]) != 6) {
        return false;
    }
    for (unsigned int i = 0; i < 6; i++) {
        mac->bytes[i] = (uint8_t)b[i];
    }
    return true;
}

bool target_read_info(const char *json, struct conf_target *target)
{
    const char *mtu = strstr(json, "\"mtu\":"),
               *nsid = strstr(json, "\"nsid\":");
    char text[NVME_NQN_FIELD];

    for (unsigned int i = 0; i < CONF_PORTS; i++) {
        struct conf_port *port = &target->ports[i];

        if (!find_string(json, "mac", i, text, sizeof(text)) ||
            !parse_mac(&port->mac, text)) {
            return i != 0;
        }
        if (find_string(json, "ipv4", i, text, sizeof(text)) &&
            !target_parse_ip(&port->ip4, text)) {
            return false;
        }
        if (find_string(json, "ipv6", i, text, sizeof(text)) &&
            !target_parse_ip(&port->ip6, text)) {
            return false;
        }
    }
    if (!find_string(json, "nqn", 0, target->nqn, sizeof(target->nqn))) {
        return false;
    }
    target->mtu_bytes = (uint16_t)(mtu != NULL ? atoi(mtu + 6) : 1500);
    target->nsid = nsid != NULL ? (uint32_t)atoi(nsid + 7) : 1;
    target->has_echo = strstr(json, "\"echo\": true") != NULL ||
                       strstr(json, "\"echo\":true") != NULL;
    target->is_ours = true;
    return true;
}
