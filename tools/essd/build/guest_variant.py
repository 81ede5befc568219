# SPDX-License-Identifier: BSD-2-Clause
"""Builds guests that have more packages than the default one.

A folder describes such a guest: `packages.txt` and `modules.txt` list what it has
beside the default guest's packages and modules, `skip.txt` replaces guest/skip.txt, and
the files in `rootfs` are laid over the root file system.  `sources.txt` lists modules that
Debian's kernel does not have (guest_modules.py), and `kernel.txt` describes another kernel
(guest_kernel.py).  All but `packages.txt` may be missing.  A host of a topology names the
folder (docs/topologies.md).  The kernel's configuration is in /boot, where test suites look
up what the kernel can do.

Each variant is a guest of its own in the cache, with its own kernel, keys and root.
"""

import hashlib
import os
import shutil
from pathlib import Path

from ..base import in_use, paths
from ..base.errors import EssdError
from . import guest_build, guest_kernel, guest_modules
from .fw_build import BuildError, Progress
from .guest_build import Apt, Guest, Modules

PACKAGES = "packages.txt"
PEERS = paths.TOP / "examples/peers/guest"     # with the peers of every transport
WITHOUT = "without"     # of a built guest: a line for each module that it should have
DESCRIPTION = "description"     # of a built guest: the name of the folder that describes it


def check(folder: Path) -> Path:
    """The folder with its full path; EssdError if it does not describe a guest."""
    if not (folder / PACKAGES).is_file():
        raise EssdError(f"{folder} does not describe a guest: there is no file "
                        f"{folder / PACKAGES}")
    return folder.resolve()


def read_list(file: Path) -> list[str]:
    """The lines of a list without comments and empty lines; none without the file."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [line for line in (x.split("#")[0].strip() for x in lines) if line]


def cache_folder() -> Path:
    return paths.cache() / "guest-variants"


def key(folder: Path) -> str:
    """A hash of everything that this guest is made of."""
    total = hashlib.sha256(guest_build.guest_key().encode())
    total.update(Path(__file__).read_bytes())
    if (folder / guest_modules.SOURCES).exists():
        total.update(Path(guest_modules.__file__).read_bytes())
    if (folder / guest_kernel.LIST).exists():
        total.update(Path(guest_kernel.__file__).read_bytes())
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        total.update(path.relative_to(folder).as_posix().encode() + b"\0")
        total.update(path.read_bytes() + b"\0")
    return total.hexdigest()[:16]


def is_built(folder: Path) -> bool:
    return (cache_folder() / key(folder)).exists()


def ensure(folder: Path, progress: Progress) -> Guest:
    """Return the guest; build it first if its inputs have changed."""
    target = cache_folder() / key(folder)
    if not in_use.hold(target):
        with paths.locked(cache_folder() / "lock", progress):
            if not in_use.hold(target):
                build(folder, target, progress)
                in_use.hold(target)
                forget_older(folder, target)
    return Guest(target)


def name_of(folder: Path) -> str:
    """What a description is called, also in another checkout."""
    return f"{folder.resolve().parent.name}/{folder.name}"


def forget_older(folder: Path, newest: Path) -> None:
    """Delete this folder's guests but `newest`, the next older one, and those in use.

    Guests of other folders stay: a run of all tests uses them one after the other.  Those
    that do not say whose they are were not finished, or made by an older version of essd.
    """
    def is_ours(guest: Path) -> bool:
        file = guest / DESCRIPTION
        return not file.exists() or file.read_text(encoding="utf-8") == name_of(folder)

    others = sorted((path for path in cache_folder().iterdir()
                     if path.is_dir() and path != newest and is_ours(path)
                     and guest_build.GUEST_NAME.fullmatch(path.name)),
                    key=lambda path: path.stat().st_mtime)
    for path in others[:-1]:
        in_use.delete(path)


def missing(guest: Guest) -> dict[str, str]:
    """The modules of `sources.txt` that a built guest does not have, and why."""
    file = guest.path / WITHOUT
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return dict(line.split(": ", 1) for line in lines)


def check_packages(folder: Path) -> None:
    """EssdError if Debian does not have all packages that the folder lists."""
    log = build_log(folder)
    with paths.locked(cache_folder() / "lock"):
        apt = package_lists(log)
        apt.get("update")
        try:
            apt.resolve(packages(folder), [])
        except BuildError as error:
            raise EssdError(f"{folder / PACKAGES}: {error}") from None
        fetch_kernel(folder, log)


def kernel_of(folder: Path) -> guest_kernel.Kernel | None:
    """The kernel that the guest has instead of the default one."""
    kernel = guest_kernel.read(read_list(folder / guest_kernel.LIST))
    if kernel is not None and (folder / guest_modules.SOURCES).exists():
        raise BuildError(f"{folder} has both {guest_kernel.LIST} and {guest_modules.SOURCES}, "
                         "whose modules are for Debian 13's kernel only")
    return kernel


def fetch_kernel(folder: Path, log: Path) -> list[Path]:
    """The archives of this kernel; none if the guest has the default one."""
    kernel = kernel_of(folder)
    if kernel is None:
        return []
    return guest_kernel.fetch(kernel, cache_folder() / f"apt-{kernel.suite}",
                              paths.cache() / "debs", log)


def packages(folder: Path) -> list[str]:
    """The packages of the guest without those that they depend on, and without a kernel
    that `kernel.txt` describes."""
    default = guest_build.read_list(PACKAGES)
    if kernel_of(folder) is not None:
        default.remove(guest_kernel.DEFAULT)
    return default + read_list(folder / PACKAGES)


def package_lists(log: Path) -> Apt:
    """apt with the package lists that all variants share."""
    return Apt(cache_folder() / "apt", paths.cache() / "debs", log)


def build_log(folder: Path) -> Path:
    """An empty log.  The key is in its name, because folders have the same name."""
    log = paths.cache() / "log" / f"guest-{folder.name}-build-{key(folder)}.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text("")
    return log


def compile_python(root: Path, log: Path) -> None:
    """Compile the guest's Python modules: that takes an emulated guest minutes.

    The guest's own Python does it, started with the guest's loader and libraries.
    """
    found = sorted((root / "usr/bin").glob("python3.[0-9]*"))
    if not found:
        return
    guest_build.run(log, root / "usr/lib64/ld-linux-x86-64.so.2", "--library-path",
                    root / "usr/lib/x86_64-linux-gnu", found[0], "-I", "-m", "compileall",
                    "-q", "--invalidation-mode", "unchecked-hash", "-s", root,
                    root / "usr/lib/python3", root / "usr/lib" / found[0].name,
                    env={**os.environ, "PYTHONHOME": str(root / "usr")})


def build(folder: Path, target: Path, progress: Progress) -> None:
    log = build_log(folder)
    work = target.with_name(f"{target.name}.{os.getpid()}")
    root = work / "root"
    try:
        root.mkdir(parents=True)
        work.chmod(0o700)
        versions = fill_root(folder, root, log, progress)
        add_modules(folder, versions, work, root, log, progress)
        prepare_kernel(folder, work, root, log, progress)
        progress("making the root file system")
        configs = {path.name: path.read_bytes() for path in (root / "boot").glob("config-*")}
        guest_build.finish_root(root, log)
        for name, text in configs.items():
            (root / "boot").mkdir(exist_ok=True)
            (root / "boot" / name).write_bytes(text)
        if (folder / "rootfs").is_dir():
            shutil.copytree(folder / "rootfs", root, dirs_exist_ok=True, symlinks=True)
        guest_build.make_keys(work, root, log)
        guest_build.run(log, "mksquashfs", root, work / "root.squashfs", "-all-root",
                        "-noappend", "-no-progress", "-comp", "lz4", "-processors",
                        str(os.cpu_count() or 1))
        (work / "versions").write_text(
            "".join(f"{n} {v}\n" for n, v in sorted(versions.items())))
        (work / DESCRIPTION).write_text(name_of(folder), encoding="utf-8")
        shutil.rmtree(root)
        work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def fill_root(folder: Path, root: Path, log: Path,
              progress: Progress) -> dict[str, str]:
    """Fetch and unpack the packages; return their versions."""
    progress("reading the package lists")
    apt = package_lists(log)
    apt.get("update")
    skip = (read_list(folder / "skip.txt") if (folder / "skip.txt").exists()
            else guest_build.read_list("skip.txt"))
    versions = apt.resolve(packages(folder), skip)
    progress(f"fetching {len(versions)} packages")
    archives = apt.fetch(versions) + fetch_kernel(folder, log)
    progress("unpacking the packages")
    guest_build.unpack(archives, root, log)
    guest_kernel.move_to_boot(root)
    progress("compiling Python modules")
    compile_python(root, log)
    kernel = kernel_of(folder)
    return versions | (kernel.versions if kernel is not None else {})


def add_modules(folder: Path, versions: dict[str, str], work: Path, root: Path, log: Path,
                progress: Progress) -> None:
    """Build the modules of `sources.txt`, or note why they are missing."""
    sources = guest_modules.read_sources(read_list(folder / guest_modules.SOURCES))
    if not sources:
        return
    there = work / "modules"
    try:
        release, modules = guest_modules.build(sources, versions, package_lists(log), there,
                                               log, progress)
        guest_modules.install(modules, root, release)
    except guest_modules.Unavailable as error:
        (work / WITHOUT).write_text("".join(f"{one.name}: {error}\n" for one in sources),
                                    encoding="utf-8")
    shutil.rmtree(there, ignore_errors=True)


def prepare_kernel(folder: Path, work: Path, root: Path, log: Path,
                   progress: Progress) -> None:
    """Extract the kernel, keep the wanted modules, write the initramfs."""
    progress("preparing the kernel and its modules")
    kernel, = (root / "boot").glob("vmlinuz-*")
    guest_build.kernel_elf(kernel.read_bytes(), work / "vmlinux", log)
    instead = kernel_of(folder)
    without = instead.without if instead is not None else frozenset()
    lines = [line.split() for line in
             guest_build.read_list("modules.txt") + read_list(folder / "modules.txt")]
    lines = [words for words in lines if words[0] not in without]
    modules = Modules(root, log)
    built = [path.stem for path in (modules.folder / "updates").glob("*.ko")]
    modules.prune([words[0] for words in lines] + built)
    early = [words[0] for words in lines if "initrd" in words]
    (work / "initrd").write_bytes(
        guest_build.initramfs(root, modules.load_order(early)))
