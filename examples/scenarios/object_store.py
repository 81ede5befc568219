# SPDX-License-Identifier: BSD-2-Clause
"""An EBOF as an object store: OpenStack Swift keeps three copies of each object.

Four drives with XFS are the devices of a small Swift: one proxy, and one server each
for accounts, containers and objects.  Objects are put and read back by checksum.  One
drive loses its power: objects are still readable and writable.  The drive comes back,
and the replicator brings it up to date.

    ./essd scenario run object-store
    ./essd python examples/scenarios/object_store.py --out my-report
"""

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import essd

SCENARIO = essd.Scenario(
    title="EBOF as object store",
    question="Does an object store stay readable and writable while a drive is off, and are "
             "all copies there after it has come back?",
    topology="scenario-four.yaml", drives=4,
    packages=("swift-proxy", "swift-object", "python3-swiftclient", "xfsprogs"),
    room_mib=700)

REPLICAS = 3
PART_POWER = 4          # 16 partitions
VICTIM = 1              # number of the drive that loses its power
FIRST, SECOND = 24, 12  # objects that are put before, and while the drive is off
SIZE_KIB = 64
REPLICATIONS = 3        # runs of the replicator at most
OPTIONS = ("--keep-alive-tmo=5 --reconnect-delay=1 --fast_io_fail_tmo=3 "
           "--ctrl-loss-tmo=600")
PORTS = {"object": 6200, "container": 6201, "account": 6202}

COMMON = """
[swift-hash]
swift_hash_path_prefix = essd
swift_hash_path_suffix = essd
"""
PROXY = """
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = 8080
workers = 0
user = root
log_address = /dev/null
[pipeline:main]
pipeline = catch_errors healthcheck proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
node_timeout = 30
conn_timeout = 5
recoverable_node_timeout = 15
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:healthcheck]
use = egg:swift#healthcheck
"""
SERVER = """
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
devices = /srv/node
mount_check = true
workers = 0
user = root
disable_fallocate = true
log_address = /dev/null
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
[{kind}-replicator]
rsync_timeout = 60
[object-updater]
[object-auditor]
[container-updater]
[container-sync]
[container-auditor]
[container-sharder]
[account-auditor]
[account-reaper]
"""
RSYNC = """
uid = root
gid = root
use chroot = no
address = 127.0.0.1
[account]
path = /srv/node
read only = false
[container]
path = /srv/node
read only = false
[object]
path = /srv/node
read only = false
"""
# Makes the rings, which say on which drives each partition is.  swift-ring-builder does the
# same, but has to be started three times for each ring.
RINGS = """
import sys
from swift.common.ring import RingBuilder
power, replicas, count = map(int, sys.argv[1:4])
for word in sys.argv[4:]:
    kind, port = word.split(":")
    builder = RingBuilder(power, replicas, 1)
    for n in range(count):
        builder.add_dev({"id": n, "region": 1, "zone": n + 1, "weight": 1, "device": f"d{n}",
                         "ip": "127.0.0.1", "port": int(port), "meta": "",
                         "replication_ip": "127.0.0.1", "replication_port": int(port)})
    builder.rebalance()
    builder.get_ring().save(f"/etc/swift/{kind}.ring.gz")
"""
# Puts or gets objects whose content follows from their number; prints what happened.
CLIENT = """
import http.client, json, random, sys, time
verb, begin, end, kib = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
line = http.client.HTTPConnection("127.0.0.1", 8080, timeout=120)
def ask(method, path, body=None):
    line.request(method, "/v1/AUTH_essd/" + path, body)
    answer = line.getresponse()
    return answer, answer.read()
answer, _ = ask("PUT", "photos")
assert answer.status in (201, 202), (answer.status, answer.reason)
times, wrong = [], []
for number in range(begin, end):
    content = random.Random(number).randbytes(kib << 10)
    before = time.monotonic()
    if verb == "PUT":
        answer, _ = ask("PUT", f"photos/{number}", content)
        right = answer.status == 201
    else:
        answer, body = ask("GET", f"photos/{number}")
        right = answer.status == 200 and body == content
    times.append(time.monotonic() - before)
    if not right:
        wrong.append([number, answer.status])
print(json.dumps({"times": times, "wrong": wrong}))
"""


def put_text(host: essd.Host, text: str, target: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "text"
        file.write_text(text)
        host.put(file, target)


def format_drives(host: essd.Host, devices: list[str]) -> None:
    for number, device in enumerate(devices):
        host.run(f"mkdir -p /srv/node/d{number}; mkfs.xfs -q -f -K {device}")
        mount(host, number, device)


def mount(host: essd.Host, number: int, device: str) -> None:
    host.run(f"mount -o noatime {device} /srv/node/d{number}")


def unmount(host: essd.Host, number: int) -> None:
    """Unmount one drive's file system as soon as no server has a file of it open.

    Only then does the next mount read the drive, instead of joining the old one.
    """
    host.run(f"n=0; until umount /srv/node/d{number}; do sleep 0.5; n=$((n + 1)); "
             "[ $n -lt 120 ] || exit 1; done", timeout_s=180)


def start_swift(host: essd.Host, count: int, report: essd.Report) -> None:
    """Write the configuration and the rings, and start the servers."""
    host.run("mkdir -p /var/run/swift /var/cache/swift /var/lock")
    put_text(host, COMMON, "/etc/swift/swift.conf")
    put_text(host, PROXY, "/etc/swift/proxy-server.conf")
    put_text(host, RSYNC, "/etc/rsyncd.conf")
    for kind, port in PORTS.items():
        put_text(host, SERVER.format(kind=kind, port=port), f"/etc/swift/{kind}-server.conf")
    put_text(host, RINGS, "/tmp/rings.py")
    servers = " ".join(f"{kind}:{port}" for kind, port in PORTS.items())
    host.run(f"python3 /tmp/rings.py {PART_POWER} {REPLICAS} {count} {servers}", timeout_s=600)
    report.event(f"rings: {1 << PART_POWER} partitions, {REPLICAS} copies, {count} devices")
    host.run("rsync --daemon")
    for kind in ("account", "container", "object", "proxy"):
        host.run(f"setsid swift-{kind}-server /etc/swift/{kind}-server.conf -v "
                 f"> /tmp/swift-{kind}.log 2>&1 < /dev/null &")
    host.run("n=0; until curl -sf http://127.0.0.1:8080/healthcheck > /dev/null; do "
             "sleep 1; n=$((n + 1)); [ $n -lt 240 ] || exit 1; done", timeout_s=600)
    for port in PORTS.values():
        host.run(f"n=0; until curl -s -o /dev/null http://127.0.0.1:{port}/; do sleep 1; "
                 "n=$((n + 1)); [ $n -lt 120 ] || exit 1; done", timeout_s=600)
    report.event("Swift answers")


def client(host: essd.Host, report: essd.Report, verb: str, begin: int, end: int,
           when: str) -> dict[str, Any]:
    """Put or get objects; add the figures to the report."""
    words = {"PUT": "put", "GET": "read"}
    report.event(f"{end - begin} objects of {SIZE_KIB} KiB are {words[verb]}, {when}")
    text = host.read(f"python3 /tmp/client.py {verb} {begin} {end} {SIZE_KIB}", timeout_s=900)
    said: dict[str, Any] = json.loads(text)
    times = sorted(said["times"])
    report.figure(f"{verb}, {when}: objects per second", len(times) / sum(times), "1/s")
    report.figure(f"{verb}, {when}: median", 1e3 * times[len(times) // 2], "ms")
    report.figure(f"{verb}, {when}: slowest", 1e3 * times[-1], "ms")
    return said


def copies(host: essd.Host, device: str) -> int:
    """The number of object files on one drive."""
    return int(host.read(f"find /srv/node/{device}/objects -name '*.data' | wc -l"))


def replicate(host: essd.Host, devices: int, is_done: Callable[[list[int]], bool]
              ) -> tuple[float, int]:
    """Run the object replicator, several times if need be; return seconds and runs."""
    begin = time.monotonic()
    runs, finished = 0, False
    while runs < REPLICATIONS and not finished:
        runs += 1
        host.run("swift-object-replicator /etc/swift/object-server.conf -o -v "
                 "> /tmp/replicator.log 2>&1", timeout_s=900)
        finished = is_done([copies(host, f"d{n}") for n in range(devices)])
    return time.monotonic() - begin, runs


def run(system: essd.System, report: essd.Report) -> None:
    host, victim = system.host, system.drives[VICTIM]
    devices = [host.connect(drive, 0, OPTIONS) for drive in system.drives[:4]]
    format_drives(host, devices)
    report.event(f"XFS on {len(devices)} drives")
    put_text(host, CLIENT, "/tmp/client.py")
    start_swift(host, len(devices), report)
    report.count_from_now(system)

    stored = client(host, report, "PUT", 0, FIRST, "all drives")
    calm = client(host, report, "GET", 0, FIRST, "all drives")
    full = [copies(host, f"d{n}") for n in range(len(devices))]
    host.run("sync; echo 3 > /proc/sys/vm/drop_caches")

    report.event(f"{victim.name} loses its power; it has {full[VICTIM]} copies")
    victim.power_cut()
    without = client(host, report, "GET", 0, FIRST, "one drive off")
    more = client(host, report, "PUT", FIRST, FIRST + SECOND, "one drive off")

    back = report.event(f"{victim.name} has power again")
    unmount(host, VICTIM)
    victim.power_on()
    host.wait_paths(victim, 1)
    mount(host, VICTIM, devices[VICTIM])
    report.event("its file system is mounted again; the replicator runs")
    wanted = REPLICAS * (FIRST + SECOND)
    # Copies that the other drives have kept in its stead are deleted once it has them.
    seconds, runs = replicate(host, len(devices), lambda now: sum(now) == wanted
                              and now[VICTIM] > full[VICTIM])
    done = report.event(f"the replicator has run {runs} times")
    report.figure("replicator", seconds, "s")
    report.figure("from power to all copies", done - back, "s")
    after = client(host, report, "GET", 0, FIRST + SECOND, "repaired")
    now = [copies(host, f"d{n}") for n in range(len(devices))]
    report.count(system)

    report.check("every object can be put and read with all drives",
                 not stored["wrong"] and not calm["wrong"], f"{FIRST} objects")
    report.check("every object can be read while a drive is off", not without["wrong"],
                 wrong(without))
    report.check("new objects can be put while a drive is off", not more["wrong"],
                 wrong(more))
    report.check("every object is right afterwards", not after["wrong"], wrong(after))
    report.check(f"each object has {REPLICAS} copies again", sum(now) == wanted,
                 f"{sum(now)} of {wanted}; on the drives {', '.join(map(str, now))}")
    report.check(f"{victim.name} has copies of new objects", now[VICTIM] > full[VICTIM],
                 f"{full[VICTIM]} copies before, {now[VICTIM]} now")
    host.run("pkill -f /usr/bin/swift- ; sleep 1; umount /srv/node/d*", check=False)
    host.disconnect()


def wrong(said: dict[str, Any]) -> str:
    count = len(said["times"])
    return f"{count} of {count} objects" if not said["wrong"] else (
        f"wrong: {', '.join(f'{number} (status {status})' for number, status in said['wrong'])}")


if __name__ == "__main__":
    SCENARIO.main(run)
