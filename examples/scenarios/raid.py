# SPDX-License-Identifier: BSD-2-Clause
"""Software RAID over four drives, of which one dies under load.

mdadm makes a RAID10 of four drives.  fio writes and verifies all the time.  One drive
loses its power: the array goes on without it.  The drive comes back and is added again:
the array rebuilds what the drive has missed.  At the end the array compares all copies.

    ./essd scenario run raid
    ./essd python examples/scenarios/raid.py --out my-report
"""

import time

import essd

SCENARIO = essd.Scenario(
    title="Software RAID with a dying drive",
    question="What does the host notice when one drive of an array loses its power, and is "
             "every byte right afterwards?",
    topology="scenario-four.yaml", drives=4, packages=("mdadm",), room_mib=500)

LEVEL, MEMBERS = 10, 4  # LEVEL 5 works too
MEMBER_MIB = 64         # of each drive; a small array is rebuilt and compared quickly
VICTIM = 2              # number of the drive that dies
# The kernel notices a silent drive within 10 s and gives up I/O to it 3 s later, but tries
# for 10 min to reconnect, so that the block device survives and can be added to the array
# again.  With shorter times a busy machine loses drives that are well.
OPTIONS = ("--keep-alive-tmo=5 --reconnect-delay=1 --fast_io_fail_tmo=3 "
           "--ctrl-loss-tmo=600")
ARRAY = "/dev/md0"
MD = "/sys/block/md0/md"
CALM_S = 10             # of each phase
PATTERN_MIB = 8         # written once, and compared at the end
ENV = "MDADM_NO_UDEV=1"


def wait_for(host: essd.Host, condition: str, timeout_s: float, what: str) -> None:
    """Wait until a shell condition is true in the host."""
    done = host.run(f"n=0; until {condition}; do sleep 0.1; n=$((n + 1)); "
                    f"[ $n -lt {int(timeout_s * 10)} ] || exit 9; done",
                    timeout_s=timeout_s * 3 + 60, check=False)
    if done.status:
        state = host.run("cat /proc/mdstat", check=False).output
        raise essd.EssdError(f"{what}: not within {timeout_s:g} s; /proc/mdstat: "
                             f"{' '.join(state.split())}")


def pattern_sum(host: essd.Host) -> str:
    """The checksum of the array's first MiB as they are on the drives."""
    host.run("echo 1 > /proc/sys/vm/drop_caches")
    return host.read(f"dd if={ARRAY} bs=1M count={PATTERN_MIB} iflag=direct status=none | "
                     "sha256sum").split()[0]


def build(system: essd.System, report: essd.Report) -> list[str]:
    """Connect the drives and make the array; return the members' devices."""
    host = system.host
    devices = [host.connect(drive, 0, OPTIONS) for drive in system.drives[:MEMBERS]]
    host.run("modprobe -a raid10 raid456; echo 200000 > /proc/sys/dev/raid/speed_limit_min")
    host.run(f"{ENV} mdadm --create {ARRAY} --run --metadata=1.2 --level={LEVEL} "
             f"--raid-devices={MEMBERS} --size={MEMBER_MIB}M --bitmap=internal --bitmap-chunk=1M "
             f"--assume-clean {' '.join(devices)}")
    report.event(f"RAID{LEVEL} of {MEMBERS} x {MEMBER_MIB} MiB")
    host.run(f"dd if=/dev/urandom of={ARRAY} bs=1M count={PATTERN_MIB} oflag=direct "
             "conv=fsync status=none")
    return devices


def run(system: essd.System, report: essd.Report) -> None:
    host, victim = system.host, system.drives[VICTIM]
    devices = build(system, report)
    member = devices[VICTIM]
    expected = pattern_sum(host)
    report.count_from_now(system)

    fio = essd.Fio(host, ARRAY, rw="randrw", bs="4k", iodepth=8, offset=f"{PATTERN_MIB}m",
                   size="16m", verify="crc32c", verify_fatal=1, verify_backlog=64)
    started = report.event("fio writes and verifies blocks of 4 KiB, queue depth 8")
    time.sleep(CALM_S)

    cut = report.event(f"{victim.name} loses its power")
    victim.power_cut()
    wait_for(host, f"[ $(cat {MD}/degraded) = 1 ]", 60, "the array is not degraded")
    degraded = report.event(f"the array works without {victim.name}: degraded")
    time.sleep(CALM_S)
    before_back = time.monotonic()

    back = report.event(f"{victim.name} has power again")
    victim.power_on()
    host.wait_paths(victim, 1)
    live = report.event("the host has reconnected")
    host.run(f"{ENV} mdadm {ARRAY} --remove {member}; {ENV} mdadm {ARRAY} --re-add {member} "
             f"|| {ENV} mdadm {ARRAY} --add {member}")
    rebuild = report.event(f"{member} is added again: the array rebuilds")
    wait_for(host, f"[ $(cat {MD}/degraded) = 0 ] && [ $(cat {MD}/sync_action) = idle ]",
             300, "the array is not rebuilt")
    whole = report.event("the array is whole again")
    time.sleep(CALM_S)
    load = fio.stop()
    report.event("fio has ended")

    phases = {"with all drives": (started, cut), "degraded": (degraded, before_back),
              "during the rebuild": (rebuild, whole), "after it": (whole, whole + CALM_S)}
    for phase, (begin, end) in phases.items():
        part = load.between(begin, end)
        report.figure(f"I/Os per second {phase}", part.iops, "1/s")
        report.figure(f"latency {phase}, 99 %", part.latency_ms(99), "ms")
    _, pause = load.pause(cut, before_back)
    report.figure("longest pause of I/O when the drive dies", pause, "s")
    report.figure("until the array works without the drive", degraded - cut, "s")
    report.figure("until the drive is connected again", live - back, "s")
    report.figure("rebuild", whole - rebuild, "s")
    report.plot("I/Os per second", "1/s", load.per_second(started), started)

    report.check("no I/O fails and no byte is wrong", load.status == 0 and load.errors == 0,
                 f"{len(load.ios)} I/Os, {load.errors} errors")
    report.check("what was written before is unchanged", pattern_sum(host) == expected,
                 f"SHA-256 of {PATTERN_MIB} MiB")
    report.event("the array compares all copies")
    host.run(f"echo check > {MD}/sync_action")
    wait_for(host, f"[ $(cat {MD}/sync_action) = idle ]", 300, "the comparison did not end")
    mismatches = int(host.read(f"cat {MD}/mismatch_cnt"))
    report.event("the comparison has ended")
    report.check("all copies are equal", mismatches == 0, f"mismatch_cnt {mismatches}")
    state = host.read(f"{ENV} mdadm --detail {ARRAY} | grep -c 'active sync'").strip()
    report.check("every drive is active in the array", state == str(MEMBERS),
                 f"{state} of {MEMBERS}")
    report.count(system)
    host.run(f"{ENV} mdadm --stop {ARRAY}")
    host.disconnect()


if __name__ == "__main__":
    SCENARIO.main(run)
