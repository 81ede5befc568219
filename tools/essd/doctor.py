# SPDX-License-Identifier: BSD-2-Clause
"""What this machine lacks, and how to get it."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import guest_build, paths, prepare, vm
from .errors import LOOK_UP_S

NEEDED_BYTES = 6 << 30


@dataclass(frozen=True)
class Finding:
    subject: str
    ok: bool            # false: something has to be done
    text: str
    remedy: str = ""


def wanted_packages() -> list[str]:
    text = (paths.TOP / "tools/essd/packages.txt").read_text(encoding="utf-8")
    return [w[0] for w in (x.split("#")[0].split() for x in text.splitlines()) if w]


def missing_packages() -> list[str]:
    wanted = wanted_packages()
    done = subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Abbrev} ${Package}\n", *wanted],
        check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        timeout=LOOK_UP_S)
    have = {words[-1] for words in map(str.split, done.stdout.splitlines())
            if words[0].endswith("i")}
    return [name for name in wanted if name not in have]


def install_line(packages: list[str]) -> str:
    command = ("apt-get update && apt-get install -y --no-install-recommends "
               + " ".join(packages))
    if os.getuid() == 0:
        return command
    become = "sudo sh" if shutil.which("sudo") else "su -"
    return f"{become} -c '{command}'"


def packages() -> Finding:
    missing = missing_packages()
    if missing:
        return Finding("Debian packages", False, "missing: " + " ".join(missing),
                       install_line(missing))
    return Finding("Debian packages", True, "all there")


def disk() -> Finding:
    folder = paths.cache()
    free = shutil.disk_usage(folder).free
    text = f"{free >> 30} GiB free in {folder}"
    if free < NEEDED_BYTES:
        return Finding("disk space", False, text,
                       f"make {NEEDED_BYTES >> 30} GiB free, or set ESSD_CACHE "
                       "to a folder elsewhere")
    return Finding("disk space", True, text)


def memory() -> Finding:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) >> 10
            if free < 2048:
                return Finding("memory", False, f"{free} MiB available",
                               "2 GiB are needed: end something else")
            return Finding("memory", True, f"{free} MiB available")
    return Finding("memory", True, "unknown")


def kvm() -> Finding:
    guest = guest_build.Guest(paths.cache() / "guest" / guest_build.guest_key())
    if not guest.path.exists():
        return Finding("KVM", True, "not tried yet (the guest is not built); "
                       "without it everything works, slower")
    if not shutil.which(vm.QEMU):
        return Finding("KVM", True, f"not tried: no {vm.QEMU}")
    works, why = vm.kvm_verdict(guest)
    return Finding("KVM", True, f"used: {why}" if works else
                   f"not used: {why}; the guests are emulated, which works, slower")


def sandbox() -> Finding:
    if vm.has_seccomp():
        return Finding("QEMU's sandbox", True, "used: the kernel filters system calls")
    return Finding("QEMU's sandbox", True, "not used: this kernel has no seccomp, so "
                   "every QEMU may make any system call")


def built() -> list[Finding]:
    return [Finding(task.name, True, f"will be built ({task.first})"
                    if task.is_first() else "built")
            for task in (prepare.TASKS["qemu"], prepare.TASKS["guest"])]


def runtime() -> Finding:
    try:
        folder = paths.runtime()
    except OSError as error:
        return Finding("runtime folder", False, str(error),
                       "remove it, or set XDG_RUNTIME_DIR")
    # A UNIX socket's path holds 107 bytes.
    if len(str(folder)) > 60:
        return Finding("runtime folder", False, f"the path {folder} is too long",
                       "set XDG_RUNTIME_DIR to a shorter one")
    return Finding("runtime folder", True, str(folder))


def examine() -> list[Finding]:
    return [packages(), disk(), memory(), runtime(), kvm(), sandbox(),
            *built()]
