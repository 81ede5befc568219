/* SPDX-License-Identifier: BSD-2-Clause */
/* Words that describe a port: see words.h. */
#include "words.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t max_speed_bps = 1000000000000;
static const uint64_t min_speed_bps = 1000;
static const uint64_t max_time_ns = 60000000000;

const char *const port_kind_name[PORT_KINDS] = {
    [PORT_LISTEN] = "listen",
    [PORT_DIAL] = "dial",
    [PORT_TCP_LISTEN] = "tcp-listen",
    [PORT_TCP] = "tcp",
    [PORT_FD] = "fd",
    [PORT_TAP] = "tap",
    [PORT_IFACE] = "iface",
};

bool complain(struct complaint *complaint, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(complaint->text, sizeof(complaint->text), format, args);
    va_end(args);
    return false;
}

/* ---- Values */

bool words_number(const char *text, uint64_t max, uint64_t *value)
{
    char *end;

    if (!isdigit((unsigned char)text[0])) {
        return false;
    }
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' && *value <= max;
}

struct unit {
    const char *suffix;
    uint64_t factor;
};

/*
 * Parse a decimal number that one of the units may follow.  A number without a
 * unit has the first one.  Digits of a fraction that the result cannot hold are
 * dropped.
 */
static bool parse_quantity(const char *text, const struct unit *units,
                           uint64_t max, uint64_t *value)
{
    uint64_t whole = 0, fraction = 0, scale = 1;
    const char *at = text;

    if (!isdigit((unsigned char)*at)) {
        return false;
    }
    for (; isdigit((unsigned char)*at); at++) {
        whole = whole * 10 + (uint64_t)(*at - '0');
        if (whole > max) {
            return false;
        }
    }
    if (*at == '.') {
        for (at++; isdigit((unsigned char)*at); at++) {
            if (scale < 1000000000) {
                scale *= 10;
                fraction = fraction * 10 + (uint64_t)(*at - '0');
            }
        }
    }
    for (; units->suffix != NULL; units++) {
        if (strcmp(units->suffix, at) == 0) {
            /* whole and factor are at most 10^12 and 10^9. */
            if (whole > max / units->factor) {
                return false;
            }
            *value = whole * units->factor + fraction * units->factor / scale;
            return *value <= max;
        }
    }
    return false;
}

static const struct unit decimal_units[] = {
    {"", 1}, {"k", 1000}, {"M", 1000000}, {"G", 1000000000}, {NULL, 0}};
static const struct unit byte_units[] = {{"", 1},        {"K", 1024},
                                         {"k", 1024},    {"M", 1 << 20},
                                         {"G", 1 << 30}, {NULL, 0}};
static const struct unit time_units[] = {
    {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {NULL, 0}};
static const struct unit plain_unit[] = {{"", SHAPER_CERTAIN}, {NULL, 0}};

static bool parse_time(const char *text, uint64_t *value)
{
    if (strcmp(text, "0") == 0) {
        *value = 0;
        return true;
    }
    return parse_quantity(text, time_units, max_time_ns, value);
}

/* ---- One function for each word */

/* Which directions of the cable a word is about. */
struct span {
    int first, last;
};

typedef bool word_set(struct port_options *options, const char *value,
                      struct span span, struct complaint *why);

static bool set_name(struct port_options *options, const char *value,
                     struct span span, struct complaint *why)
{
    size_t len = strlen(value);

    (void)span;
    if (len == 0 || len >= sizeof(options->name) ||
        strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                      "0123456789._-:") != len ||
        isdigit((unsigned char)value[0])) {
        return complain(why,
                        "must be 1 to %d letters, digits, '.', '_', '-' "
                        "or ':', and begin with no digit",
                        PORT_NAME_LEN - 1);
    }
    memcpy(options->name, value, len + 1);
    return true;
}

static bool parse_vid(const char *text, uint16_t *vid)
{
    uint64_t value;

    if (!words_number(text, VLAN_MAX, &value) || value == 0) {
        return false;
    }
    *vid = (uint16_t)value;
    return true;
}

static bool set_vlan(struct port_options *options, const char *value,
                     struct span span, struct complaint *why)
{
    struct switch_vlan vlan = {.mode = SWITCH_VLAN_TRANSPARENT};

    (void)span;
    if (strcmp(value, "any") != 0) {
        vlan.mode = SWITCH_VLAN_ACCESS;
        if (!parse_vid(value, &vlan.vid)) {
            return complain(why, "must be 1 to %d or any", VLAN_MAX);
        }
    }
    options->config.vlan = vlan;
    options->native = VLAN_NONE;
    return true;
}

/* "10" or "10-20", which is changed while it is read. */
static bool parse_vlan_range(char *text, struct switch_vlan *vlan)
{
    char *dash = strchr(text, '-');
    uint16_t first, last;

    if (dash != NULL) {
        *dash = '\0';
    }
    if (!parse_vid(text, &first) ||
        !parse_vid(dash != NULL ? dash + 1 : text, &last) || first > last) {
        return false;
    }
    for (unsigned vid = first; vid <= last; vid++) {
        vlan->allowed[vid / 8] |= (uint8_t)BIT(vid % 8);
    }
    return true;
}

static bool set_trunk(struct port_options *options, const char *value,
                      struct span span, struct complaint *why)
{
    struct switch_vlan vlan = {.mode = SWITCH_VLAN_TRUNK};
    char list[4096];
    char *rest = list;

    (void)span;
    if (snprintf(list, sizeof(list), "%s",
                 strcmp(value, "all") == 0 ? "1-4094" : value) >=
        (int)sizeof(list)) {
        return complain(why, "is too long");
    }
    for (char *range; (range = strsep(&rest, "+")) != NULL;) {
        if (!parse_vlan_range(range, &vlan)) {
            return complain(why,
                            "must be VLANs from 1 to %d, such as "
                            "10+20-30, or all",
                            VLAN_MAX);
        }
    }
    options->config.vlan = vlan;
    return true;
}

static bool set_native(struct port_options *options, const char *value,
                       struct span span, struct complaint *why)
{
    (void)span;
    options->native = VLAN_NONE;
    options->native_given = true;
    return strcmp(value, "none") == 0 || parse_vid(value, &options->native) ||
           complain(why, "must be 1 to %d or none", VLAN_MAX);
}

static bool set_link(struct port_options *options, const char *value,
                     struct span span, struct complaint *why)
{
    (void)span;
    options->config.link_up = strcmp(value, "up") == 0;
    return options->config.link_up || strcmp(value, "down") == 0 ||
           complain(why, "must be up or down");
}

static bool set_full(struct port_options *options, const char *value,
                     struct span span, struct complaint *why)
{
    bool drops = strcmp(value, "drop") == 0;

    (void)span;
    options->config.full = drops ? SWITCH_FULL_DROP : SWITCH_FULL_PAUSE;
    return drops || strcmp(value, "pause") == 0 ||
           complain(why, "must be pause or drop");
}

static bool set_stall(struct port_options *options, const char *value,
                      struct span span, struct complaint *why)
{
    (void)span;
    return parse_time(value, &options->config.stall_ns) ||
           complain(why, "must be a time up to 60s, such as 500ms, or 0");
}

static bool set_speed(struct port_options *options, const char *value,
                      struct span span, struct complaint *why)
{
    uint64_t speed;

    if (!parse_quantity(value, decimal_units, max_speed_bps, &speed) ||
        (speed != 0 && speed < min_speed_bps)) {
        return complain(why, "must be 1k to 1000G bits per second, such as "
                             "25G, or 0 for no limit");
    }
    for (int i = span.first; i <= span.last; i++) {
        options->config.cable[i].speed_bps = speed;
    }
    return true;
}

static bool set_delay(struct port_options *options, const char *value,
                      struct span span, struct complaint *why)
{
    uint64_t delay;

    if (!parse_time(value, &delay)) {
        return complain(why, "must be a time up to 60s, such as 10us, or 0");
    }
    for (int i = span.first; i <= span.last; i++) {
        options->config.cable[i].delay_ns = delay;
    }
    return true;
}

static bool set_jitter(struct port_options *options, const char *value,
                       struct span span, struct complaint *why)
{
    uint64_t jitter;

    if (!parse_time(value, &jitter)) {
        return complain(why, "must be a time up to 60s, such as 10us, or 0");
    }
    for (int i = span.first; i <= span.last; i++) {
        options->config.cable[i].jitter_ns = jitter;
    }
    return true;
}

static bool set_loss(struct port_options *options, const char *value,
                     struct span span, struct complaint *why)
{
    uint64_t loss;

    if (!parse_quantity(value, plain_unit, SHAPER_CERTAIN, &loss)) {
        return complain(why, "must be a probability from 0 to 1, such as 0.01");
    }
    for (int i = span.first; i <= span.last; i++) {
        options->config.cable[i].loss_ppb = (uint32_t)loss;
    }
    return true;
}

static bool set_seed(struct port_options *options, const char *value,
                     struct span span, struct complaint *why)
{
    (void)span;
    options->seed_given = true;
    return words_number(value, UINT64_MAX, &options->config.seed) ||
           complain(why, "must be a whole number");
}

static bool set_capture(struct port_options *options, const char *value,
                        struct span span, struct complaint *why)
{
    const char *file = strcmp(value, "off") == 0 ? "" : value;

    (void)span;
    if (value[0] == '\0' || strlen(file) >= sizeof(options->capture.file)) {
        return complain(why, "must be the path of a file, or off");
    }
    memcpy(options->capture.file, file, strlen(file) + 1);
    return true;
}

static bool set_capture_size(struct port_options *options, const char *value,
                             struct span span, struct complaint *why)
{
    uint64_t *limit = &options->capture.limit_bytes;

    (void)span;
    return (parse_quantity(value, byte_units, (uint64_t)1 << 50, limit) &&
            (*limit == 0 || *limit >= 128 * 1024)) ||
           complain(why, "must be at least 128K, or 0 for no limit");
}

static bool set_capture_files(struct port_options *options, const char *value,
                              struct span span, struct complaint *why)
{
    uint64_t files;

    (void)span;
    if (!words_number(value, 1000, &files) || files == 0) {
        return complain(why, "must be 1 to 1000");
    }
    options->capture.files = (uint32_t)files;
    return true;
}

static bool set_queue(struct port_options *options, const char *value,
                      struct span span, struct complaint *why)
{
    uint64_t bytes;

    (void)span;
    if (!parse_quantity(value, byte_units, SWITCH_QUEUE_MAX, &bytes) ||
        bytes < SWITCH_QUEUE_MIN) {
        return complain(why, "must be 128K to 64M");
    }
    options->queue_bytes = (uint32_t)bytes;
    return true;
}

/* ---- All words */

enum { BOTH = -1 };

static const struct word {
    const char *name;
    word_set *set;
    int direction; /* enum switch_direction, or BOTH */
    bool is_placing;
} words[] = {
    {"name", set_name, BOTH, true},
    {"queue", set_queue, BOTH, true},
    {"vlan", set_vlan, BOTH, false},
    {"trunk", set_trunk, BOTH, false},
    {"native", set_native, BOTH, false},
    {"link", set_link, BOTH, false},
    {"full", set_full, BOTH, false},
    {"stall", set_stall, BOTH, false},
    {"speed", set_speed, BOTH, false},
    {"speed-in", set_speed, SWITCH_IN, false},
    {"speed-out", set_speed, SWITCH_OUT, false},
    {"delay", set_delay, BOTH, false},
    {"delay-in", set_delay, SWITCH_IN, false},
    {"delay-out", set_delay, SWITCH_OUT, false},
    {"jitter", set_jitter, BOTH, false},
    {"jitter-in", set_jitter, SWITCH_IN, false},
    {"jitter-out", set_jitter, SWITCH_OUT, false},
    {"loss", set_loss, BOTH, false},
    {"loss-in", set_loss, SWITCH_IN, false},
    {"loss-out", set_loss, SWITCH_OUT, false},
    {"seed", set_seed, BOTH, false},
    {"capture", set_capture, BOTH, false},
    {"capture-size", set_capture_size, BOTH, false},
    {"capture-files", set_capture_files, BOTH, false},
};

const char *words_name(unsigned number)
{
    return number < ARRAY_LEN(words) ? words[number].name : NULL;
}

static bool set_kind(struct port_options *options, enum port_kind kind,
                     const char *value, struct complaint *complaint)
{
    if (options->kind != PORT_NO_KIND) {
        return complain(complaint, "a port is either %s= or %s=",
                        port_kind_name[options->kind], port_kind_name[kind]);
    }
    if (value[0] == '\0' || strlen(value) >= sizeof(options->address)) {
        return complain(complaint, "%s=: the value is %s", port_kind_name[kind],
                        value[0] == '\0' ? "missing" : "too long");
    }
    options->kind = kind;
    memcpy(options->address, value, strlen(value) + 1);
    return true;
}

static bool complain_fixed(struct complaint *complaint, const char *name)
{
    return complain(complaint, "%s= cannot change while the switch runs", name);
}

static bool word_is(const char *word, size_t len, const char *name)
{
    return strlen(name) == len && memcmp(word, name, len) == 0;
}

void words_default(struct port_options *options, uint8_t number)
{
    *options = (struct port_options){
        .queue_bytes = SWITCH_QUEUE_DEFAULT,
        .config = {.link_up = true, .seed = number},
        .capture = {.files = 4},
    };
    (void)snprintf(options->name, sizeof(options->name), "port%u", number);
}

bool words_apply(struct port_options *options, const char *word, bool may_place,
                 struct complaint *complaint)
{
    size_t len = strcspn(word, "=");
    const char *value = word + len + 1;
    struct complaint why;

    if (word[len] == '\0') {
        return complain(complaint, "%.100s: must have the form KEY=VALUE",
                        word);
    }
    for (enum port_kind kind = PORT_LISTEN; kind < PORT_KINDS; kind++) {
        if (word_is(word, len, port_kind_name[kind])) {
            return may_place ? set_kind(options, kind, value, complaint)
                             : complain_fixed(complaint, port_kind_name[kind]);
        }
    }
    for (const struct word *w = words; w < words + ARRAY_LEN(words); w++) {
        struct span span = {SWITCH_IN, SWITCH_OUT};

        if (!word_is(word, len, w->name)) {
            continue;
        }
        if (w->is_placing && !may_place) {
            return complain_fixed(complaint, w->name);
        }
        if (w->direction != BOTH) {
            span = (struct span){w->direction, w->direction};
        }
        return w->set(options, value, span, &why) ||
               complain(complaint, "%.200s: %.250s", word, why.text);
    }
    return complain(complaint, "%.100s: there is no such word", word);
}

bool words_finish(struct port_options *options, struct complaint *complaint)
{
    if (options->config.vlan.mode == SWITCH_VLAN_TRUNK) {
        options->config.vlan.vid = options->native;
    } else if (options->native_given) {
        return complain(complaint, "native= needs trunk=");
    }
    options->native_given = false;
    return true;
}
