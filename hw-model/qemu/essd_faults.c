/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * essd-faults: the fault rules of a machine; the core is hw-model/fault.
 * Reference: docs/faults.md
 *
 * QEMU interface (the object is /machine/faults):
 *  + property "add", write-only: a rule as text, see fault_rule_parse()
 *  + properties "remove", "turn-on" and "turn-off", write-only: a rule's id
 *  + property "rules", read-only: the rules with their counters
 *
 * Rules are not saved with the machine, and a reset keeps them.  A rule that
 * cuts the power ends this process: see essd_sysctl_end_power().  If the board
 * has capacitors, the firmware can use their power first.
 */
#include "qemu/osdep.h"
#include "essd_faults.h"

#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/error-report.h"
#include "qemu/module.h"

#include "essd_sysctl.h"

struct EssdFaultsState {
    Object parent_obj;

    NotifierList changed;
    struct fault_table table;
};

static EssdFaultsState *essd_faults_find(void)
{
    Object *obj = object_resolve_path_type("", TYPE_ESSD_FAULTS, NULL);

    return obj ? ESSD_FAULTS(obj) : NULL;
}

struct fault_table *essd_faults_table(void)
{
    EssdFaultsState *s = essd_faults_find();

    return s ? &s->table : NULL;
}

void essd_faults_add_notifier(Notifier *notifier)
{
    EssdFaultsState *s = essd_faults_find();

    if (s) {
        notifier_list_add(&s->changed, notifier);
    }
}

void essd_faults_power_cut(void *ctx, uint32_t id)
{
    EssdSysctlState *sysctl =
        ESSD_SYSCTL(object_resolve_path_type("", TYPE_ESSD_SYSCTL, NULL));

    if (sysctl->is_failing) {
        return;
    }
    /* The supervisor looks for this line
     * (tools/essd/supervisor/fault_keeper.py). */
    info_report("fault rule %u cuts the power", id);
    if (sysctl->plp) {
        essd_sysctl_fail_power(sysctl);
        return;
    }
    essd_sysctl_end_power();
}

static void essd_faults_add(Object *obj, const char *value, Error **errp)
{
    EssdFaultsState *s = ESSD_FAULTS(obj);
    struct fault_rule rule;
    const char *wrong;

    if (!fault_rule_parse(value, &rule, &wrong)) {
        error_setg(errp, "not a fault rule: \"%s\"", wrong);
    } else if (!fault_table_add(&s->table, &rule)) {
        error_setg(errp,
                   "the rule cannot be added: a rule with id %u exists, or "
                   "there are %d rules already",
                   rule.id, FAULT_RULES);
    }
    notifier_list_notify(&s->changed, NULL);
}

static void essd_faults_change(Object *obj, Visitor *v, const char *name,
                               void *opaque, Error **errp)
{
    EssdFaultsState *s = ESSD_FAULTS(obj);
    uint32_t id;
    bool is_there;

    if (!visit_type_uint32(v, name, &id, errp)) {
        return;
    }
    if (g_str_equal(name, "remove")) {
        is_there = fault_table_remove(&s->table, id);
    } else {
        is_there =
            fault_table_turn(&s->table, id, g_str_equal(name, "turn-on"));
    }
    if (!is_there) {
        error_setg(errp, "there is no fault rule with id %u", id);
    }
    notifier_list_notify(&s->changed, NULL);
}

static bool essd_faults_visit_rule(Visitor *v, struct fault_rule *rule,
                                   Error **errp)
{
    bool done;

    if (!visit_start_struct(v, NULL, NULL, 0, errp)) {
        return false;
    }
    done = visit_type_uint32(v, "id", &rule->id, errp) &&
           visit_type_bool(v, "on", &rule->is_on, errp) &&
           visit_type_uint64(v, "matched", &rule->trigger.matched, errp) &&
           visit_type_uint64(v, "fired", &rule->trigger.fired, errp);
    visit_end_struct(v, NULL);
    return done;
}

static void essd_faults_get_rules(Object *obj, Visitor *v, const char *name,
                                  void *opaque, Error **errp)
{
    EssdFaultsState *s = ESSD_FAULTS(obj);

    if (!visit_start_list(v, name, NULL, 0, errp)) {
        return;
    }
    for (unsigned i = 0; i < FAULT_RULES && s->table.rules[i].id != 0; i++) {
        if (!essd_faults_visit_rule(v, &s->table.rules[i], errp)) {
            break;
        }
    }
    visit_end_list(v, NULL);
}

static void essd_faults_init(Object *obj)
{
    notifier_list_init(&ESSD_FAULTS(obj)->changed);
}

static void essd_faults_class_init(ObjectClass *oc, void *data)
{
    object_class_property_add_str(oc, "add", NULL, essd_faults_add);
    object_class_property_add(oc, "remove", "uint32", NULL, essd_faults_change,
                              NULL, NULL);
    object_class_property_add(oc, "turn-on", "uint32", NULL, essd_faults_change,
                              NULL, NULL);
    object_class_property_add(oc, "turn-off", "uint32", NULL,
                              essd_faults_change, NULL, NULL);
    object_class_property_add(oc, "rules", "list", essd_faults_get_rules, NULL,
                              NULL, NULL);
}

static const TypeInfo essd_faults_types[] = {
    {
        .name = TYPE_ESSD_FAULTS,
        .parent = TYPE_OBJECT,
        .instance_size = sizeof(EssdFaultsState),
        .instance_init = essd_faults_init,
        .class_init = essd_faults_class_init,
    },
};

DEFINE_TYPES(essd_faults_types)
