/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests about the configuration: docs/management.md. */
#include "firmware/requests/mgmt_requests.h"

#include <string.h>

#include "firmware/hal/log.h"
#include "firmware/requests/parts.h"
#include "firmware/settings/config_text.h"
#include "firmware/settings/settings.h"

bool mgmt_config_read(void *ctx, const struct json_args *args, struct json *out,
                      struct mgmt_refusal *refusal)
{
    const struct settings *settings =
        ((const struct request_parts *)ctx)->settings;

    (void)args;
    (void)refusal;
    json_bool(out, "staged", settings->is_staged);
    json_begin_array(out, "keys");
    for (unsigned int i = 0; i < config_text_count(); i++) {
        struct config_line draft, saved, in_force;

        config_text_get(settings_draft(settings), i, &draft);
        config_text_get(&settings->saved, i, &saved);
        config_text_get(&settings->in_force, i, &in_force);
        json_begin_object(out, NULL);
        json_string(out, "key", draft.key);
        json_string(out, "draft", draft.value);
        json_string(out, "saved", saved.value);
        json_string(out, "in-force", in_force.value);
        json_bool(out, "live", config_text_is_live(draft.key));
        json_end_object(out);
    }
    json_end_array(out);
    return true;
}

/*
 * Refuse a request.  The text is copied, because it may not outlive this call.
 */
static bool refuse_request(struct mgmt_refusal *refusal, const char *code,
                           const char *text)
{
    refusal->code = code;
    log_format(refusal->text_buf, sizeof(refusal->text_buf), "%s", text);
    refusal->text = refusal->text_buf;
    return false;
}

bool mgmt_config_set(void *ctx, const struct json_args *args, struct json *out,
                     struct mgmt_refusal *refusal)
{
    struct settings *settings = ((const struct request_parts *)ctx)->settings;
    struct config changed = *settings_draft(settings);
    const char *key = json_get_string(args, "key", NULL);
    const char *value = json_get_string(args, "value", NULL);
    struct config_error error;

    if (key == NULL || value == NULL) {
        return refuse_request(refusal, "bad-argument",
                              "\"key\" and \"value\" have to be strings.");
    }
    if (!config_text_set(&changed, key, value, &error)) {
        return refuse_request(refusal, "bad-argument", error.text);
    }
    *settings_stage(settings) = changed;
    json_bool(out, "live", config_text_is_live(key));
    return true;
}

/* Append a mistake to the refusal's text, as far as there is room. */
static void add_mistake(void *ctx, const char *text)
{
    struct mgmt_refusal *refusal = ctx;
    size_t len = strlen(refusal->text_buf);

    log_format(refusal->text_buf + len, sizeof(refusal->text_buf) - len, "%s%s",
               len != 0 ? "; " : "", text);
}

/*
 * List the keys that this save changed and that take effect at the next start.
 */
static void put_later(struct json *out, const struct settings *settings,
                      const struct config *before)
{
    json_begin_array(out, "later");
    for (unsigned int i = 0; i < config_text_count(); i++) {
        struct config_line was, saved, in_force;

        config_text_get(before, i, &was);
        config_text_get(&settings->saved, i, &saved);
        config_text_get(&settings->in_force, i, &in_force);
        if (strcmp(was.value, saved.value) != 0 &&
            strcmp(saved.value, in_force.value) != 0) {
            json_string(out, NULL, saved.key);
        }
    }
    json_end_array(out);
}

bool mgmt_config_save(void *ctx, const struct json_args *args, struct json *out,
                      struct mgmt_refusal *refusal)
{
    struct settings *settings = ((const struct request_parts *)ctx)->settings;
    struct config before = settings->saved;

    (void)args;
    refusal->text_buf[0] = '\0';
    if (settings->is_staged) {
        switch (settings_replace(settings, &settings->staged, true, add_mistake,
                                 refusal)) {
        case SETTINGS_OK:
            break;
        case SETTINGS_NOT_SAVED:
            return refuse_request(refusal, "refused",
                                  "Writing the configuration to flash failed.");
        default:
            refusal->code = "bad-argument";
            refusal->text = refusal->text_buf;
            return false;
        }
    }
    put_later(out, settings, &before);
    return true;
}

bool mgmt_config_discard(void *ctx, const struct json_args *args,
                         struct json *out, struct mgmt_refusal *refusal)
{
    (void)args;
    (void)out;
    (void)refusal;
    settings_discard(((const struct request_parts *)ctx)->settings);
    return true;
}
