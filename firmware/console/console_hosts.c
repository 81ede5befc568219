/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/console/console_hosts.h"

#include <string.h>

static void say_result(struct log *log, enum host_list_result result)
{
    log_text(log, "%s%s", result == HOST_OK ? "ok: " : "error: ",
             host_list_result_text(result));
}

static void say_hosts(struct log *log, const struct host_table *table)
{
    const struct host_list *list = &table->list;

    log_text(log, "hosts: %s; %u of %u entries",
             list->is_exclusive ? "only hosts on the list may connect"
                                : "every host may connect",
             list->count, HOSTS_MAX);
    for (uint16_t i = 0; i < list->count; i++) {
        const struct host_entry *entry = &list->entry[i];

        const char *tls =
            entry->tls_key.len != 0 ? "; it has a key of TLS" : "";

        if (entry->host_key.len == 0) {
            log_text(log, "hosts: %s, without a secret%s", entry->nqn, tls);
        } else {
            log_text(log, "hosts: %s, authenticates, at least %s and %s%s%s",
                     entry->nqn, auth_hash_name(entry->least_hash),
                     auth_dh_name(entry->least_dh),
                     entry->ctrl_key.len != 0
                         ? "; the drive has a secret towards it"
                         : "",
                     tls);
        }
    }
}

/* `host secret NQN SECRET` and `host drive-secret NQN SECRET`; the secret may
 * be "none". */
static void change_secret(struct log *log, struct host_table *table,
                          char **words, bool is_drive)
{
    const char *secret = strcmp(words[3], "none") == 0 ? "" : words[3];
    const struct host_change change = {
        .host_secret = is_drive ? NULL : secret,
        .ctrl_secret = is_drive ? secret : NULL,
    };

    say_result(log, host_table_set(table, words[2], &change));
    memset(words[3], 0, strlen(words[3]));
}

/* `host tls-key NQN KEY`; the key may be "none". */
static void change_tls_key(struct log *log, struct host_table *table,
                           char **words)
{
    const struct host_change change = {
        .tls_key = strcmp(words[3], "none") == 0 ? "" : words[3],
    };

    say_result(log, host_table_set(table, words[2], &change));
    memset(words[3], 0, strlen(words[3]));
}

/* Take the next word of a line.  @return its length, 0 at the end */
static size_t take_word(const char **at, const char *end)
{
    const char *word;

    while (*at < end && **at == ' ') {
        (*at)++;
    }
    for (word = *at; *at < end && **at != ' ';) {
        (*at)++;
    }
    return (size_t)(*at - word);
}

static bool is_word(const char *end, size_t len, const char *word)
{
    return len == strlen(word) && memcmp(end - len, word, len) == 0;
}

bool console_hosts_is_secret(const char *line, size_t len)
{
    const char *end = line + len;
    size_t word = take_word(&line, end);

    if (!is_word(line, word, "host")) {
        return false;
    }
    word = take_word(&line, end);
    if (!is_word(line, word, "secret") &&
        !is_word(line, word, "drive-secret") &&
        !is_word(line, word, "tls-key")) {
        return false;
    }
    return take_word(&line, end) != 0 && line < end; /* after the name */
}

void console_hosts(struct log *log, struct host_table *table, char **words,
                   unsigned int count)
{
    const char *verb = count > 1 ? words[1] : "";
    bool is_on = count > 2 && strcmp(words[2], "on") == 0;

    if (count == 1) {
        say_hosts(log, table);
    } else if (strcmp(verb, "add") == 0 && count >= 3) {
        const struct host_change change = {
            .least_hash = count > 3 ? words[3] : NULL,
            .least_dh = count > 4 ? words[4] : NULL,
        };

        say_result(log, host_table_set(table, words[2], &change));
    } else if (strcmp(verb, "remove") == 0 && count == 3) {
        say_result(log, host_table_remove(table, words[2]));
    } else if (strcmp(verb, "secret") == 0 && count == 4) {
        change_secret(log, table, words, false);
    } else if (strcmp(verb, "drive-secret") == 0 && count == 4) {
        change_secret(log, table, words, true);
    } else if (strcmp(verb, "tls-key") == 0 && count == 4) {
        change_tls_key(log, table, words);
    } else if (strcmp(verb, "exclusive") == 0 && count == 3 &&
               (is_on || strcmp(words[2], "off") == 0)) {
        say_result(log, host_table_set_exclusive(table, is_on));
    } else {
        log_text(log, "error: host [add NQN [HASH [GROUP]] | remove NQN | "
                      "secret NQN SECRET|none | drive-secret NQN SECRET|none | "
                      "tls-key NQN KEY|none | "
                      "exclusive on|off]");
    }
}
