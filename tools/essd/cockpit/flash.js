/* SPDX-License-Identifier: BSD-2-Clause */
/* The cockpit's page: the chosen drive's flash array, as a map of its superblocks. */
"use strict";

function words_of_superblock(row) {
    const share = Math.round(100 * row.valid / Math.max(1, row.capacity));

    return [`superblock ${row.superblock}: ${row.state}`,
            ...(row.stream ? [`filled by ${row.stream === "host" ? "hosts" : "moves"}`] : []),
            `${share}% valid`, of_number(row.erasures, "erasure"),
            ...(row["moves-for"] ? [`moves for ${row["moves-for"]}`] : [])].join(", ");
}

/* A superblock's square; its words say what its colour shows.  The one that a person looks
 * at stays the one, and its line below the map is as new as the square. */
function show_square(square, row) {
    const is_pointed = square.classList.contains("pointed");
    const style = [row.state, ...(row["moves-for"] ? ["moves"] : []),
                   ...(is_pointed ? ["pointed"] : [])].join(" ");
    const words = words_of_superblock(row);

    if (square.className !== style) {
        square.className = style;
    }
    if (square.title !== words) {
        square.title = words;
        square.style.setProperty("--share", row.state === "free" ? 0 :
            (row.valid / Math.max(1, row.capacity)).toFixed(2));
        if (is_pointed) {
            set_text(by_id("superblock"), words);
        }
    }
}

function count_states(rows) {
    const counts = new Map();

    for (const row of rows) {
        counts.set(row.state, (counts.get(row.state) || 0) + 1);
    }
    return [...counts].map(([state, count]) => `${count} ${state}`).join(", ");
}

function show_dies(flash) {
    const dead = new Set(flash["dead-dies"]);
    const numbers = [...Array(flash.channels * flash.dies).keys()];

    keep_children(by_id("dies"), numbers, () => make("li", "")).forEach((die, number) => {
        set_text(die, die_name(number, flash.dies) + (dead.has(number) ? ": dead" : ""),
                 dead.has(number) ? "bad" : "");
    });
}

function show_flash(frame) {
    const drive = chosen ? drive_of(frame, chosen) : {}, flash = drive["flash-map"];

    by_id("flash").hidden = !flash;
    if (!flash) {
        return;
    }
    const rows = flash.rows;
    const words = `${of_number(rows.length, "superblock")}: ${count_states(rows)}` +
        (flash.more ? " (of the first ones)" : "") +
        (flash.mounted ? "" : "; the drive still mounts its flash") +
        (drive.is_live ? "" : "; this is what the drive said last");

    set_text(by_id("map-words"), words);
    by_id("map").setAttribute("aria-label", `${words}. Arrow keys show each of them.`);
    show_dies(flash);
    keep_children(by_id("map"), rows.map((row) => row.superblock), () => make("i", "")).forEach(
        (square, i) => show_square(square, rows[i]));
}

/* ---- One superblock in words: under the pointer, or chosen by the arrow keys. */

function point_at(square) {
    const before = by_id("map").querySelector(".pointed");

    if (before) {
        before.classList.remove("pointed");
    }
    if (square) {
        square.classList.add("pointed");
        set_text(by_id("superblock"), square.title);
    }
}

function walk_map(event) {
    const squares = [...by_id("map").children];
    const at = squares.indexOf(by_id("map").querySelector(".pointed"));
    const columns = squares.filter((one) => one.offsetTop === squares[0].offsetTop).length;
    const steps = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns};

    if (steps[event.key] !== undefined && squares.length !== 0) {
        event.preventDefault();
        point_at(squares[at < 0 ? 0 : between(0, at + steps[event.key], squares.length - 1)]);
    }
}

function listen_for_flash() {
    by_id("map").addEventListener("keydown", walk_map);
    by_id("map").addEventListener("pointerover", (event) => {
        if (event.target.tagName === "I") {
            point_at(event.target);
        }
    });
}
