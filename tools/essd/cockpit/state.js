/* SPDX-License-Identifier: BSD-2-Clause */
/* The cockpit's page: what a frame says of parts and drives, and what is wrong. */
"use strict";

const DEAD_NAMED = 3;           // dead dies of a drive that are named one by one
const SPARE_THRESHOLD = 10;     // percent; SMART warns if less of the spare flash is left
const WARNING_WORDS = {
    "temperature": "temperature is outside its limits",
    "reliability": "medium or a sensor is not reliable",
    "read-only": "drive takes no more writes",
    "volatile-memory": "capacitors cannot save the memory"};
const seen = new Map();         // the last answer of each drive, by its name
let chosen = "";                // the drive that picture, charts and health are of

function names_of(frame, ...kinds) {
    return Object.keys(frame.parts).filter((name) => kinds.includes(frame.parts[name].kind));
}

function drives_of(frame) {
    return names_of(frame, "drive");
}

/* A part's state in words, and its style: good, warn, bad or off. */
function state_of(part) {
    let words = part.state, style = part.state === "running" ? "good" : "off";

    if (["host", "peer"].includes(part.kind) && part.state === "running") {
        [words, style] = part.ready ? ["ready", "good"] : ["starting", "warn"];
    }
    if (part.state === "crashed") {
        style = "bad";
    }
    if (part.halted) {
        [words, style] = [words + ", halted", "warn"];
    }
    return {text: (words + " " + part.why).trim(), style};
}

/* What a drive has said in this frame; or in the last one that it was in, for a drive
 * that is off keeps its place. */
function drive_of(frame, name) {
    const found = frame.drives[name] || {};
    const before = seen.get(name) || {};

    if (Object.keys(found.counters || {}).length !== 0) {
        seen.set(name, found);
        return {...found, is_live: true};
    }
    return {counters: {}, ports: [], ...before, rates: {}, latency: {}, warnings: null,
            temperatures: [], is_live: false, why: found.why || ""};
}

/* The fault rules of a drive.  The supervisor keeps those of a drive that is off, and they
 * act as soon as it starts. */
function rules_of(frame, name) {
    const kept = (frame["kept-rules"] || {})[name];

    return kept || drive_of(frame, name).faults || [];
}

function is_off(frame, name) {
    return ["off", "crashed"].includes((frame.parts[name] || {}).state);
}

function layout_of(frame, name) {
    const drive = drive_of(frame, name), flash = drive["flash-map"] || {};
    const known = (frame.layout || {})[name] || {};

    return {ports: known.ports || drive.ports.map((port) => port.port),
            channels: flash.channels || known.channels || 0,
            dies: flash.dies || known.dies || 0};
}

function die_name(number, dies) {
    return `channel ${Math.floor(number / dies)} die ${number % dies}`;
}

function dead_dies_of(drive) {
    const flash = drive["flash-map"];

    return flash ? flash["dead-dies"].map((number) => die_name(number, flash.dies)) : [];
}

/* SMART's critical warnings in words, for somebody who does not know its terms. */
function warning_words(drive) {
    const flash = drive.counters.flash || {};

    return (drive.warnings || []).map((warning) => warning !== "spare"
        ? WARNING_WORDS[warning] || warning
        : flash["spare-percent"] === 0 ? "spare flash is used up"
            : "spare flash is nearly used up").join(", ");
}

/* "port 1 of drive"; of an end outside, its name. */
function end_of(frame, text) {
    const at = text.lastIndexOf(":"), part = text.slice(0, at);

    return frame.parts[part] ? {part, port: Number(text.slice(at + 1)), text}
                             : {part: "", port: 0, text};
}

/* ---- What is wrong: each {text, style, href, row}, the worst first. */

function problems_of_drive(frame, name) {
    const part = frame.parts[name], drive = drive_of(frame, name), found = [];
    const add = (style, text, href, row) => found.push({style, text, href, row, part: name});

    const dead = dead_dies_of(drive), are_many = dead.length > DEAD_NAMED;

    for (const die of are_many ? [] : dead) {
        add("bad", `${name}: ${die} is dead`, "#flash");
    }
    if (are_many) {
        const {channels, dies} = drive["flash-map"];

        add("bad", `${name}: ${dead.length} of ${channels * dies} dies are dead`, "#flash");
    }
    if ((drive.warnings || []).length !== 0) {
        add("bad", `${name}: SMART warns: ${warning_words(drive)}`, "#health");
    }
    if (part.state !== "running" || part.halted) {
        const state = state_of(part);

        add(state.style === "off" ? "warn" : state.style, `${name} is ${state.text}`,
            "#parts", name);
    } else if (drive.why) {
        add("bad", `${name} does not answer: ${drive.why}`, "#parts", name);
    }
    for (const port of drive.is_live ? drive.ports : []) {
        if (!port.up) {
            add("bad", `${name}: port ${port.port} is down: ${port.reason}`, "#ports",
                `${name}:${port.port}`);
        }
    }
    const rules = rules_of(frame, name).filter((rule) => rule.on);

    if (rules.length !== 0) {
        add("warn", `${name}: ${of_number(rules.length, "fault rule")} ` +
            (is_off(frame, name) ? `${rules.length === 1 ? "acts" : "act"} when it starts`
                : `${rules.length === 1 ? "is" : "are"} on`), "#faults-section");
    }
    return found;
}

function problems_of(frame) {
    const found = drives_of(frame).flatMap((name) => problems_of_drive(frame, name));

    for (const name of names_of(frame, "host", "peer", "switch")) {
        const state = state_of(frame.parts[name]);

        if (["bad", "off"].includes(state.style)) {
            found.push({style: "bad", text: `${name} is ${state.text}`, href: "#parts",
                        row: name});
        }
    }
    for (const cable of Object.values(frame.cables)) {
        if (!cable.plugged) {
            found.push({style: "bad", text: `The cable from ${cable.ends[0]} to ` +
                        `${cable.ends[1]} is pulled`, href: "#cables", row: cable.number});
        }
    }
    return [...found.filter((one) => one.style === "bad"),
            ...found.filter((one) => one.style !== "bad")];
}
