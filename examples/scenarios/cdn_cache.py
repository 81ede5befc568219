# SPDX-License-Identifier: BSD-2-Clause
"""A node of a content delivery network: nginx keeps its cache on the drives.

nginx on the host `edge` is a caching proxy with one cache folder on each drive; the
host `origin` has the content and is 20 ms away.  A client asks for objects, some far
more often than others, and checks every answer.  It does so four times: with an empty
cache, with the cache on the drives only (the host's RAM forgets them before), with the
cache in RAM, and after a restart of nginx with the file systems mounted anew.

    ./essd scenario run cdn-cache
    ./essd python examples/scenarios/cdn_cache.py --out my-report
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import essd

SCENARIO = essd.Scenario(
    title="CDN cache on the drives",
    question="How much faster is an answer from the cache on the drives than one from the "
             "origin, and is the cache still there after a restart?",
    topology="scenario-cdn.yaml", drives=2, packages=("nginx-light",),
    room_mib=200)

OBJECTS = 120           # of 16 to 256 KiB
REQUESTS = 400          # of each round
CLIENTS = 4             # that ask at the same time
SEED = 1
ORIGIN_PORT, EDGE_PORT = 8080, 80

# Both hosts' nginx: the main part.
MAIN = """
user root;
worker_processes 1;
pid /run/nginx.pid;
error_log /tmp/nginx-error.log;
events { worker_connections 256; }
http {
  log_format plain '$status $upstream_cache_status $request_uri';
  access_log /tmp/nginx-access.log plain;
  sendfile off;
  %s
}
"""
ORIGIN = """
  server { listen %d; root /srv/content; }
"""
# Each object is in the cache of the drive that a hash of its address names.
EDGE = """
  {caches}
  split_clients $request_uri $cache {{ {shares} }}
  upstream origin {{ server {origin}; keepalive 8; }}
  server {{
    listen {port};
    location / {{
      proxy_pass http://origin;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_cache $cache;
      proxy_cache_valid 200 1d;
      proxy_cache_lock on;
      add_header X-Cache $upstream_cache_status;
    }}
  }}
"""
# Makes the content, whose bytes depend on the seed and the object's number alone.
MAKE = """
import random, sys
seed, count = int(sys.argv[1]), int(sys.argv[2])
for number in range(count):
    bits = random.Random(seed * 100000 + number)
    size = bits.choice((16, 16, 32, 64, 128, 256)) << 10
    open(f"/srv/content/{number}", "wb").write(bits.randbytes(size))
"""
# Asks for objects by Zipf's law and compares each answer with what it has to be.
CLIENT = """
import http.client, json, random, sys, threading, time
seed, count, requests, clients = map(int, sys.argv[1:5])
objects = []
for number in range(count):
    bits = random.Random(seed * 100000 + number)
    size = bits.choice((16, 16, 32, 64, 128, 256)) << 10
    objects.append(bits.randbytes(size))
draw = random.Random(seed)
weights = [1 / (n + 1) for n in range(count)]
# Every object is asked for at least once.
order = list(range(count)) + draw.choices(range(count), weights, k=requests - count)
draw.shuffle(order)
answers, turn = [], iter(order)
lock = threading.Lock()
def work():
    line = http.client.HTTPConnection("127.0.0.1", %d)
    while True:
        with lock:
            number = next(turn, None)
        if number is None:
            return
        begin = time.monotonic()
        line.request("GET", f"/{number}")
        answer = line.getresponse()
        body = answer.read()
        answers.append((answer.status == 200 and body == objects[number],
                        answer.getheader("X-Cache"), time.monotonic() - begin, len(body)))
begin = time.monotonic()
threads = [threading.Thread(target=work) for _ in range(clients)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps({"seconds": time.monotonic() - begin, "answers": answers}))
"""


def put_text(host: essd.Host, text: str, target: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "text"
        file.write_text(text)
        host.put(file, target)


def start_origin(host: essd.Host) -> str:
    """Make the content and serve it; return the origin's address."""
    host.run("mkdir -p /srv/content; mount -t tmpfs tmpfs /srv/content")
    put_text(host, MAKE, "/tmp/make.py")
    host.run(f"python3 /tmp/make.py {SEED} {OBJECTS}")
    put_text(host, MAIN % (ORIGIN % ORIGIN_PORT), "/tmp/nginx.conf")
    host.run("mkdir -p /var/log/nginx /var/lib/nginx; nginx -c /tmp/nginx.conf")
    address = host.read("ip -4 -o addr show dev eth0").split()[3].split("/")[0]
    return f"{address}:{ORIGIN_PORT}"


def mount(host: essd.Host, devices: list[str]) -> None:
    for number, device in enumerate(devices):
        host.run(f"mkdir -p /cache{number}; mount -o noatime {device} /cache{number}")


def start_edge(host: essd.Host) -> None:
    host.run("mkdir -p /var/log/nginx /var/lib/nginx; nginx -c /tmp/nginx.conf")


def stop_edge(host: essd.Host, count: int) -> None:
    """End nginx, which deletes its process id at the end, and unmount its caches."""
    host.run("nginx -c /tmp/nginx.conf -s quit; while [ -e /run/nginx.pid ]; do sleep 0.2; "
             "done")
    for number in range(count):
        host.run(f"umount /cache{number}")


def ask(system: essd.System, report: essd.Report, name: str) -> dict[str, Any]:
    """One round of requests; return what the client saw, and add it to the report."""
    edge, origin = system.hosts[0], system.hosts[1]
    origin.run(": > /tmp/nginx-access.log")
    begin = sum(drive.metrics()["read-bytes"] for drive in system.drives)
    report.event(f"{REQUESTS} requests, {name}")
    text = edge.read(f"python3 /tmp/client.py {SEED} {OBJECTS} {REQUESTS} {CLIENTS}",
                     timeout_s=600)
    said = json.loads(text)
    answers = said["answers"]
    hits = [answer for answer in answers if answer[1] == "HIT"]
    misses = [answer for answer in answers if answer[1] == "MISS"]
    found = {
        "wrong": sum(not answer[0] for answer in answers), "count": len(answers),
        "hits": len(hits), "seconds": said["seconds"],
        "mb_s": sum(answer[3] for answer in answers) / 1e6 / said["seconds"],
        "hit_p50": percentile(hits, 50), "hit_p99": percentile(hits, 99),
        "miss_p50": percentile(misses, 50), "miss_p99": percentile(misses, 99),
        "origin": int(origin.read("wc -l < /tmp/nginx-access.log")),
        "read": sum(drive.metrics()["read-bytes"] for drive in system.drives) - begin}
    report.figure(f"{name}: hits", 100 * found["hits"] / max(1, found["count"]), "%")
    report.figure(f"{name}: throughput", found["mb_s"], "MB/s")
    report.figure(f"{name}: answers", found["count"] / found["seconds"], "1/s")
    for kind, of in (("hit", hits), ("miss", misses)):
        for percent in (50, 99) if of else ():
            report.figure(f"{name}: latency of a {kind}, {percent} %",
                          1e3 * found[f"{kind}_p{percent}"], "ms")
    report.figure(f"{name}: read from the drives", found["read"] / 1e6, "MB")
    report.figure(f"{name}: requests that reach the origin", found["origin"])
    return found


def percentile(answers: list[Any], percent: int) -> float:
    times = sorted(answer[2] for answer in answers)
    return float(times[min(len(times) - 1, len(times) * percent // 100)]) if times else 0.0


def run(system: essd.System, report: essd.Report) -> None:
    edge, origin = system.hosts[0], system.hosts[1]
    source = start_origin(origin)
    devices = [edge.connect(drive) for drive in system.drives]
    for device in devices:
        edge.run(f"mkfs.ext4 -q -E nodiscard {device}")
    mount(edge, devices)
    report.event(f"ext4 on {len(devices)} drives")
    share = 100 // len(devices)
    caches = " ".join(f"proxy_cache_path /cache{n}/nginx levels=1:2 use_temp_path=off "
                      f"keys_zone=cache{n}:1m inactive=1d;" for n in range(len(devices)))
    shares = " ".join(f"{share}% cache{n};" for n in range(len(devices) - 1))
    put_text(edge, MAIN % EDGE.format(caches=caches, origin=source, port=EDGE_PORT,
                                      shares=f"{shares} * cache{len(devices) - 1};"),
             "/tmp/nginx.conf")
    put_text(edge, CLIENT % EDGE_PORT, "/tmp/client.py")
    start_edge(edge)
    report.count_from_now(system)

    cold = ask(system, report, "empty cache")
    edge.run("sync; echo 3 > /proc/sys/vm/drop_caches")
    disk = ask(system, report, "cache on the drives")
    ram = ask(system, report, "cache in the host's RAM")
    report.event("nginx ends; the file systems are unmounted and mounted again")
    stop_edge(edge, len(devices))
    mount(edge, devices)
    start_edge(edge)
    # nginx reads the names of its cache's files in the background.
    again = ask(system, report, "after the restart")
    report.count(system)

    rounds = (cold, disk, ram, again)
    report.check("every answer is right", not any(one["wrong"] for one in rounds),
                 f"{sum(one['count'] for one in rounds)} answers")
    report.check("the origin sends each object once", cold["origin"] == OBJECTS,
                 f"{cold['origin']} requests for {OBJECTS} objects")
    report.check("a filled cache answers everything, also after the restart",
                 all(one["hits"] == REQUESTS and not one["origin"]
                     for one in (disk, ram, again)))
    report.check("the drives were read when the host's RAM was empty",
                 disk["read"] > 0 and again["read"] > 0 and ram["read"] < disk["read"] / 10,
                 f"{disk['read'] / 1e6:.1f} MB, {ram['read'] / 1e6:.1f} MB from RAM")
    report.check("an answer from the drives is faster than one from the origin",
                 disk["hit_p50"] < cold["miss_p50"],
                 f"median {1e3 * disk['hit_p50']:.1f} ms and {1e3 * cold['miss_p50']:.1f} ms")
    stop_edge(edge, len(devices))
    edge.disconnect()


if __name__ == "__main__":
    SCENARIO.main(run)
