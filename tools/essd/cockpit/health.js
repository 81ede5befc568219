/* SPDX-License-Identifier: BSD-2-Clause */
/* The cockpit's page: the row of all drives, what is wrong, and the chosen drive's health. */
"use strict";

/* ---- What is wrong, first thing on the page. */

function show_problems(frame) {
    const found = problems_of(frame), worst = found.length ? found[0].style : "good";
    const count = found.filter((one) => one.style === worst).length;

    set_text(by_id("verdict"), found.length === 0 ? "Nothing is wrong"
        : of_number(count, worst === "bad" ? "problem" : "notice"), `verdict ${worst}`);
    keep_children(by_id("problems"), [...found.keys()], () => {
        const item = make("li", "");

        item.link = make("a", "", item);
        return item;
    }).forEach((item, i) => {
        const {style, text, href, row} = found[i];

        set_text(item.link, text, style);
        set_all(item.link, {href});
        [item.link.row, item.link.problem_of] = [row, found[i].part];
    });
    by_id("problems").hidden = found.length === 0;
}

/* ---- All drives, if there are several. */

function make_tile(name) {
    const tile = make("button", "tile");

    tile.name_line = make("b", "", tile);
    tile.state = make("span", "", tile);
    tile.load = make("span", "facts", tile);
    tile.drive = name;
    return tile;
}

function show_fleet(frame) {
    const names = drives_of(frame);

    if (!names.includes(chosen)) {
        chosen = names[0] || "";
    }
    by_id("fleet-section").hidden = names.length < 2;
    keep_children(by_id("fleet"), names.length < 2 ? [] : names, make_tile).forEach((tile, i) => {
        const name = names[i], rates = drive_of(frame, name).rates || {};
        const bad = problems_of_drive(frame, name).filter((one) => one.style === "bad");
        const state = state_of(frame.parts[name]);

        set_text(tile.name_line, name);
        set_text(tile.state, bad.length ? bad[0].text.slice(name.length).replace(/^: /, "").trim()
            : state.text, bad.length ? "bad" : state.style);
        set_text(tile.load, `${is_known(rates["read-iops"])
            ? short_number(rates["read-iops"] + rates["write-iops"]) : DASH} IOPS`);
        set_all(tile, {"aria-pressed": name === chosen, "class":
            `tile ${bad.length ? "bad" : state.style}`});
    });
}

/* ---- The chosen drive's health. */

/* What media errors are, and which blocks have failed: a dead die's count among them. */
function media_note(flash, dead) {
    const failed = flash ? flash["failed-blocks"] : 0;
    const blocks = `${of_number(failed, "block")} of the flash ${failed === 1 ? "has" : "have"} ` +
        "failed" + (dead.length === 0 ? ""
            : `, including those of the dead ${dead.length === 1 ? "die" : "dies"}`);

    return "failed reads and writes of hosts" + (flash ? `; ${blocks}` : "");
}

/* What a dead die means for the data, as far as the page knows it. */
function words_of_loss(drive) {
    const dead = dead_dies_of(drive).length, errors = drive.counters["media-errors"];

    if (!drive.is_live || dead === 0 || !is_known(errors)) {
        return "";
    }
    if (errors !== 0) {
        return `${of_number(errors, "command")} of hosts ${errors === 1 ? "has" : "have"} failed ` +
            "because of the medium: data may be lost.";
    }
    return dead === 1 ? "No read of a host has failed: the contents of the dead die are rebuilt " +
        "from parity. Another failure may lose data."
        : "No read of a host has failed so far, but with more than one dead die data may be lost.";
}

function figures_of(frame, name) {
    const drive = drive_of(frame, name), flash = drive.counters.flash;
    const warnings = drive.warnings, dead = dead_dies_of(drive);
    const hottest = (drive.temperatures || []).length ? Math.max(...drive.temperatures) : null;
    const spare = flash && flash["spare-percent"];
    const counters = drive.counters, written = counters["written-bytes"];
    const amplification = flash && written ? flash["written-bytes"] / written : null;
    const has = (warning) => (warnings || []).includes(warning);
    const unknown = drive.is_live ? "" : "off";

    return [
        {name: "SMART", value: !warnings ? DASH : warning_words(drive) || "OK",
         note: !warnings ? "no answer" : warnings.length
             ? `critical warning: ${warnings.join(", ")}` : "no critical warning",
         style: !warnings ? "off" : warnings.length ? "bad" : "good", is_word: true},
        ...(flash ? [
            {name: "Dead dies", value: dead.length ? whole_number(dead.length) : "none",
             note: dead.join(", ") || "all dies work", style: dead.length ? "bad" : unknown ||
                 "good"},
            {name: "Spare", value: percent(spare),
             note: `of the spare flash is left; SMART warns below ${percent(SPARE_THRESHOLD)}`,
             share: spare, style: has("spare") ? "bad" : spare < 50 ? "warn" : unknown || "good"},
            {name: "Write amplification", value: is_known(amplification)
                ? format_of({maximumFractionDigits: 2}).format(amplification) : DASH,
             note: "bytes of flash for each byte that a host wrote", style: unknown || "plain"}]
            : []),
        {name: "Temperature", value: degrees(hottest),
         note: is_known(hottest) ? "the hottest sensor" : "no sensor answers",
         style: has("temperature") ? "bad" : unknown || "plain"},
        {name: "Media errors", value: short_number(counters["media-errors"]),
         note: media_note(flash, dead),
         style: counters["media-errors"] ? "warn" : unknown || "plain"}];
}

function make_figure(name) {
    const figure = make("div", "figure");

    make("h3", "", figure).textContent = name;
    figure.value = make("div", "big", figure);
    figure.note = make("div", "facts", figure);
    figure.bar = make("div", "bar", figure);
    figure.bar.inner = make("i", "", figure.bar);
    return figure;
}

function show_health(frame) {
    const found = chosen ? figures_of(frame, chosen) : [];

    by_id("health").hidden = !chosen;
    set_text(by_id("health-of"), chosen ? `Health of ${chosen}` : "Health");
    set_text(by_id("loss"), chosen ? words_of_loss(drive_of(frame, chosen)) : "");
    by_id("loss").hidden = by_id("loss").textContent === "";
    keep_children(by_id("figures"), found.map((one) => one.name), make_figure).forEach(
        (figure, i) => {
            const one = found[i];

            set_all(figure, {"class": `figure ${one.style}`});
            set_text(figure.value, one.value, `big${one.value.length > 14 ? " long" : ""}`);
            set_text(figure.note, one.note);
            figure.bar.hidden = !is_known(one.share);
            figure.bar.inner.style.setProperty("--share", (one.share || 0) / 100);
        });
}
