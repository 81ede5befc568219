/* SPDX-License-Identifier: BSD-2-Clause */
#include "target_about.h"

#include <string.h>

#include "firmware/text/ip_text.h"
#include "nvmeof/wire/identify.h"

enum {
    IDENTIFY_LEN = 4096,
    PAGE_BYTES = 4096, /* CAP.MPSMIN, which fabrics fix: nvmf.property.cap. */
    MDTS_MAX = 16,     /* A larger MDTS limits no test. */
    LBAF_LEN = 4,
    LBAF_LBADS = 2,
    LBADS_MIN = 9,
    LBADS_MAX = 16,
};

/* A target may have no namespace with that number; other tests still apply to
 * it. */
static void read_blocks(struct conf *conf, struct nvme_host *host,
                        struct target_about *about)
{
    uint8_t data[IDENTIFY_LEN] = {0};
    unsigned int lbads;

    if (host_identify(host, CNS_NAMESPACE, conf_target(conf)->nsid, data) !=
        NVME_SC_SUCCESS) {
        return;
    }
    lbads =
        data[ID_NS_LBAF0 + LBAF_LEN * (data[ID_NS_FLBAS] & 0xf) + LBAF_LBADS];
    if (lbads >= LBADS_MIN && lbads <= LBADS_MAX) {
        about->block_bytes = 1u << lbads;
    }
}

/* Copy an ASCII field that is padded with spaces, or ends with a zero. */
static void take_text(char *text, const uint8_t *field, size_t len)
{
    memcpy(text, field, len);
    text[len] = '\0';
    for (len = strlen(text); len != 0 && text[len - 1] == ' '; len--) {
        text[len - 1] = '\0';
    }
}

void target_about_read(struct conf *conf, struct target_about *about)
{
    struct nvme_host *host = conf_connect(conf, &(struct conf_session){0});
    uint8_t data[IDENTIFY_LEN] = {0};

    conf_status(conf, "Identify Controller",
                host_identify(host, CNS_CONTROLLER, 0, data), NVME_SC_SUCCESS);
    take_text(about->mn, data + ID_CTRL_MN, sizeof(about->mn) - 1);
    take_text(about->sn, data + ID_CTRL_SN, sizeof(about->sn) - 1);
    take_text(about->fr, data + ID_CTRL_FR, sizeof(about->fr) - 1);
    take_text(about->subnqn, data + ID_CTRL_SUBNQN, sizeof(about->subnqn) - 1);
    if (data[ID_CTRL_MDTS] != 0 && data[ID_CTRL_MDTS] <= MDTS_MAX) {
        about->max_bytes = (uint32_t)PAGE_BYTES << data[ID_CTRL_MDTS];
    }
    read_blocks(conf, host, about);
    host_disconnect(host);
}

void json_put_string(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\') {
            fprintf(file, "\\%c", c);
        } else if (c < ' ' || c >= 127) {
            fprintf(file, "\\u%04x", c);
        } else {
            fputc(c, file);
        }
    }
    fputc('"', file);
}

static void put_ip(FILE *file, const char *key, const struct ip_addr *ip)
{
    if (!ip_addr_is_unspecified(ip)) {
        fprintf(file, ",\"%s\":\"%s\"", key, ip_text(ip).text);
    }
}

void target_about_put(FILE *file, const struct target_about *about,
                      const struct conf_target *target)
{
    const struct {
        const char *key, *value;
    } texts[] = {{"mn", about->mn},
                 {"sn", about->sn},
                 {"fr", about->fr},
                 {"subnqn", about->subnqn}};

    fputc('{', file);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        fprintf(file, "\"%s\":", texts[i].key);
        json_put_string(file, texts[i].value);
        fputc(',', file);
    }
    fputs("\"ports\":[", file);
    for (unsigned int i = 0; i < target->num_ports; i++) {
        const struct conf_port *port = &target->ports[i];
        const uint8_t *b = port->mac.bytes;

        fprintf(file, "%s{\"mac\":\"%02x:%02x:%02x:%02x:%02x:%02x\"",
                i != 0 ? "," : "", b[0], b[1], b[2], b[3], b[4], b[5]);
        put_ip(file, "ipv4", &port->ip4);
        put_ip(file, "ipv6", &port->ip6);
        fputc('}', file);
    }
    fputs("]}", file);
}
