/* SPDX-License-Identifier: BSD-2-Clause */
/* The cockpit's page: numbers as text, with units by Intl.NumberFormat. */
"use strict";

const DASH = "–";
const formats = new Map();      // of Intl, which are slow to make, by their options

function format_of(options) {
    const key = JSON.stringify(options);

    if (!formats.has(key)) {
        formats.set(key, new Intl.NumberFormat("en", options));
    }
    return formats.get(key);
}

function is_known(value) {
    return value !== null && value !== undefined;
}

/* In the largest of the units, each a thousand times the one before, of which the
 * value has at least one after it was rounded. */
function in_unit(value, units) {
    let at = 0;

    if (!is_known(value)) {
        return DASH;
    }
    while (at < units.length - 1 && Math.abs(value) >= 999.5) {
        value /= 1000;
        at += 1;
    }
    return format_of({style: "unit", unit: units[at], maximumSignificantDigits: 3})
        .format(value);
}

function bytes_per_s(value) {
    return in_unit(value, ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"].map(
        (unit) => `${unit}-per-second`));
}

function short_time(value_us) {
    return in_unit(value_us, ["microsecond", "millisecond", "second"]);
}

/* A number of something: 18.4K. */
function short_number(value) {
    return !is_known(value) ? DASH
        : format_of({notation: "compact", maximumSignificantDigits: 3}).format(value);
}

function whole_number(value) {
    return is_known(value) ? format_of({maximumFractionDigits: 0}).format(value) : DASH;
}

function percent(value) {
    return is_known(value) ? format_of({style: "unit", unit: "percent",
                                        maximumFractionDigits: 0}).format(value) : DASH;
}

function degrees(value) {
    return is_known(value) ? format_of({style: "unit", unit: "celsius",
                                        maximumFractionDigits: 0}).format(value) : DASH;
}

/* How long something has run: the two largest units. */
function duration(ms) {
    const parts = [];
    let rest = Math.floor(ms / 1000);

    for (const [unit, seconds] of [["day", 86400], ["hour", 3600], ["minute", 60],
                                   ["second", 1]]) {
        const count = Math.floor(rest / seconds);

        rest -= count * seconds;
        if (count !== 0 || (unit === "second" && parts.length === 0)) {
            parts.push(format_of({style: "unit", unit, unitDisplay: "short"}).format(count));
        }
    }
    return parts.slice(0, 2).join(" ");
}

function of_number(count, word) {
    return `${whole_number(count)} ${word}${count === 1 ? "" : "s"}`;
}

function clock(seconds) {
    return new Date(seconds * 1000).toLocaleTimeString("en", {hourCycle: "h23"});
}
