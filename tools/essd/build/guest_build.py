# SPDX-License-Identifier: BSD-2-Clause
"""Builds the Linux guest: a stock Debian 13 kernel and a read-only root.

The build runs as an ordinary user and needs neither name spaces nor fakeroot.
apt, with folders of its own, resolves, fetches and verifies the packages;
`dpkg-deb -x` unpacks them; `mksquashfs -all-root` makes root own the files.  No
maintainer script runs: guest/rootfs holds what the few necessary ones would
have written.

Packages come from the mirror in this machine's own package sources and are
verified with the system's key ring.  This module uses the standard library
only, because the launcher may run it before the virtual environment exists.
"""

import fnmatch
import hashlib
import lzma
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from ..base import in_use, paths
from ..base.errors import BUILD_S, LOOK_UP_S
from .fw_build import BuildError, Progress

SUITE = "trixie"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SOURCE = paths.TOP / "guest"
UML_SOURCE = SOURCE / "uml"     # of a kernel that is built apart (uml_build.py)


@dataclass(frozen=True)
class Guest:
    """The files that a virtual machine boots from, and the keys for ssh."""

    path: Path

    @property
    def kernel(self) -> Path:
        return self.path / "vmlinux"

    @property
    def initrd(self) -> Path:
        return self.path / "initrd"

    @property
    def root(self) -> Path:
        return self.path / "root.squashfs"

    @property
    def ssh_key(self) -> Path:
        return self.path / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        return self.path / "known_hosts"

    @property
    def versions(self) -> Path:
        """A file with a line "package version" for each package."""
        return self.path / "versions"


def read_list(name: str) -> list[str]:
    """Return the lines of guest/<name> without comments and empty lines."""
    lines = (SOURCE / name).read_text(encoding="utf-8").splitlines()
    return [line for line in (x.split("#")[0].strip() for x in lines) if line]


def digest(names: Iterable[Path]) -> str:
    """Return a hash of the names and contents of files, for use as a cache key."""
    total = hashlib.sha256()
    for path in sorted(names, key=paths.source_name):
        total.update(paths.source_name(path).encode() + b"\0")
        total.update(path.read_bytes() + b"\0")
    return total.hexdigest()[:16]


def guest_key() -> str:
    files = [p for p in SOURCE.rglob("*") if p.is_file() and p.name != "sysroot.txt"
             and p.parent != UML_SOURCE]
    return digest([*files, Path(__file__).resolve()])


def run(log: Path, *command: str | Path, cwd: Path | None = None,
        env: dict[str, str] | None = None) -> str:
    """Run a command and return its output; both streams are kept in the log."""
    with open(log, "a", encoding="utf-8") as messages:
        messages.write("$ " + " ".join(map(str, command)) + "\n")
        messages.flush()
        start = messages.tell()
        try:
            done = subprocess.run(command, cwd=cwd, env=env, check=False, text=True,
                                  stdin=subprocess.DEVNULL, stderr=messages,
                                  stdout=subprocess.PIPE, timeout=BUILD_S)
        except subprocess.TimeoutExpired:
            raise BuildError(f"{Path(command[0]).name} was killed because it took "
                             f"longer than {BUILD_S} s; see {log}") from None
        messages.write(done.stdout)
    if done.returncode != 0:
        said = log.read_bytes()[start:].decode(errors="replace")
        raise BuildError(f"{Path(command[0]).name} failed (status "
                         f"{done.returncode}){apt_errors(said)}; see {log}")
    return done.stdout


def apt_errors(said: str) -> str:
    """What apt calls errors, and the first download that failed, behind a colon."""
    lines = [line for line in said.splitlines() if line.startswith("E: ")]
    lines += [line for line in said.splitlines() if line.startswith("W: Failed")][:1]
    return "".join(f": {line[3:].strip()}" for line in dict.fromkeys(lines))


def mirror() -> str:
    """Return the URI of the Debian archive in this machine's package sources."""
    listing = subprocess.run(
        ["apt-get", "indextargets", "--format",
         "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"],
        check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        timeout=LOOK_UP_S)
    codename = ""
    for line in Path("/etc/os-release").read_text(encoding="utf-8").splitlines():
        if line.startswith("VERSION_CODENAME="):
            codename = line.split("=", 1)[1].strip('"')
    for line in listing.stdout.splitlines():
        uri, release, component = line.rsplit(" ", 2)
        if component == "main" and release in (codename, SUITE, "stable"):
            return uri.rstrip("/")
    raise BuildError("this machine's package sources contain no Debian archive, which "
                     "is needed to build the guest: add one to /etc/apt/sources.list.d "
                     "and run `apt-get update` as root")


class Apt:
    """apt with folders of its own, in which no package is installed.

    In a folder that is kept, apt reads only those package lists again that have changed.
    """

    def __init__(self, folder: Path, archives: Path, log: Path) -> None:
        self.archives = archives
        self.log = log
        if not KEYRING.exists():
            raise BuildError(f"{KEYRING} does not exist: install the package "
                             "debian-archive-keyring")
        for name in ("lists/partial", "cache/archives/partial", "none"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        archives.mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        sources = folder / "sources.list"
        sources.write_text(f"deb [signed-by={KEYRING} arch=amd64] {mirror()} "
                           f"{SUITE} main\n", encoding="utf-8")
        config = folder / "apt.conf"
        config.write_text(f"""
            Dir::State "{folder}";
            Dir::State::lists "{folder}/lists";
            Dir::State::status "{folder}/status";
            Dir::Cache "{folder}/cache";
            Dir::Etc::sourcelist "{sources}";
            Dir::Etc::sourceparts "{folder}/none";
            Dir::Etc::preferences "{folder}/none/none";
            Dir::Etc::preferencesparts "{folder}/none";
            APT::Architecture "amd64";
            APT::Architectures {{ "amd64"; }};
            APT::Install-Recommends "false";
            APT::Sandbox::User "";
            Acquire::Languages "none";
            Acquire::Retries "3";
            Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
            Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
            #clear APT::Update::Post-Invoke;
            #clear APT::Update::Post-Invoke-Success;
            """, encoding="utf-8")
        self.env = {**os.environ, "APT_CONFIG": str(config), "LC_ALL": "C"}

    def get(self, *arguments: str, cwd: Path | None = None) -> str:
        return run(self.log, "apt-get", "-q", *arguments, cwd=cwd, env=self.env)

    def resolve(self, names: list[str], skip: list[str]) -> dict[str, str]:
        """Return the version of each package and of all its dependencies, by name."""
        found = {}
        for line in self.get("install", "-s", "-y", *names).splitlines():
            match = re.match(r"Inst (\S+) \((\S+) ", line)
            if match and not any(fnmatch.fnmatch(match[1], p) for p in skip):
                found[match[1].split(":")[0]] = match[2]
        return found

    def fetch(self, versions: dict[str, str]) -> list[Path]:
        """Return the verified archives; download those that are not in the cache."""
        self.get("download", *(f"{n}={v}" for n, v in versions.items()),
                 cwd=self.archives)
        files: list[Path] = []
        for name, version in versions.items():
            epochless = version.replace(":", "%3a")
            files += self.archives.glob(f"{name}_{epochless}_*.deb")
        if len(files) != len(versions):
            raise BuildError(f"apt-get did not download all packages; see {self.log}")
        return files


def unpack(archives: list[Path], root: Path, log: Path) -> None:
    for folder in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / folder).mkdir(parents=True)
        (root / folder).symlink_to(f"usr/{folder}")
    for archive in archives:
        run(log, "dpkg-deb", "-x", archive, root)


class Modules:
    """The kernel's modules; prune() keeps the wanted ones and their dependencies."""

    def __init__(self, root: Path, log: Path) -> None:
        self.root = root
        self.log = log
        folders = list((root / "usr/lib/modules").iterdir())
        if len(folders) != 1:
            raise BuildError("the guest's packages must contain one kernel, and contain "
                             f"{len(folders)}: check guest/packages.txt")
        self.folder = folders[0]
        self.release = self.folder.name

    def depmod(self) -> None:
        run(self.log, "/sbin/depmod", "-b", self.root, self.release)

    def dependencies(self) -> dict[str, tuple[str, list[str]]]:
        """Return each module's file and the files it needs, nearest first, by name."""
        table = {}
        for line in (self.folder / "modules.dep").read_text().splitlines():
            file, needs = line.split(":")
            name = Path(file).name.split(".ko")[0].replace("-", "_")
            table[name] = (file, needs.split())
        return table

    def prune(self, wanted: list[str]) -> None:
        """Keep only wanted modules, decompressed because xz is slow under emulation."""
        self.depmod()
        table = self.dependencies()
        builtin = {Path(line).name.split(".ko")[0].replace("-", "_")
                   for line in (self.folder / "modules.builtin").read_text().split()}
        keep = set()
        for name in wanted:
            if name in table:
                file, needs = table[name]
                keep.update([file, *needs])
            elif name not in builtin:
                raise BuildError(f"kernel {self.release} has no module {name}: "
                                 "correct guest/modules.txt")
        for path in (self.folder / "kernel").rglob("*.ko*"):
            if str(path.relative_to(self.folder)) in keep and path.suffix == ".xz":
                path.with_suffix("").write_bytes(lzma.decompress(path.read_bytes()))
            if str(path.relative_to(self.folder)) not in keep or path.suffix == ".xz":
                path.unlink()
        self.depmod()

    def load_order(self, names: list[str]) -> list[Path]:
        table = self.dependencies()
        order: list[str] = []
        for name in names:
            if name in table:
                file, needs = table[name]
                order += [f for f in [*reversed(needs), file] if f not in order]
        return [self.folder / file for file in order]


class Cpio:
    """Writes a cpio archive in format "newc", which the kernel takes as initramfs."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.inode = 1

    def add(self, name: str, mode: int, content: bytes = b"") -> None:
        fields = [self.inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0,
                  len(name) + 1, 0]
        self.inode += 1
        self.data += b"070701" + b"".join(b"%08X" % f for f in fields)
        self.data += name.encode() + b"\0"
        self.data += bytes(-len(self.data) % 4)
        self.data += content
        self.data += bytes(-len(self.data) % 4)

    def folder(self, name: str) -> None:
        self.add(name, stat.S_IFDIR | 0o755)

    def file(self, name: str, path: Path) -> None:
        self.add(name, stat.S_IFREG | 0o755, path.read_bytes())

    def close(self) -> bytes:
        self.add("TRAILER!!!", 0)
        return bytes(self.data)


def initramfs(root: Path, modules: list[Path]) -> bytes:
    archive = Cpio()
    for name in ("bin", "dev", "proc", "sys", "lower", "upper", "root", "modules"):
        archive.folder(name)
    archive.add("dev/console", stat.S_IFCHR | 0o600)
    archive.file("bin/busybox", root / "usr/bin/busybox")
    archive.file("init", SOURCE / "initramfs-init")
    for path in modules:
        archive.file(f"modules/{path.name}", path)
    archive.add("modules/order", stat.S_IFREG | 0o644,
                "".join(f"{p.name}\n" for p in modules).encode())
    return archive.close()


def kernel_elf(bzimage: bytes, out: Path, log: Path) -> None:
    """Extract the ELF image from a bzImage; QEMU starts it through its PVH note.

    Starting the ELF image avoids the kernel's own decompressor, which takes seconds
    under emulation.
    Spec: Documentation/arch/x86/boot.rst, "payload_offset".
    """
    setup_sectors = bzimage[0x1f1] or 4
    offset = int.from_bytes(bzimage[0x248:0x24c], "little")
    length = int.from_bytes(bzimage[0x24c:0x250], "little")
    start = (setup_sectors + 1) * 512 + offset
    payload = bzimage[start:start + length]
    packed = out.with_suffix(".payload")
    # The last four bytes hold the unpacked size and are not part of the stream.
    packed.write_bytes(payload[:-4])
    if payload[:4] == b"\x28\xb5\x2f\xfd":
        run(log, "zstd", "-q", "-d", "-f", packed, "-o", out)
    elif payload[:6] == b"\xfd7zXZ\0":
        out.write_bytes(lzma.decompress(payload[:-4]))
    else:
        raise BuildError("the kernel is compressed by an unknown method (first bytes "
                         f"{payload[:6].hex()}): add it to kernel_elf()")
    packed.unlink()
    if out.read_bytes()[:4] != b"\x7fELF":
        raise BuildError("the kernel's payload is not an ELF file")


def ssh_fields(blob: bytes) -> list[bytes]:
    """Split an SSH structure into its length-prefixed strings."""
    fields = []
    while len(blob) >= 4:
        size = int.from_bytes(blob[:4], "big")
        fields.append(blob[4:4 + size])
        blob = blob[4 + size:]
    return fields


def dropbear_key(openssh: str) -> bytes:
    """Convert an unencrypted OpenSSH Ed25519 key into Dropbear's format.

    Spec: OpenSSH's PROTOCOL.key.  Dropbear's file has two length-prefixed strings:
    the key's type, and 64 bytes of seed and public key.
    """
    import base64
    body = "".join(line for line in openssh.splitlines() if "-----" not in line)
    blob = base64.b64decode(body).removeprefix(b"openssh-key-v1\0")
    # Skip cipher, KDF and KDF options; then come the number of keys, the public key
    # and the private key.
    for _ in range(3):
        blob = blob[4 + int.from_bytes(blob[:4], "big"):]
    private = ssh_fields(blob[4:])[1]
    kind, _public, secret = ssh_fields(private[8:])[:3]
    if kind != b"ssh-ed25519" or len(secret) != 64:
        raise BuildError(f"ssh-keygen made a key of type {kind.decode(errors='replace')} "
                         "instead of ssh-ed25519")
    return b"".join(len(x).to_bytes(4, "big") + x for x in (kind, secret))


def make_keys(guest: Path, root: Path, log: Path) -> None:
    for name in ("id_ed25519", "host_key"):
        run(log, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "essd",
            "-f", guest / name)
    public = (guest / "host_key.pub").read_text().split()
    (guest / "known_hosts").write_text(f"essd {public[0]} {public[1]}\n")
    dropbear = root / "etc/dropbear"
    dropbear.mkdir(exist_ok=True)
    (dropbear / "host_key").write_bytes(
        dropbear_key((guest / "host_key").read_text()))
    (dropbear / "host_key").chmod(0o600)
    home = root / "root/.ssh"
    home.mkdir(mode=0o700, exist_ok=True)
    shutil.copy(guest / "id_ed25519.pub", home / "authorized_keys")
    (home / "authorized_keys").chmod(0o600)
    (root / "root").chmod(0o700)


def finish_root(root: Path, log: Path) -> None:
    """Do the necessary part of what the packages' maintainer scripts would do."""
    shutil.copytree(SOURCE / "rootfs", root, dirs_exist_ok=True, symlinks=True)
    for folder in ("dev", "proc", "sys", "run", "tmp", "mnt", "root", "var/run",
                   "var/lib/chrony", "var/lib/dhcp"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    applets = run(log, root / "usr/bin/busybox", "--list").split()
    for name in applets:
        here = [root / "usr/bin" / name, root / "usr/sbin" / name]
        if not any(p.exists() or p.is_symlink() for p in here):
            here[0].symlink_to("busybox")
    if not (root / "usr/bin/sh").exists():
        (root / "usr/bin/sh").symlink_to("bash")
    for folder in ("usr/share/doc", "usr/share/man", "usr/share/locale",
                   "usr/share/i18n", "boot", "usr/share/bash-completion"):
        shutil.rmtree(root / folder, ignore_errors=True)
    run(log, "/sbin/ldconfig", "-r", root)


def build(target: Path, progress: Progress) -> None:
    log = paths.cache() / "log" / f"guest-build-{target.name}.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text("")
    work = target.with_name(f"{target.name}.{os.getpid()}")
    shutil.rmtree(work, ignore_errors=True)
    root = work / "root"
    root.mkdir(parents=True)
    work.chmod(0o700)

    progress("reading the package lists")
    apt = Apt(work / "apt", paths.cache() / "debs", log)
    apt.get("update")
    versions = apt.resolve(read_list("packages.txt"), read_list("skip.txt"))
    progress(f"fetching {len(versions)} packages")
    archives = apt.fetch(versions)
    progress("unpacking the packages")
    unpack(archives, root, log)

    progress("preparing the kernel and its modules")
    kernel, = (root / "boot").glob("vmlinuz-*")
    kernel_elf(kernel.read_bytes(), work / "vmlinux", log)
    lines = [line.split() for line in read_list("modules.txt")]
    modules = Modules(root, log)
    modules.prune([words[0] for words in lines])
    early = [words[0] for words in lines if "initrd" in words]
    (work / "initrd").write_bytes(initramfs(root, modules.load_order(early)))

    progress("making the root file system")
    finish_root(root, log)
    make_keys(work, root, log)
    run(log, "mksquashfs", root, work / "root.squashfs", "-all-root", "-noappend",
        "-no-progress", "-comp", "lz4", "-processors", str(os.cpu_count() or 1))
    (work / "versions").write_text(
        "".join(f"{n} {v}\n" for n, v in sorted(versions.items())))
    shutil.rmtree(root)
    shutil.rmtree(work / "apt")
    work.rename(target)


def ensure_guest(progress: Progress) -> Guest:
    """Return the guest; build it first if its inputs have changed."""
    folder = paths.cache() / "guest"
    target = folder / guest_key()
    return Guest(ensure_built(folder, target, lambda: build(target, progress), progress))


def ensure_built(folder: Path, target: Path, build_it: Callable[[], None],
                 progress: Progress = lambda text: None) -> Path:
    """Build `target` unless it exists, and keep it until this process ends."""
    if not in_use.hold(target):
        with paths.locked(folder / "lock", progress):
            if not in_use.hold(target):
                build_it()
                in_use.hold(target)
                forget_old(folder, target)
    return target


# The names of guests are keys; while a process builds one, its number follows.
GUEST_NAME = re.compile(r"[0-9a-f]{16}(\.\d+)?")


def forget_old(folder: Path, newest: Path) -> None:
    """Delete all guests but `newest`, the next older one, and those that are in use."""
    others = sorted((p for p in folder.iterdir()
                     if p.is_dir() and p != newest and GUEST_NAME.fullmatch(p.name)),
                    key=lambda p: p.stat().st_mtime)
    for path in others[:-1]:
        in_use.delete(path)


def ensure_sysroot(progress: Progress) -> Path:
    """Return a folder with the guest's headers and libraries, for `--sysroot`."""
    key = digest([SOURCE / "sysroot.txt", Path(__file__).resolve()])
    folder = paths.cache() / "sysroot"
    target = folder / key
    if target.exists():
        return target
    with paths.locked(folder / "lock", progress):
        if target.exists():
            return target
        progress("fetching the guest's headers and libraries")
        log = paths.cache() / "log" / f"sysroot-build-{key}.log"
        log.parent.mkdir(exist_ok=True)
        log.write_text("")
        work = target.with_name(f"{target.name}.{os.getpid()}")
        apt = Apt(work / "apt", paths.cache() / "debs", log)
        apt.get("update")
        versions = apt.resolve(read_list("sysroot.txt"), read_list("skip.txt"))
        unpack(apt.fetch(versions), work / "root", log)
        (work / "root").rename(target)
        shutil.rmtree(work)
    return target
