# SPDX-License-Identifier: BSD-2-Clause
"""`essd doctor`: check this machine for what essd needs; say how to get the rest."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ..base import paths
from ..base.errors import LOOK_UP_S, EssdError
from ..build import guest_build
from ..machine import vm
from . import prepare

NEEDED_BYTES = 6 << 30


@dataclass(frozen=True)
class Finding:
    subject: str
    ok: bool            # False if the user has to do something about it.
    text: str
    remedy: str = ""


def wanted_packages() -> list[str]:
    text = (paths.PACKAGE / "packages.txt").read_text(encoding="utf-8")
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
    return Finding("Debian packages", True, "all are installed")


def disk() -> Finding:
    folder = paths.cache_path()
    there = next(one for one in (folder, *folder.parents) if one.exists())
    free = shutil.disk_usage(there).free
    text = f"{free >> 30} GiB free in {folder}"
    if free < NEEDED_BYTES:
        return Finding("disk space", False, text,
                       f"free {NEEDED_BYTES >> 30} GiB, or set ESSD_CACHE "
                       "to a folder on another file system")
    return Finding("disk space", True, text)


def memory() -> Finding:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) >> 10
            if free < 2048:
                return Finding("memory", False, f"{free} MiB available",
                               "2 GiB are needed: stop other programs")
            return Finding("memory", True, f"{free} MiB available")
    return Finding("memory", True, "unknown")


def folders() -> list[Finding]:
    return [Finding(f"folder for {name}", not problem,
                    f"{path}: {problem}" if problem else str(path),
                    f"set {prepare.VARIABLES[name]} to another folder" if problem else "")
            for name, (path, problem) in prepare.folders().items()]


def kvm() -> Finding:
    guest = guest_build.Guest(paths.cache_path() / "guest" / guest_build.guest_key())
    if not guest.path.exists():
        return Finding("KVM", True, "not tested yet, because the guest is not built; "
                       "KVM is optional and only makes the guests faster")
    if not shutil.which(vm.QEMU):
        return Finding("KVM", True, f"not tested: {vm.QEMU} is not installed")
    works, why = vm.kvm_verdict(guest)
    return Finding("KVM", True, f"used: {why}" if works else
                   f"not used: {why}; the guests run under emulation (TCG), which is "
                   "slower")


def sandbox() -> Finding:
    if vm.has_seccomp():
        return Finding("QEMU's sandbox", True,
                       "used: the kernel filters QEMU's system calls (seccomp)")
    return Finding("QEMU's sandbox", True, "not used: this kernel has no seccomp, so "
                   "QEMU may make any system call")


def built() -> list[Finding]:
    return [Finding(task.name, True, f"will be built ({task.first})"
                    if task.is_first() else "built")
            for task in (prepare.TASKS["qemu"], prepare.TASKS["guest"])]


def runtime() -> Finding:
    try:
        folder = paths.runtime()
    except EssdError as error:
        return Finding("runtime folder", False, str(error),
                       "remove that folder, or set XDG_RUNTIME_DIR to another one")
    # The path of a UNIX socket has at most 107 bytes.
    if len(str(folder)) > 60:
        return Finding("runtime folder", False, f"the path {folder} is too long",
                       "set XDG_RUNTIME_DIR to a folder with a shorter path")
    return Finding("runtime folder", True, str(folder))


def examine() -> list[Finding]:
    places = folders()
    found = [packages(), disk(), *places, memory(), runtime(), sandbox()]
    if all(place.ok for place in places):
        found += [kvm(), *built()]
    return found
