/* SPDX-License-Identifier: BSD-2-Clause */
/* The text form of the rules, and the table of rules. */
#include "hw-model/fault/fault_rule.h"

#include <string.h>

/* A word `key=value` of the text. */
struct rule_word {
    const char *key;
    const char *value;
    size_t key_len;
    size_t value_len;
};

static bool word_has_key(const struct rule_word *word, const char *key)
{
    return strlen(key) == word->key_len &&
           memcmp(key, word->key, word->key_len) == 0;
}

static bool word_has_value(const struct rule_word *word, const char *value)
{
    return strlen(value) == word->value_len &&
           memcmp(value, word->value, word->value_len) == 0;
}

/* @return the text after the word, or NULL if there is no word */
static const char *take_word(const char *text, struct rule_word *word)
{
    size_t len = strcspn(text, " ");
    const char *equals = memchr(text, '=', len);

    if (equals == NULL || equals == text || equals + 1 == text + len) {
        return NULL;
    }
    *word = (struct rule_word){
        .key = text,
        .key_len = (size_t)(equals - text),
        .value = equals + 1,
        .value_len = len - (size_t)(equals + 1 - text),
    };
    return text + len;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/*
 * Read digits of the given base, up to the value `max`.  Other characters are
 * refused.
 */
static bool read_digits(const char *text, size_t len, unsigned int base,
                        uint64_t max, uint64_t *value)
{
    uint64_t sum = 0;

    if (len == 0) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        int digit = digit_value(text[i]);

        if (digit < 0 || (unsigned int)digit >= base ||
            sum > (UINT64_MAX - (unsigned int)digit) / base) {
            return false;
        }
        sum = sum * base + (unsigned int)digit;
    }
    *value = sum;
    return sum <= max;
}

static bool read_decimal(const struct rule_word *word, uint64_t max,
                         uint64_t *value)
{
    return read_digits(word->value, word->value_len, 10, max, value);
}

static bool read_u32(const struct rule_word *word, uint32_t *to)
{
    uint64_t value = 0;

    if (!read_decimal(word, UINT32_MAX, &value)) {
        return false;
    }
    *to = (uint32_t)value;
    return true;
}

static bool read_u8(const struct rule_word *word, uint8_t max, uint8_t *to)
{
    uint64_t value = 0;

    if (!read_decimal(word, max, &value)) {
        return false;
    }
    *to = (uint8_t)value;
    return true;
}

/* Read `layer:offset:width:mask:low:high`; the last three are hexadecimal. */
static bool read_condition(const struct rule_word *word,
                           struct fault_condition *condition)
{
    static const uint64_t max[6] = {FAULT_LAYERS - 1, UINT16_MAX, 8,
                                    UINT64_MAX,       UINT64_MAX, UINT64_MAX};
    const char *at = word->value;
    const char *end = word->value + word->value_len;
    uint64_t part[6];

    for (unsigned int i = 0; i < ARRAY_LEN(part); i++) {
        const char *colon = memchr(at, ':', (size_t)(end - at));
        const char *stop = colon != NULL ? colon : end;

        if ((colon == NULL) != (i + 1 == ARRAY_LEN(part)) ||
            !read_digits(at, (size_t)(stop - at), i < 3 ? 10 : 16, max[i],
                         &part[i])) {
            return false;
        }
        at = stop + 1;
    }
    *condition = (struct fault_condition){
        .layer = (uint8_t)part[0],
        .offset = (uint16_t)part[1],
        .width = (uint8_t)part[2],
        .mask = part[3],
        .low = part[4],
        .high = part[5],
    };
    return condition->width > 0 && condition->low <= condition->high;
}

/* Read `part:low:high`, all decimal. */
static bool read_place(const struct rule_word *word, struct fault_rule *rule)
{
    static const uint64_t max[3] = {FAULT_PLACES - 1, UINT16_MAX, UINT16_MAX};
    const char *at = word->value;
    const char *end = word->value + word->value_len;
    uint64_t part[3];

    for (unsigned int i = 0; i < ARRAY_LEN(part); i++) {
        const char *colon =
            at < end ? memchr(at, ':', (size_t)(end - at)) : NULL;
        const char *stop = colon != NULL ? colon : end;

        if ((colon == NULL) != (i + 1 == ARRAY_LEN(part)) ||
            !read_digits(at, (size_t)(stop - at), 10, max[i], &part[i])) {
            return false;
        }
        at = stop + 1;
    }
    rule->places[part[0]] =
        (struct fault_range){(uint16_t)part[1], (uint16_t)part[2]};
    return part[1] <= part[2];
}

static bool read_name(const struct rule_word *word, const char *const *names,
                      unsigned int count, uint8_t *to)
{
    for (unsigned int i = 0; i < count; i++) {
        if (names[i] != NULL && word_has_value(word, names[i])) {
            *to = (uint8_t)i;
            return true;
        }
    }
    return false;
}

static bool read_what(const struct rule_word *word, struct fault_rule *rule)
{
    static const char *const sites[FAULT_SITES] = {"wire", "media", "rdma",
                                                   "nand"};
    static const char *const actions[FAULT_ACTIONS] = {
        [FAULT_DROP] = "drop",
        [FAULT_CORRUPT] = "corrupt",
        [FAULT_DUPLICATE] = "duplicate",
        [FAULT_DELAY] = "delay",
        [FAULT_REORDER] = "reorder",
        [FAULT_ERROR] = "error",
        [FAULT_STUCK] = "stuck",
        [FAULT_NAK] = "nak",
        [FAULT_RNR] = "rnr",
        [FAULT_BITS] = "bits",
        [FAULT_DIE] = "die",
        [FAULT_TRANSFER] = "transfer",
        [FAULT_POWER_CUT] = "power-cut",
        [FAULT_CHECKSUM] = "bad-checksum",
        [FAULT_ZERO_WINDOW] = "zero-window",
    };

    if (word_has_key(word, "site")) {
        return read_name(word, sites, FAULT_SITES, &rule->site);
    }
    if (word_has_key(word, "do")) {
        return read_name(word, actions, FAULT_ACTIONS, &rule->action);
    }
    if (word_has_key(word, "argument")) {
        return read_decimal(word, UINT64_MAX, &rule->argument);
    }
    return false;
}

static bool read_match(const struct rule_word *word, struct fault_rule *rule)
{
    if (word_has_key(word, "ports")) {
        return read_u8(word, BIT(FAULT_PORTS) - 1, &rule->ports);
    }
    if (word_has_key(word, "directions")) {
        return read_u8(word, FAULT_IN | FAULT_OUT, &rule->directions);
    }
    if (word_has_key(word, "field")) {
        return rule->num_conditions < FAULT_CONDITIONS &&
               read_condition(word, &rule->conditions[rule->num_conditions++]);
    }
    if (word_has_key(word, "ops")) {
        return read_u32(word, &rule->ops);
    }
    if (word_has_key(word, "place")) {
        return read_place(word, rule);
    }
    if (word_has_key(word, "qpn")) {
        return read_u32(word, &rule->qpn);
    }
    if (word_has_key(word, "first")) {
        return read_decimal(word, UINT64_MAX, &rule->first);
    }
    if (word_has_key(word, "end")) {
        return read_decimal(word, UINT64_MAX, &rule->end);
    }
    return false;
}

static bool read_trigger(const struct rule_word *word,
                         struct fault_trigger *trigger)
{
    if (word_has_key(word, "nth")) {
        return read_u32(word, &trigger->nth);
    }
    if (word_has_key(word, "every")) {
        return read_u32(word, &trigger->every);
    }
    if (word_has_key(word, "after")) {
        return read_u32(word, &trigger->after);
    }
    if (word_has_key(word, "times")) {
        return read_u32(word, &trigger->times);
    }
    if (word_has_key(word, "chance")) {
        return read_decimal(word, FAULT_CHANCE_ALWAYS, &trigger->chance);
    }
    if (word_has_key(word, "seed")) {
        return read_decimal(word, UINT64_MAX, &trigger->random);
    }
    return false;
}

/* Whether a site supports an action. */
static bool site_can_do(enum fault_site site, enum fault_action action)
{
    static const uint32_t can[FAULT_SITES] = {
        [FAULT_WIRE] = BIT(FAULT_DROP) | BIT(FAULT_CORRUPT) |
                       BIT(FAULT_DUPLICATE) | BIT(FAULT_DELAY) |
                       BIT(FAULT_REORDER) | BIT(FAULT_POWER_CUT) |
                       BIT(FAULT_CHECKSUM) | BIT(FAULT_ZERO_WINDOW),
        [FAULT_MEDIA] = BIT(FAULT_ERROR) | BIT(FAULT_DELAY) | BIT(FAULT_STUCK) |
                        BIT(FAULT_BITS) | BIT(FAULT_POWER_CUT),
        [FAULT_NAND] = BIT(FAULT_ERROR) | BIT(FAULT_BITS) | BIT(FAULT_DIE) |
                       BIT(FAULT_TRANSFER) | BIT(FAULT_POWER_CUT),
        [FAULT_RDMA] = BIT(FAULT_NAK) | BIT(FAULT_RNR) | BIT(FAULT_TRANSFER) |
                       BIT(FAULT_CHECKSUM) | BIT(FAULT_POWER_CUT),
    };

    return (can[site] & BIT(action)) != 0;
}

bool fault_rule_parse(const char *text, struct fault_rule *rule,
                      const char **wrong)
{
    struct rule_word word;

    *rule = (struct fault_rule){
        .ports = BIT(FAULT_PORTS) - 1,
        .directions = FAULT_IN | FAULT_OUT,
        .is_on = true,
        .ops = UINT32_MAX,
        .end = UINT64_MAX,
        .trigger = {.chance = FAULT_CHANCE_ALWAYS, .random = 1},
    };
    for (unsigned int i = 0; i < FAULT_PLACES; i++) {
        rule->places[i].high = UINT16_MAX;
    }
    *wrong = text;
    for (const char *at = text; at != NULL; at = *at == ' ' ? at + 1 : NULL) {
        *wrong = at;
        at = take_word(at, &word);
        if (at == NULL ||
            !(word_has_key(&word, "id")
                  ? read_u32(&word, &rule->id)
                  : read_what(&word, rule) || read_match(&word, rule) ||
                        read_trigger(&word, &rule->trigger))) {
            return false;
        }
    }
    *wrong = text;
    return rule->id != 0 && site_can_do(rule->site, rule->action);
}

/* ---- The table */

static void count_active(struct fault_table *table)
{
    memset(table->active, 0, sizeof(table->active));
    for (unsigned int i = 0; i < FAULT_RULES; i++) {
        const struct fault_rule *rule = &table->rules[i];

        if (rule->id != 0 && rule->is_on) {
            table->active[rule->site]++;
        }
    }
}

/* @return FAULT_RULES if no entry has this id; free entries have the id 0 */
static unsigned int entry_index(const struct fault_table *table, uint32_t id)
{
    unsigned int i = 0;

    while (i < FAULT_RULES && table->rules[i].id != id) {
        i++;
    }
    return i;
}

const struct fault_rule *fault_table_find(const struct fault_table *table,
                                          uint32_t id)
{
    unsigned int i = id != 0 ? entry_index(table, id) : FAULT_RULES;

    return i < FAULT_RULES ? &table->rules[i] : NULL;
}

static struct fault_rule *find_rule(struct fault_table *table, uint32_t id)
{
    const struct fault_rule *rule = fault_table_find(table, id);

    return rule != NULL ? &table->rules[rule - table->rules] : NULL;
}

bool fault_table_add(struct fault_table *table, const struct fault_rule *rule)
{
    unsigned int place = entry_index(table, 0);

    if (place == FAULT_RULES || fault_table_find(table, rule->id) != NULL) {
        return false;
    }
    table->rules[place] = *rule;
    count_active(table);
    return true;
}

bool fault_table_remove(struct fault_table *table, uint32_t id)
{
    struct fault_rule *rule = find_rule(table, id);

    if (rule == NULL) {
        return false;
    }
    /* The rules are asked in the order in which they were added. */
    memmove(rule, rule + 1,
            (size_t)(&table->rules[FAULT_RULES - 1] - rule) * sizeof(*rule));
    table->rules[FAULT_RULES - 1] = (struct fault_rule){0};
    count_active(table);
    return true;
}

bool fault_table_turn(struct fault_table *table, uint32_t id, bool is_on)
{
    struct fault_rule *rule = find_rule(table, id);

    if (rule == NULL) {
        return false;
    }
    rule->is_on = is_on;
    count_active(table);
    return true;
}
