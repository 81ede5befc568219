# SPDX-License-Identifier: BSD-2-Clause
"""Build the firmware, QEMU and the Linux guest before a start.

Long builds run in parallel.  A result that was built from the same inputs
before is taken from the cache.
"""

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass, field
from pathlib import Path

from ..base import interrupts, paths, show
from ..base.errors import EssdError
from ..build import fw_build, guest_build, guest_variant, qemu_build, uml_build
from ..build.fw_build import Firmware, Progress
from ..build.guest_build import Guest
from ..build.uml_build import UmlKernel
from ..machine import uml, vm


# What names another folder than the usual one.
VARIABLES = {"the cache": "ESSD_CACHE", "builds": "ESSD_CACHE", "drives": "ESSD_DATA"}


@dataclass
class Built:
    """Results of `prepare`; None for a part that was not asked for."""

    guest: Guest | None = None
    qemu: Path | None = None
    firmware: Firmware | None = None
    uml: UmlKernel | None = None
    native_hart: Path | None = None     # the firmware for it
    variants: dict[Path, Guest] = field(default_factory=dict)   # by their folder


@dataclass(frozen=True)
class Task:
    """Builds one field of Built, or one of its variants."""

    name: str
    build: Callable[[Progress], object]
    first: str                  # duration of the first build, for the user
    is_first: Callable[[], bool]


TASKS = {
    "firmware": Task("firmware", fw_build.ensure_firmware, "seconds", lambda: False),
    "qemu": Task("QEMU", qemu_build.ensure_qemu, "about 4 minutes, once",
                 lambda: not (paths.cache() / "qemu" / qemu_build.stock_key()
                              / "bin").exists()),
    "native_hart": Task("native firmware", fw_build.ensure_native_hart, "about 1 minute, once",
                        lambda: not fw_build.NATIVE_BUILD.exists()),
    "guest": Task("Linux guest", guest_build.ensure_guest, "about 1 minute, once",
                  lambda: not (paths.cache() / "guest"
                               / guest_build.guest_key()).exists()),
    "uml": Task("user-mode Linux", uml_build.ensure, "about 5 minutes, once",
                lambda: not uml_build.is_built()),
}


@contextlib.contextmanager
def ending(futures: Iterable[Future[object]]) -> Iterator[None]:
    """On Ctrl-C or SIGTERM inside, end the programs that these threads wait for.

    A build leaves nothing to clean up.  A thread may start one more program before
    it notices that the last one has failed.
    """
    try:
        yield
    except interrupts.INTERRUPTS:
        with interrupts.ignored():
            for future in futures:
                future.cancel()
            while wait(futures, 0.2).not_done:
                interrupts.end_children()
        raise


def variant_task(folder: Path) -> Task:
    return Task(f"Linux guest {folder.name}",
                functools.partial(guest_variant.ensure, folder), "about 2 minutes, once",
                lambda: not guest_variant.is_built(folder))


def folders() -> dict[str, tuple[Path, str]]:
    """Each folder in which something is written, and why it cannot be used, or ""."""
    found = {"the cache": paths.cache_path(), "builds": paths.build(), "drives": paths.drives()}
    problems = {name: paths.place_problem(path) for name, path in found.items()}
    problems["the cache"] = paths.name_problem(found["the cache"]) or problems["the cache"]
    return {name: (path, problems[name]) for name, path in found.items()}


def check_folders() -> None:
    """EssdError if a folder in which something is written cannot be used."""
    for name, (path, problem) in folders().items():
        if problem:
            raise EssdError(f"the folder {path} for {name} cannot be used: {problem}; "
                            f"{VARIABLES[name]} names another one")


def prepare(guest: bool = True, drive: bool = True,
            variants: Iterable[Path] = (), user_mode: bool = False,
            native_hart: bool = False) -> Built:
    """Build the parts that are asked for and missing, with progress lines.

    `variants` are folders that describe other guests than the default one; `user_mode`
    asks for user-mode Linux, and for EssdError if it does not run on this machine.
    """
    check_folders()
    wanted = ["firmware"] if drive else []
    wanted += ["qemu"] if drive or user_mode else []    # the relay is our QEMU, too
    wanted += ["native_hart"] if native_hart else []
    wanted += ["guest"] if guest else []
    wanted += ["uml"] if user_mode else []
    folders = list(dict.fromkeys(variants))
    for folder in folders:
        if not guest_variant.is_built(folder):
            with show.busy(f"looking for the packages of the guest {folder.name}"):
                guest_variant.check_packages(folder)
    tasks: dict[str | Path, Task] = {name: TASKS[name] for name in wanted}
    tasks |= {folder: variant_task(folder) for folder in folders}
    for task in tasks.values():
        if task.is_first():
            show.line(f"{task.name}: will be built ({task.first})")
    built = Built()
    progress = show.Progress()
    failed: Exception | None = None
    with progress.shown(), ThreadPoolExecutor(len(tasks) or 1) as pool:
        futures: dict[Future[object], str | Path] = {}
        with ending(futures):
            with interrupts.held():
                for key, task in tasks.items():
                    futures[pool.submit(task.build, progress.task(task.name))] = key
            for future in as_completed(futures):
                key = futures[future]
                try:
                    result = future.result()
                    if isinstance(key, Path):
                        assert isinstance(result, Guest)
                        built.variants[key] = result
                    else:
                        setattr(built, key, result)
                    progress.done(tasks[key].name)
                except Exception as error:
                    failed = failed or error
                    progress.failed(tasks[key].name)
    if failed is not None:
        raise failed
    for folder, variant in built.variants.items():
        for module, reason in guest_variant.missing(variant).items():
            show.line(f"the guest of {folder} has no module {module}: {reason}")
    if built.uml is not None and built.guest is not None:
        uml.check(built.uml, built.guest)
    return built


def ensure_accel(guest: Guest) -> str:
    """Return "kvm" or "tcg"; a line on the screen says why KVM is not used."""
    works, why = vm.kvm_verdict(guest)
    if not works:
        show.line(f"KVM is not used ({why}): the Linux guests run under emulation (TCG)")
    return "kvm" if works else "tcg"


def report_sandbox() -> None:
    """Print a line if this machine's kernel cannot confine QEMU."""
    if not vm.has_seccomp():
        show.line("QEMU runs without its sandbox: this machine's kernel has no seccomp")
