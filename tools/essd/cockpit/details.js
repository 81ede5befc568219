/* SPDX-License-Identifier: BSD-2-Clause */
/* The cockpit's page: tables, consoles and the trace, which are there when they are opened. */
"use strict";

const LOG_CHARACTERS = 60000;

/* ---- Tables. */

/* Rows of all drives: `rows_of` makes them from a drive and its name. */
function of_drives(frame, rows_of) {
    return drives_of(frame).flatMap((name) => rows_of(drive_of(frame, name), name));
}

function counted(frame, key) {
    return of_drives(frame, (drive, name) =>
        Object.entries(drive.counters[key] || {}).filter(([, value]) => value !== 0).map(
            ([word, value]) => ({key: `${name} ${word}`, cells: [name, word, value]})));
}

function rows_of_table(frame, table, cells_of) {
    return of_drives(frame, (drive, name) => {
        const found = drive[table] || {rows: []};
        const rows = found.rows.map((row, i) => ({key: `${name} ${i}`,
                                                  cells: cells_of(row, name)}));

        return found.more ? [...rows, {key: `${name} more`, cells: [name, "and more"]}] : rows;
    });
}

function cells_of_port(port, name, is_live) {
    return [
        `${name}:${port.port}`,
        !is_live ? {text: "no answer", style: "off"} : port.up ? {text: "up", style: "good"}
            : {text: `down: ${port.reason}`, style: "bad"},
        `${port.speed} Gb/s`, port.fec, bytes_per_s(is_live ? port["in-bytes-per-s"] : null),
        bytes_per_s(is_live ? port["out-bytes-per-s"] : null),
        port.counters.aFrameCheckSequenceErrors, port.counters.aFECCorrectedBlocks,
        port.counters.aFECUncorrectableBlocks, port.counters.linkChanges];
}

function cable_button(cable) {
    return {button: cable.plugged ? "Pull" : "Plug",
            question: cable.plugged ? `Pull the cable from ${cable.ends[0]} to ` +
                `${cable.ends[1]}? Connections through it end.` : "",
            action: {do: "cable", number: cable.number, on: !cable.plugged}};
}

function show_links(frame) {
    show_table("ports", ["port", "link", "speed", "FEC", "in", "out", "bad FCS",
                         "corrected", "uncorrectable", "link changes"],
        of_drives(frame, (drive, name) => drive.ports.map((port) => ({
            key: `${name}:${port.port}`, cells: cells_of_port(port, name, drive.is_live)}))));
    show_table("cables", ["from", "to", "state", ""],
        Object.values(frame.cables).map((cable) => ({key: cable.number, cells: [
            cable.ends[0], cable.ends[1],
            cable.plugged ? {text: "plugged", style: "good"} : {text: "pulled", style: "bad"},
            cable_button(cable)]})));
    show_table("neighbours", ["port", "system", "chassis", "its port"],
        of_drives(frame, (drive, name) => (drive.neighbours || []).flatMap((entry) =>
            entry.neighbours.map((found, i) => ({key: `${name}:${entry.port} ${i}`, cells: [
                `${name}:${entry.port}`, found.system, found.chassis, found.port]})))));
}

function show_tables(frame) {
    show_links(frame);
    show_table("parts", ["part", "state", "CPU %", "MiB", "restarts", "PID"],
        Object.entries(frame.parts).map(([name, part]) => ({key: name, cells: [
            name, state_of(part),
            part["cpu-percent"] === null ? null : Math.round(part["cpu-percent"]),
            part["memory-bytes"] === null ? null : Math.round(part["memory-bytes"] / 1048576),
            part.restarts.length, part.pid]})));
    show_table("controllers", ["drive", "controller", "state", "queues", "host"],
        rows_of_table(frame, "controllers", (row, name) => [
            name, row.cntlid, row.state, row["queue-pairs"], row.hostnqn]));
    show_table("queues", ["drive", "QPN", "queue", "state", "peer", "entries", "in flight"],
        rows_of_table(frame, "queue-pairs", (row, name) => [
            name, row.qpn, row.qid, row.state, row.peer, row.entries, row["in-flight"]]));
    show_table("pools", ["drive", "pool", "used", "of"],
        of_drives(frame, (drive, name) => Object.entries(drive.pools || {}).filter(
            ([, pool]) => pool.used !== 0).map(([word, pool]) => ({
                key: `${name} ${word}`, cells: [name, word, pool.used, pool.all]}))));
    for (const id of ["media", "flash-counters", "rnic", "tcp"]) {
        show_table(id, ["drive", "counter", "value"], counted(frame, id.split("-")[0]));
    }
}

/* ---- Logs. */

const logs = new Map();         // of the UARTs, by part

function append_log(element, text) {
    const is_at_end = element.scrollTop + element.clientHeight >= element.scrollHeight - 20;

    element.textContent = (element.textContent + text).slice(-LOG_CHARACTERS);
    if (is_at_end) {
        element.scrollTop = element.scrollHeight;
    }
}

function take_uart(texts) {
    const part = by_id("uart-part");

    for (const [name, text] of Object.entries(texts)) {
        logs.set(name, ((logs.get(name) || "") + text).slice(-LOG_CHARACTERS));
        if (name === part.value) {
            append_log(by_id("uart"), text);
        }
    }
}

function choose_uart() {
    by_id("uart").textContent = "";
    append_log(by_id("uart"), logs.get(by_id("uart-part").value) || "");
}

function show_choices(id, names) {
    const before = by_id(id).value;

    keep_children(by_id(id), names, (name) => {
        const option = document.createElement("option");

        option.value = option.textContent = name;
        return option;
    });
    return by_id(id).value !== before;
}

function show_logs(event) {
    const names = Object.keys(event.frame.parts), drives = drives_of(event.frame);

    show_choices("trace-part", drives);
    if (show_choices("uart-part", [...drives, ...names.filter((name) =>
        !drives.includes(name))])) {
        choose_uart();
    }
    by_id("trace-on").checked = event.tracing !== "";
    for (const line of event.trace) {
        append_log(by_id("trace"), `${line}\n`);
    }
}
