# SPDX-License-Identifier: BSD-2-Clause
"""Failover of a dual-port drive.

The host has a path to the drive through each of two switches; Linux's own NVMe
multipath makes one block device of them.  fio writes and verifies all the time.  Then a
cable of the drive is pulled, and later a switch loses its power.

    ./essd scenario run failover
    ./essd python examples/scenarios/failover.py --out my-report
"""

import time

import essd

SCENARIO = essd.Scenario(
    title="Failover of a dual-port drive",
    question="How long does I/O stand still when a path fails, and is every byte right?",
    topology="dual-port.yaml", ports=2, room_mib=150)

# The host notices a silent controller within twice this time, then tries each second to
# reconnect.  A controller without a path is given up after a minute.
KEEP_ALIVE_S = 2
OPTIONS = f"--keep-alive-tmo={KEEP_ALIVE_S} --reconnect-delay=1 --ctrl-loss-tmo=60"
CALM_S = 8              # without an event, before the first and after the last one
PAUSE_MAX_S = 15.0      # that this scenario accepts


def lose_path(report: essd.Report, host: essd.Host, drive: essd.Drive, lost: str,
              lose: "essd.Port | essd.Switch") -> tuple[str, float, float]:
    """Take a path away and give it back; return the event's name and both times."""
    port = isinstance(lose, essd.Port)
    begin = report.event(f"{lost} {'is pulled' if port else 'loses its power'}")
    if isinstance(lose, essd.Port):
        lose.unplug()
    else:
        lose.power_cut()
    host.wait_paths(drive, 1)
    noticed = report.event("the host has noticed: one path is live")
    time.sleep(CALM_S / 2)
    back = report.event(f"{lost} {'is plugged in' if port else 'has power'} again")
    if isinstance(lose, essd.Port):
        lose.plug()
    else:
        lose.power_on()
    host.wait_paths(drive, 2)
    again = report.event("the host has reconnected: two paths are live")
    report.figure(f"{lost}: until the host gives the path up", noticed - begin, "s")
    report.figure(f"{lost}: until the path is used again", again - back, "s")
    time.sleep(CALM_S / 2)
    return lost, begin, again


def run(system: essd.System, report: essd.Report) -> None:
    host, drive = system.host, system.drives[0]
    for port in drive.ports:
        device = host.connect(drive, port.number, OPTIONS)
    host.wait_paths(drive, 2)
    # Both paths carry I/O, so that each event hits some.
    host.run("echo round-robin | tee /sys/class/nvme-subsystem/*/iopolicy")
    policy = host.read("cat /sys/class/nvme-subsystem/*/iopolicy").strip()
    report.facts["multipath"] = f"native NVMe multipath, I/O policy {policy}"
    report.event(f"{device} has two live paths")
    report.count_from_now(system)

    fio = essd.Fio(host, device, rw="randrw", bs="4k", iodepth=4, size="16m",
                   verify="crc32c", verify_fatal=1, verify_backlog=64)
    started = report.event("fio writes and verifies blocks of 4 KiB, queue depth 4")
    time.sleep(CALM_S)
    calm_end = time.monotonic()
    events = [lose_path(report, host, drive, "the cable of port 0", drive.port(0)),
              lose_path(report, host, drive, "the switch of port 1", system.switches[1])]
    load = fio.stop()
    report.event("fio has ended")
    report.count(system)

    calm = load.between(started, calm_end)
    report.figure("I/Os per second without an event", calm.iops, "1/s")
    for percent in (50, 99):
        report.figure(f"latency without an event, {percent} %", calm.latency_ms(percent), "ms")
    pauses = []
    for lost, begin, end in events:
        _, pause = load.pause(begin, end)
        pauses.append(pause)
        report.figure(f"{lost}: longest pause of I/O", pause, "s")
    report.figure("slowest I/O", load.latency_ms(100), "ms")
    report.plot("I/Os per second", "1/s", load.per_second(started), started)

    report.check("no I/O fails and no byte is wrong", load.status == 0 and load.errors == 0,
                 f"{len(load.ios)} I/Os, {load.errors} errors")
    report.check(f"I/O goes on within {PAUSE_MAX_S:g} s after each event",
                 max(pauses) < PAUSE_MAX_S, f"longest pause {max(pauses):.2f} s")
    report.check("both paths are live at the end",
                 list(host.paths(drive).values()) == ["live", "live"])
    host.disconnect(drive)


if __name__ == "__main__":
    SCENARIO.main(run)
