/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cockpit's page: fault rules are composed, tried, saved and switched here.  The
 * words that a rule is composed of come from /rules.json, those of essd faults.
 */
"use strict";

const CONDITIONS_MAX = 8;
// To begin with; [title, rule].
const EXAMPLES = [
    ["Slow reads", "nvme opcode=read do delay=20ms"],
    ["Every tenth read fails", "nvme opcode=read when every=10 do status=internal-error"],
    ["One frame in a thousand is lost", "wire when probability=0.001 seed=7 do drop"],
    ["A die dies at the next program", "nand operation=program when nth=1 do die"],
    ["Bits of the flash are wrong", "nand operation=read when every=100 do bits=60"],
    ["The power fails during a program", "nand operation=program when nth=100 do power-cut"]];
// They cannot be taken back, so the page asks before it adds such a rule.
const FATAL = ["die", "power-cut"];

let words = null;               // of /rules.json
let loading = null;             // their request
let states_shown = "";          // of the drives, whose names and states the form's button has
let names_made = 0;             // lists of suggestions, each with a number of its own

function read_line(line) {
    const [head, tail] = line.split(/ do /), [place, ...rest] = head.split(" ");
    const at = rest.indexOf("when"), [action, ...argument] = tail.split("=");
    const pairs = (list) => list.map((word) => [word.slice(0, word.indexOf("=")),
                                                word.slice(word.indexOf("=") + 1)]);

    return {place, match: pairs(at < 0 ? rest : rest.slice(0, at)),
            when: pairs(at < 0 ? [] : rest.slice(at + 1)), action,
            argument: argument.join("=")};
}

function line_of(rule) {
    const pairs = (list) => list.filter(([key, value]) => key && value.trim()).map(
        ([key, value]) => `${key}=${value.trim()}`);
    const match = pairs(rule.match), when = pairs(rule.when);

    return [rule.place, ...match, ...(when.length ? ["when", ...when] : []), "do",
            rule.action + (rule.argument.trim() ? `=${rule.argument.trim()}` : "")].join(" ");
}

/* ---- The form. */

function make_option(value, parent, text = value) {
    const option = make("option", "", parent);

    [option.value, option.textContent] = [value, text];
}

function fill_select(select, values, value) {
    select.textContent = "";
    values.forEach((one) => make_option(one, select));
    select.value = values.includes(value) ? value : values[0];
}

/* A field for a value, with its names as suggestions. */
function fill_names(input, names) {
    if (!input.names) {
        input.names = make("datalist", "", input.parentElement);
        names_made += 1;
        input.names.id = `names-${names_made}`;
        input.setAttribute("list", input.names.id);
    }
    input.names.textContent = "";
    names.forEach((name) => make_option(name, input.names));
    input.placeholder = names.length ? names.slice(0, 3).join(", ") : "number";
}

/* A row "KEY = VALUE" of the conditions or of `when`. */
function make_pair(id, key, value) {
    const row = make("div", "pair", by_id(id));
    const select = make("select", "", row), input = make("input", "", row);
    const remove = make("button", "", row);

    fill_select(select, id === "when" ? words.when : Object.keys(place_of_form().keys), key);
    select.setAttribute("aria-label", id === "when" ? "when" : "condition");
    input.setAttribute("aria-label", "value");
    input.value = value;
    remove.type = "button";
    remove.textContent = "✕";
    remove.setAttribute("aria-label", "Remove this line");
    remove.onclick = () => { row.remove(); show_line(); };
    const suggest = () => fill_names(input, id === "when" ? []
        : place_of_form().keys[select.value]);

    select.onchange = () => { input.value = ""; suggest(); show_line(); };
    suggest();
}

function place_of_form() {
    return words.places[by_id("place").value];
}

function pairs_of_form(id) {
    return [...by_id(id).children].map((row) => [row.children[0].value, row.children[1].value]);
}

function rule_of_form() {
    return {place: by_id("place").value, match: pairs_of_form("match"),
            when: pairs_of_form("when"), action: by_id("action").value,
            argument: by_id("argument").value};
}

function show_action() {
    const {takes, names} = place_of_form().actions[by_id("action").value];

    by_id("argument").hidden = takes === "";
    if (takes === "") {
        by_id("argument").value = "";
    }
    fill_names(by_id("argument"), names);
}

function show_line() {
    const rule = rule_of_form(), line = line_of(rule), name = by_id("rule-name").value.trim();
    const part = by_id("fault-drive").value || chosen;
    const is_later = last_event !== null && is_off(last_event.frame, part);
    const words_of = is_later ? `Turn on when ${part} starts` : `Turn on for ${part}`;

    set_text(by_id("line"), line);
    set_button(by_id("add-rule"), words_of,
               {do: "fault-add", part, rule: line, name}, FATAL.includes(rule.action)
                   ? `${line}: when this rule fires, it cannot be taken back. ${words_of}?` : "");
    set_button(by_id("save-rule"), "Save", {do: "rule-save", rule: line, name});
    by_id("save-rule").disabled = name === "";
}

function fill_form(rule, name = "") {
    by_id("place").value = rule.place;
    for (const id of ["match", "when"]) {
        by_id(id).textContent = "";
        rule[id].forEach(([key, value]) => make_pair(id, key, value));
    }
    fill_select(by_id("action"), Object.keys(place_of_form().actions), rule.action);
    by_id("argument").value = rule.argument;
    by_id("rule-name").value = name;
    show_action();
    show_line();
}

function add_pair(id) {
    if (by_id(id).children.length < CONDITIONS_MAX) {
        make_pair(id, "", "");
    }
}

async function load_words() {
    words = await (await fetch("/rules.json")).json();
    fill_select(by_id("place"), Object.keys(words.places), "nvme");
    make_option("", by_id("example"), "an example …");
    EXAMPLES.forEach(([title, line]) => make_option(line, by_id("example"), title));
    fill_form(read_line(EXAMPLES[0][1]));
}

/* Prepare the form once; the cockpit is asked again if it did not answer. */
async function open_form() {
    loading = loading || load_words();
    try {
        await loading;
    } catch (error) {
        loading = null;
        say(`The words of rules are missing: ${error}`);
    }
}

/* ---- The rules of the drives, and the saved ones. */

/* The counters of a rule begin again when its drive starts: for a drive that is off, only how
 * often the rule has cut the power is known. */
function cells_of_rule(rule, name, is_later) {
    return [name, rule.name, {text: rule.rule, style: rule.on ? "code warn" : "code off"},
            rule.on ? {text: is_later ? "acts when the drive starts" : "on", style: "warn"}
                : {text: "off", style: "off"},
            is_later ? null : rule.matched, is_later ? rule.fired || null : rule.fired,
            {button: rule.on ? "Turn off" : "Turn on",
             question: rule.on ? "" : `Turn on the fault rule ${rule.name} of ${name}` +
                 `${is_later ? ", from its next start on" : ""}? ` +
                 `It makes things fail: ${rule.rule}`,
             action: {do: "fault", part: name, name: rule.name, on: !rule.on}},
            {button: "Remove", action: {do: "fault-remove", part: name, name: rule.name}}];
}

function show_rules(event) {
    const frame = event.frame, drives = drives_of(frame);
    const states = drives.map((name) => `${name} ${is_off(frame, name)}`).join();

    set_text(by_id("saved-why"), event["saved-why"] || "");
    show_table("faults", ["drive", "name", "rule", "state", "matched", "fired", "", ""],
        drives.flatMap((name) => rules_of(frame, name).map((rule) => ({
            key: `${name} ${rule.name}`,
            cells: cells_of_rule(rule, name, is_off(frame, name))}))));
    show_table("saved", ["saved", "rule", "", ""], (event.saved || []).map((rule) => ({
        key: rule.name, cells: [
            rule.name, {text: rule.rule, style: "code"},
            {button: "Use", action: {use: rule.rule, name: rule.name}},
            {button: "Forget", action: {do: "rule-forget", name: rule.name}}]})));
    const is_new = show_choices("fault-drive", drives) || states !== states_shown;

    states_shown = states;
    if (is_new && words !== null) {
        show_line();
    }
    by_id("fault-drive-label").hidden = drives.length < 2;
}

function listen_for_faults() {
    by_id("compose").addEventListener("input", show_line);
    by_id("place").addEventListener("change", () => fill_form({
        place: by_id("place").value, match: [], when: [], argument: "",
        action: Object.keys(place_of_form().actions)[0]}));
    by_id("action").addEventListener("change", () => { show_action(); show_line(); });
    by_id("add-match").addEventListener("click", () => add_pair("match"));
    by_id("add-when").addEventListener("click", () => add_pair("when"));
    by_id("example").addEventListener("change", (event) => {
        if (event.target.value) {
            fill_form(read_line(event.target.value));
            event.target.value = "";
        }
    });
    by_id("composer").addEventListener("toggle", open_form);
}
