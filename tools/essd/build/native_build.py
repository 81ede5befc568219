# SPDX-License-Identifier: BSD-2-Clause
"""Builds programs that run on this machine: tools, the conformance suite, tests for hosts."""

import hashlib
import subprocess
from pathlib import Path

from ..base import in_use, paths, show
from ..base.errors import BUILD_S, EssdError
from . import fw_build, guest_build
from .fw_build import Progress


def native_program(preset: str, program: str, what: str) -> Path:
    """Build a program for this machine with a CMake preset; return its path."""
    build = paths.build() / preset
    log = build / "build.log"
    with fw_build.locked_build(build), show.busy(f"building {what}"):
        log.write_text("")
        if not fw_build.is_configured(build, paths.TOP):
            fw_build.run_logged(["cmake", "-S", str(paths.TOP), "--preset", preset,
                                 "-B", str(build)], log, f"configuring {what}")
        fw_build.run_logged(["cmake", "--build", str(build), "--target",
                             Path(program).name], log, f"building {what}")
        in_use.hold(paths.build())
    return build / program


def host_tests(progress: Progress) -> list[Path]:
    """Compile the programs of tests/host against the libraries of the guest."""
    sysroot = guest_build.ensure_sysroot(progress)
    folder = paths.cache() / "host-tests"
    with paths.locked(folder / "lock"):
        in_use.hold(sysroot.parent)
        in_use.hold(folder)
        return compiled(folder, sysroot, progress)


def compiled(folder: Path, sysroot: Path, progress: Progress) -> list[Path]:
    sources = sorted((paths.TOP / "tests/host").glob("*.c"))
    flags = ["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", f"-I{paths.TOP}",
             "--target=x86_64-linux-gnu", f"--sysroot={sysroot}",
             "-lnvme", "-lrdmacm", "-libverbs", "-lcmocka"]
    programs = []
    for source in sources:
        key = hashlib.sha256(source.read_bytes() + " ".join(flags).encode())
        program = folder / key.hexdigest()[:16] / source.stem
        if not program.exists():
            progress(f"compiling {source.name}")
            program.parent.mkdir(parents=True, exist_ok=True)
            temporary = program.with_suffix(".new")
            done = subprocess.run(
                ["clang", "-o", temporary, source, *flags], check=False, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=BUILD_S)
            if done.returncode != 0:
                raise EssdError(f"{source.name} does not compile:\n{done.stdout}")
            temporary.rename(program)
        programs.append(program)
    return programs
