/* SPDX-License-Identifier: BSD-2-Clause */
/* LLDPDUs: see lldp.h. */
#include "net/wire/lldp.h"

#include "lib/bytes.h"

enum {
    OUI_8021 = 0x0080c2,
    OUI_8023 = 0x00120f,
    ORGANISATION_LEN = 4, /* OUI and subtype */
    SUBTYPE_8021_PVID = 1,
    SUBTYPE_8021_VLAN_NAME = 3,
    SUBTYPE_8023_MAC_PHY = 1,
    SUBTYPE_8023_MAX_FRAME = 4,
    FAMILY_IPV4 = 1, /* IANA address family numbers */
    FAMILY_IPV6 = 2,
    INTERFACE_LEN = 6, /* numbering subtype, number, length of the OID */
};

/* ---- Parsing. */

struct tlv {
    const uint8_t *value;
    uint16_t len;
    uint8_t type;
};

static bool parse_id(struct lldp_id *id, const struct tlv *tlv)
{
    if (tlv->len < 2 || tlv->len > 1 + LLDP_ID_MAX) {
        return false;
    }
    id->subtype = tlv->value[0];
    id->value = (struct lldp_text){tlv->value + 1, (uint16_t)(tlv->len - 1)};
    return true;
}

static void parse_text(struct lldp_text *text, const struct tlv *tlv)
{
    if (text->bytes == NULL && tlv->len <= LLDP_TEXT_MAX) {
        *text = (struct lldp_text){tlv->value, tlv->len};
    }
}

static void parse_management(struct lldp *lldp, const struct tlv *tlv)
{
    const uint8_t *value = tlv->value;
    struct lldp_management *to = &lldp->management[lldp->management_count];
    uint8_t len = tlv->len != 0 ? value[0] : 0; /* of family and address */

    if (lldp->management_count == LLDP_MANAGEMENTS || len < 2 ||
        1 + len + INTERFACE_LEN > tlv->len ||
        1 + len + INTERFACE_LEN + value[len + INTERFACE_LEN] > tlv->len) {
        return;
    }
    if (value[1] == FAMILY_IPV4 && len == 1 + 4) {
        to->ip = ip_addr_from_v4(get_be32(value + 2));
    } else if (value[1] == FAMILY_IPV6 && len == 1 + 16) {
        to->ip = ip_addr_from_bytes(value + 2);
        if (ip_addr_is_v4(&to->ip)) {
            return; /* an IPv4-mapped address is not used on a link */
        }
    } else {
        return;
    }
    to->interface_subtype = value[1 + len];
    to->interface = get_be32(value + 2 + len);
    lldp->management_count++;
}

static void parse_8021(struct lldp *lldp, uint8_t subtype, const uint8_t *value,
                       uint16_t len)
{
    struct lldp_vlan *vlan = &lldp->vlans[lldp->vlan_count];

    if (subtype == SUBTYPE_8021_PVID && len >= 2 && lldp->pvid == 0) {
        lldp->pvid = get_be16(value);
    } else if (subtype == SUBTYPE_8021_VLAN_NAME && len >= 3 &&
               lldp->vlan_count < LLDP_VLANS &&
               value[2] <= LLDP_VLAN_NAME_MAX && 3 + value[2] <= len) {
        vlan->vlan = get_be16(value);
        vlan->name = (struct lldp_text){value + 3, value[2]};
        lldp->vlan_count++;
    }
}

static void parse_8023(struct lldp *lldp, uint8_t subtype, const uint8_t *value,
                       uint16_t len)
{
    if (subtype == SUBTYPE_8023_MAC_PHY && len >= 5 && !lldp->has_mac_phy) {
        lldp->has_mac_phy = true;
        lldp->autoneg = value[0];
        lldp->pmd = get_be16(value + 1);
        lldp->mau_type = get_be16(value + 3);
    } else if (subtype == SUBTYPE_8023_MAX_FRAME && len >= 2 &&
               lldp->max_frame == 0) {
        lldp->max_frame = get_be16(value);
    }
}

static void parse_organisation(struct lldp *lldp, const struct tlv *tlv)
{
    const uint8_t *value = tlv->value + ORGANISATION_LEN;
    uint16_t len = (uint16_t)(tlv->len - ORGANISATION_LEN);

    if (tlv->len < ORGANISATION_LEN) {
        return;
    }
    if (get_be24(tlv->value) == OUI_8021) {
        parse_8021(lldp, tlv->value[3], value, len);
    } else if (get_be24(tlv->value) == OUI_8023) {
        parse_8023(lldp, tlv->value[3], value, len);
    }
}

/* The mandatory TLVs, which come in this order. */
static bool parse_mandatory(struct lldp *lldp, const struct tlv *tlv)
{
    switch (tlv->type) {
    case LLDP_CHASSIS_ID:
        return parse_id(&lldp->chassis, tlv);
    case LLDP_PORT_ID:
        return parse_id(&lldp->port, tlv);
    default:
        if (tlv->len < 2) {
            return false;
        }
        lldp->ttl_s = get_be16(tlv->value);
        return true;
    }
}

static void parse_optional(struct lldp *lldp, const struct tlv *tlv)
{
    switch (tlv->type) {
    case LLDP_PORT_DESCRIPTION:
        parse_text(&lldp->port_description, tlv);
        break;
    case LLDP_SYSTEM_NAME:
        parse_text(&lldp->system_name, tlv);
        break;
    case LLDP_SYSTEM_DESCRIPTION:
        parse_text(&lldp->system_description, tlv);
        break;
    case LLDP_CAPABILITIES:
        if (tlv->len >= 4 && !lldp->has_capabilities) {
            lldp->has_capabilities = true;
            lldp->capabilities = get_be16(tlv->value);
            lldp->capabilities_enabled = get_be16(tlv->value + 2);
        }
        break;
    case LLDP_MANAGEMENT_ADDRESS:
        parse_management(lldp, tlv);
        break;
    case LLDP_ORGANISATION:
        parse_organisation(lldp, tlv);
        break;
    default:
        break;
    }
}

/* @return false when less than a whole TLV is left */
static bool next_tlv(struct tlv *tlv, const uint8_t *buf, size_t len)
{
    if (len < LLDP_TLV_HEADER) {
        return false;
    }
    tlv->type = buf[0] >> 1;
    tlv->len = get_be16(buf) & LLDP_TLV_MAX;
    tlv->value = buf + LLDP_TLV_HEADER;
    return tlv->len <= len - LLDP_TLV_HEADER;
}

bool lldp_parse(struct lldp *lldp, const uint8_t *buf, size_t len)
{
    size_t at = 0;
    struct tlv tlv;

    *lldp = (struct lldp){0};
    for (unsigned int n = LLDP_CHASSIS_ID;; n++) {
        bool is_mandatory = n <= LLDP_TTL;

        if (!is_mandatory && at == len) {
            break; /* the frame may end without an End TLV */
        }
        if (!next_tlv(&tlv, buf + at, len - at)) {
            return false;
        }
        at += LLDP_TLV_HEADER + (size_t)tlv.len;
        if (is_mandatory) {
            if (tlv.type != n || !parse_mandatory(lldp, &tlv)) {
                return false;
            }
        } else if (tlv.type == LLDP_END) {
            if (tlv.len != 0) {
                return false;
            }
            break;
        } else if (tlv.type <= LLDP_TTL) {
            return false; /* a mandatory TLV came twice */
        } else {
            parse_optional(lldp, &tlv);
        }
    }
    lldp->len_bytes = at;
    return true;
}

/* ---- Emitting. */

struct writer {
    uint8_t *buf;
    size_t room;
    size_t len;
    bool is_full;
};

/* Begin a TLV. @return where its value goes, or NULL when it does not fit */
static uint8_t *put_tlv(struct writer *w, enum lldp_tlv type, size_t len)
{
    uint8_t *at = w->buf + w->len;

    if (w->is_full || len > LLDP_TLV_MAX ||
        LLDP_TLV_HEADER + len > w->room - w->len) {
        w->is_full = true;
        return NULL;
    }
    put_be16(at, (uint16_t)((unsigned int)type << 9 | len));
    w->len += LLDP_TLV_HEADER + len;
    return at + LLDP_TLV_HEADER;
}

static void put_id(struct writer *w, enum lldp_tlv type,
                   const struct lldp_id *id)
{
    uint8_t *at = put_tlv(w, type, 1 + (size_t)id->value.len_bytes);

    if (at != NULL) {
        at[0] = id->subtype;
        memcpy(at + 1, id->value.bytes, id->value.len_bytes);
    }
}

static void put_text(struct writer *w, enum lldp_tlv type,
                     const struct lldp_text *text)
{
    uint8_t *at;

    if (text->bytes == NULL) {
        return;
    }
    at = put_tlv(w, type, text->len_bytes);
    if (at != NULL) {
        memcpy(at, text->bytes, text->len_bytes);
    }
}

static void put_management(struct writer *w, const struct lldp_management *m)
{
    bool v4 = ip_addr_is_v4(&m->ip);
    uint8_t len = v4 ? 4 : 16;
    uint8_t *at =
        put_tlv(w, LLDP_MANAGEMENT_ADDRESS, 2 + (size_t)len + INTERFACE_LEN);

    if (at == NULL) {
        return;
    }
    at[0] = (uint8_t)(1 + len);
    at[1] = v4 ? FAMILY_IPV4 : FAMILY_IPV6;
    memcpy(at + 2, m->ip.bytes + (v4 ? 12 : 0), len);
    at[2 + len] = m->interface_subtype;
    put_be32(at + 3 + len, m->interface);
    at[7 + len] = 0; /* no OID */
}

/* @return where the value that follows OUI and subtype goes */
static uint8_t *put_organisation(struct writer *w, uint32_t oui,
                                 uint8_t subtype, size_t len)
{
    uint8_t *at = put_tlv(w, LLDP_ORGANISATION, ORGANISATION_LEN + len);

    if (at == NULL) {
        return NULL;
    }
    put_be24(at, oui);
    at[3] = subtype;
    return at + ORGANISATION_LEN;
}

static void put_8021(struct writer *w, const struct lldp *lldp)
{
    uint8_t *at;

    if (lldp->pvid != 0) {
        at = put_organisation(w, OUI_8021, SUBTYPE_8021_PVID, 2);
        if (at != NULL) {
            put_be16(at, lldp->pvid);
        }
    }
    for (size_t i = 0; i < lldp->vlan_count; i++) {
        const struct lldp_vlan *vlan = &lldp->vlans[i];

        at = put_organisation(w, OUI_8021, SUBTYPE_8021_VLAN_NAME,
                              3 + (size_t)vlan->name.len_bytes);
        if (at != NULL) {
            put_be16(at, vlan->vlan);
            at[2] = (uint8_t)vlan->name.len_bytes;
            memcpy(at + 3, vlan->name.bytes, vlan->name.len_bytes);
        }
    }
}

static void put_8023(struct writer *w, const struct lldp *lldp)
{
    uint8_t *at;

    if (lldp->has_mac_phy) {
        at = put_organisation(w, OUI_8023, SUBTYPE_8023_MAC_PHY, 5);
        if (at != NULL) {
            at[0] = lldp->autoneg;
            put_be16(at + 1, lldp->pmd);
            put_be16(at + 3, lldp->mau_type);
        }
    }
    if (lldp->max_frame != 0) {
        at = put_organisation(w, OUI_8023, SUBTYPE_8023_MAX_FRAME, 2);
        if (at != NULL) {
            put_be16(at, lldp->max_frame);
        }
    }
}

size_t lldp_emit(const struct lldp *lldp, uint8_t *buf, size_t room)
{
    struct writer w = {.buf = buf, .room = room};
    uint8_t *at;

    put_id(&w, LLDP_CHASSIS_ID, &lldp->chassis);
    put_id(&w, LLDP_PORT_ID, &lldp->port);
    at = put_tlv(&w, LLDP_TTL, 2);
    if (at != NULL) {
        put_be16(at, lldp->ttl_s);
    }
    put_text(&w, LLDP_PORT_DESCRIPTION, &lldp->port_description);
    put_text(&w, LLDP_SYSTEM_NAME, &lldp->system_name);
    put_text(&w, LLDP_SYSTEM_DESCRIPTION, &lldp->system_description);
    if (lldp->has_capabilities) {
        at = put_tlv(&w, LLDP_CAPABILITIES, 4);
        if (at != NULL) {
            put_be16(at, lldp->capabilities);
            put_be16(at + 2, lldp->capabilities_enabled);
        }
    }
    for (size_t i = 0; i < lldp->management_count; i++) {
        put_management(&w, &lldp->management[i]);
    }
    put_8021(&w, lldp);
    put_8023(&w, lldp);
    (void)put_tlv(&w, LLDP_END, 0);
    return w.is_full ? 0 : w.len;
}
