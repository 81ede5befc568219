# SPDX-License-Identifier: BSD-2-Clause
"""Failover of a dual-port drive: I/O goes on through port 1 while port 0 has no cable.

    ./essd python examples/python/failover.py
"""

import time

import essd

FIO = ("fio --name=failover --filename={device} --ioengine=libaio --direct=1 --rw=randwrite "
       "--bs=4k --iodepth=4 --size=16m --time_based --runtime={seconds} --verify=crc32c "
       "--verify_fatal=1")


def run(system: essd.System, seconds: int = 20) -> None:
    """Pull and plug the cable of port 0 under load; EssdError if fio sees an error."""
    host, drive = system.host, system.drives[0]
    # A controller whose port is gone is given up after 60 s; the host tries each second.
    options = "--keep-alive-tmo=2 --reconnect-delay=1 --ctrl-loss-tmo=60"
    for port in drive.ports:
        device = host.connect(drive, port.number, options)
    host.wait_paths(drive, 2)
    print(f"{device} has {len(host.paths(drive))} paths")

    command = FIO.format(device=device, seconds=seconds)
    host.run(f"({command} > /tmp/fio 2>&1; echo $? > /tmp/fio.status) > /dev/null 2>&1 &")
    time.sleep(seconds / 4)
    begin = time.monotonic()
    drive.port(0).unplug()
    host.wait_paths(drive, 1)
    print(f"port 0 unplugged: one path after {time.monotonic() - begin:.1f} s")
    drive.port(0).plug()
    host.wait_paths(drive, 2)
    print(f"port 0 plugged in again: two paths after {time.monotonic() - begin:.1f} s")

    host.run("until [ -s /tmp/fio.status ]; do sleep 0.5; done", timeout_s=seconds + 120)
    if host.read("cat /tmp/fio.status").strip() != "0":
        raise essd.EssdError(host.run("tail -n 20 /tmp/fio").output)
    print("fio saw no error")
    host.run("rm -f /tmp/fio /tmp/fio.status")
    host.disconnect(drive)


if __name__ == "__main__":
    with essd.up(size="256M") as new:
        run(new)
