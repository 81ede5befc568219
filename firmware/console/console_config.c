/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/console/console_config.h"

#include <string.h>

#define say(log, ...) log_text((log), __VA_ARGS__)

static const char usage[] =
    "error: usage: config [get KEY | set KEY VALUE | save | discard]";

/*
 * A note such as " (saved: VALUE)".  It is printed after the value that a key
 * has in the draft if the saved value, or the one in force, differs from it.
 */
struct note {
    char text[CONFIG_VALUE_MAX + 16];
};

static struct note note_pending(const char *what, const struct config *config,
                                unsigned int index,
                                const struct config_line *shown)
{
    struct config_line line;
    struct note out = {""};

    config_text_get(config, index, &line);
    if (strcmp(line.value, shown->value) != 0) {
        log_format(out.text, sizeof(out.text), " (%s: %s)", what, line.value);
    }
    return out;
}

static void show_all(struct log *log, const struct settings *settings)
{
    for (unsigned int i = 0; i < config_text_count(); i++) {
        struct config_line line;

        config_text_get(settings_draft(settings), i, &line);
        say(log, "%s %s%s%s%s", line.key, line.value,
            config_text_is_live(line.key) ? "" : " (from the next start)",
            note_pending("saved", &settings->saved, i, &line).text,
            note_pending("in force", &settings->in_force, i, &line).text);
    }
    if (settings->is_staged) {
        say(log, "not saved yet: use config save or config discard");
    }
}

static void run_get(struct log *log, const struct settings *settings,
                    const char *key)
{
    struct config_line line;
    struct config_error error;

    if (config_text_find(settings_draft(settings), key, &line, &error)) {
        say(log, "%s", line.value);
    } else {
        say(log, "error: %s", error.text);
    }
}

static void run_set(struct log *log, struct settings *settings, const char *key,
                    const char *value)
{
    struct config changed = *settings_draft(settings);
    struct config_error error;

    if (!config_text_set(&changed, key, value, &error)) {
        say(log, "error: %s", error.text);
        return;
    }
    *settings_stage(settings) = changed;
    say(log, "ok: config save puts it in force %s",
        config_text_is_live(key) ? "at once" : "from the drive's next start");
}

static void say_mistake(void *ctx, const char *text)
{
    say((struct log *)ctx, "error: %s", text);
}

/* List the changed keys that take effect at the next start. */
static void say_later(struct log *log, const struct settings *settings,
                      const struct config *before)
{
    for (unsigned int i = 0; i < config_text_count(); i++) {
        struct config_line was, saved, in_force;

        config_text_get(before, i, &was);
        config_text_get(&settings->saved, i, &saved);
        config_text_get(&settings->in_force, i, &in_force);
        if (strcmp(was.value, saved.value) != 0 &&
            strcmp(saved.value, in_force.value) != 0) {
            say(log, "%s: saved; in force from the drive's next start",
                saved.key);
        }
    }
}

static void run_save(struct log *log, struct settings *settings)
{
    struct config before = settings->saved;

    if (!settings->is_staged) {
        say(log, "ok: nothing to save");
        return;
    }
    switch (
        settings_replace(settings, &settings->staged, true, say_mistake, log)) {
    case SETTINGS_OK:
        say_later(log, settings, &before);
        say(log, "ok");
        break;
    case SETTINGS_NOT_SAVED:
        say(log, "error: writing to flash failed");
        break;
    case SETTINGS_TOO_OFTEN:
        say(log, "error: too many writes to flash: try again in an hour");
        break;
    default: /* config_check() has printed the mistakes */
        break;
    }
}

void console_config(struct log *log, struct settings *settings, char **words,
                    unsigned int count)
{
    const char *what = count > 1 ? words[1] : "";

    if (count == 1) {
        show_all(log, settings);
    } else if (count == 3 && strcmp(what, "get") == 0) {
        run_get(log, settings, words[2]);
    } else if (count == 4 && strcmp(what, "set") == 0) {
        run_set(log, settings, words[2], words[3]);
    } else if (count == 2 && strcmp(what, "save") == 0) {
        run_save(log, settings);
    } else if (count == 2 && strcmp(what, "discard") == 0) {
        settings_discard(settings);
        say(log, "ok");
    } else {
        say(log, "%s", usage);
    }
}
