/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cockpit's page: the load of the chosen drive over time, drawn by uPlot.
 *
 * Each drive has an hour of its past here.  All charts show the same time: a pointer over
 * one shows its moment in all of them, and a drag chooses a part, until a double click.
 */
"use strict";

const POINTS = 3600;            // of a drive's past: an hour
const SHORTEST_S = 60;          // that the charts show
const CHARTS = [
    {title: "I/O operations per second", show: short_number,
     series: [["reads", "read", "read-iops"], ["writes", "write", "write-iops"]]},
    {title: "Throughput", show: bytes_per_s,
     series: [["reads", "read", "read-bytes-per-s"], ["writes", "write", "write-bytes-per-s"]]},
    {title: "Latency", show: short_time, is_sampled: true,
     series: [["reads p50", "read", "read p50"], ["reads p99", "read", "read p99"],
              ["writes p50", "write", "write p50"], ["writes p99", "write", "write p99"]]}];
const SOURCES = ["time", ...CHARTS.flatMap((chart) => chart.series.map(([, , key]) => key))];

const pasts = new Map();        // by drive: an array for each of SOURCES
let window_s = 300;
let zoomed = null;              // [first, last] seconds that a drag has chosen
let charts = [];                // {spec, box, plot, values}

/* ---- The past of each drive. */

function point_of(drive, time) {
    const latency = drive.latency || {};

    return SOURCES.map((key) => {
        const [operation, percentile] = key.split(" ");
        const value = key === "time" ? time : percentile
            ? (latency[operation] || {})[percentile] : (drive.rates || {})[key];

        return is_known(value) ? value : null;
    });
}

function remember(frame) {
    for (const name of drives_of(frame)) {
        if (!pasts.has(name)) {
            pasts.set(name, SOURCES.map(() => []));
        }
        point_of(drive_of(frame, name), frame.time).forEach((value, i) => {
            const values = pasts.get(name)[i];

            values.push(value);
            if (values.length > POINTS) {
                values.shift();
            }
        });
    }
}

/* Nothing is known from here to the next frame: a gap in all charts. */
function interrupt_pasts() {
    for (const past of pasts.values()) {
        past.forEach((values, i) => values.push(
            i === 0 ? values[values.length - 1] + 0.001 : null));
    }
}

/* ---- One chart. */

function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function visible_time() {
    const times = pasts.has(chosen) ? pasts.get(chosen)[0] : [];
    const last = times[times.length - 1] || Date.now() / 1000;
    // While there is less past than the window, the charts show what there is.
    const first = Math.min(times[0] || last, last - SHORTEST_S);

    return zoomed || [Math.max(first, last - window_s), last];
}

function plot_options(chart) {
    const font = "12px system-ui, sans-serif";
    const axis = {stroke: colour("dim"), font, grid: {stroke: colour("line"), width: 1},
                  ticks: {show: false}};

    return {
        width: Math.max(200, chart.plot_box.clientWidth), height: 210,
        legend: {show: false}, padding: [8, 34, 0, 0],
        cursor: {sync: {key: "essd"}, drag: {setScale: false, x: true, y: false},
                 points: {size: 7}},
        scales: {x: {time: true, range: visible_time},
                 y: {range: (_, low, high) => [0, Math.max(1, high || 0) * 1.1]}},
        axes: [{...axis, space: 58, size: 34, gap: 9, values: (_, times) => times.map(
            (time) => clock(time).slice(0, window_s < 600 ? 8 : 5))},
               {...axis, size: 72, values: (_, values) => values.map(chart.spec.show)}],
        series: [{}, ...chart.spec.series.map(([label, style, key]) => ({
            label, stroke: colour(style), width: 2, points: {show: false},
            dash: key.endsWith("p99") ? [5, 4] : undefined}))],
        hooks: {setCursor: [(plot) => show_values(chart, plot.cursor.idx)],
                setSelect: [(plot) => choose_time(plot)]}};
}

function data_of(chart) {
    const past = pasts.get(chosen) || SOURCES.map(() => []);

    return [past[0], ...chart.spec.series.map(([, , key]) => past[SOURCES.indexOf(key)])];
}

/* The values at one moment, or now. */
function show_values(chart, at) {
    const data = data_of(chart), is_then = is_known(at);
    const index = is_then ? at : data[0].length - 1;

    set_text(chart.when, is_then && data[0][index] ? clock(data[0][index]) : "");
    chart.values.forEach((element, i) => set_text(
        element, `${chart.spec.series[i][0]} ${chart.spec.show((data[i + 1] || [])[index])}`));
}

function choose_time(plot) {
    if (plot.select.width > 4) {
        zoomed = [plot.posToVal(plot.select.left, "x"),
                  plot.posToVal(plot.select.left + plot.select.width, "x")];
        plot.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
        draw_charts();
    }
}

function make_chart(spec) {
    const box = make("div", "chart", by_id("charts")), chart = {spec, box};
    const head = make("div", "head", box);

    make("h3", "", head).textContent = spec.title;
    chart.when = make("span", "when", head);
    const values = make("div", "values", box);

    chart.values = spec.series.map(([, style, key]) => make(
        "span", `${style}${key.endsWith("p99") ? " dashed" : ""}`, values));
    chart.plot_box = make("div", "plot", box);
    chart.plot_box.setAttribute("role", "img");
    if (spec.is_sampled) {
        chart.hint = make("p", "hint", box);
        chart.hint.textContent = "Latency is not sampled; sampling costs the drive some speed. ";
        chart.sample = make("button", "", chart.hint);
        set_button(chart.sample, "Sample latency", {do: "latency", on: true});
    }
    return chart;
}

/* ---- All of them. */

function draw_charts() {
    for (const chart of charts) {
        const data = data_of(chart);

        if (chart.plot) {
            chart.plot.setData(data);
        }
        if (!chart.plot || chart.plot.cursor.left < 0 || !is_known(chart.plot.cursor.left)) {
            show_values(chart, null);
        }
        chart.plot_box.setAttribute("aria-label", `${chart.spec.title} of ${chosen}: ` +
            chart.values.map((element) => element.textContent).join(", "));
    }
}

/* Make the plots again, whose size and colours are fixed when they are made. */
function renew_charts() {
    for (const chart of charts) {
        if (chart.plot) {
            chart.plot.destroy();
        }
        chart.plot = new uPlot(plot_options(chart), data_of(chart), chart.plot_box);
    }
    draw_charts();
}

function resize_charts() {
    for (const chart of charts) {
        const width = Math.max(200, chart.plot_box.clientWidth);

        if (chart.plot && chart.plot.width !== width) {
            chart.plot.setSize({width, height: chart.plot.height});
        }
    }
}

function show_charts(frame, is_sampling) {
    remember(frame);
    by_id("charts-section").hidden = !chosen;
    if (charts.length === 0 && chosen) {
        charts = CHARTS.map(make_chart);
        renew_charts();
    }
    for (const chart of charts.filter((one) => one.hint)) {
        chart.hint.hidden = is_sampling;
        chart.plot_box.hidden = !is_sampling;
    }
    by_id("latency").checked = is_sampling;
    resize_charts();
    draw_charts();
}

function choose_window(event) {
    window_s = Number(event.target.value);
    zoomed = null;
    draw_charts();
}

function listen_for_charts() {
    by_id("window").addEventListener("change", choose_window);
    by_id("charts").addEventListener("dblclick", () => {
        zoomed = null;
        draw_charts();
    });
    window.addEventListener("resize", resize_charts);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", renew_charts);
}
