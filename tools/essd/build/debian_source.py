# SPDX-License-Identifier: BSD-2-Clause
"""Fetches upstream tarballs from Debian's source packages.

The mirror is the one in this machine's own package sources.  apt runs with a state of
its own, so that this needs no root rights and does not change the system.
"""

import fcntl
import hashlib
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import BUILD_S, LOOK_UP_S
from ..base.paths import cache, flocked
from .fw_build import BuildError, Progress

SUITE = "trixie"


@dataclass(frozen=True)
class Release:
    """An upstream tarball that is known to work."""

    version: str
    file: str
    sha256: str


@dataclass(frozen=True)
class Source:
    """What is fetched, with the releases that are known to work.

    Debian's pools delete superseded releases, so the list has all that a mirror may
    still offer, newest first.  To add one, take its checksum from `apt-cache showsrc`
    and run every test.
    """

    package: str                # Debian's name of the source package
    name: str                   # name for messages
    releases: tuple[Release, ...]
    module: str                 # the file that has the list


def sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(source: Source, progress: Progress, log: Path) -> Path:
    """Return an accepted tarball; download it from Debian's pool if necessary."""
    folder = cache() / "download"
    folder.mkdir(parents=True, exist_ok=True)
    if found := downloaded(source, folder):
        return found
    # QEMU and the libraries are fetched by builds that may run beside each other, and apt
    # fails while another apt has the same state.
    with flocked(cache() / "apt" / "lock", fcntl.LOCK_EX):
        return downloaded(source, folder) or download(source, folder, progress, log)


def downloaded(source: Source, folder: Path) -> Path | None:
    """The accepted tarball that is in the folder, if there is one."""
    for release in source.releases:
        path = folder / release.file
        if path.exists() and sha256(path) == release.sha256:
            return path
    return None


def download(source: Source, folder: Path, progress: Progress, log: Path) -> Path:
    progress(f"looking for the source of {source.name} in Debian's pool")
    apt = PrivateApt(cache() / "apt", log)
    offered = apt.sources(source.package)
    failed = []
    for release in source.releases:
        for package, checksums in offered.items():
            if checksums.get(release.file) == release.sha256:
                progress(f"downloading {source.name} {release.version}")
                if apt.download(source.package, package, folder) and \
                        sha256(folder / release.file) == release.sha256:
                    return folder / release.file
                failed.append(release.version)
    if failed:
        raise BuildError(f"Debian's pool has {source.name} {', '.join(failed)}, but it "
                         f"cannot be downloaded; see {log}")
    raise BuildError(
        f"Debian's pool offers {source.name} {', '.join(offered) or 'in no version'}, but "
        f"essd needs {' or '.join(r.version for r in source.releases)}: put one of "
        f"{', '.join(r.file for r in source.releases)} into {folder} and start again, or "
        f"add the new release to {source.module}")


class PrivateApt:
    """apt with a state of its own, which an ordinary user can write."""

    def __init__(self, folder: Path, log: Path) -> None:
        self.log = log
        self.config = folder / "apt.conf"
        for name in ("lists/partial", "archives/partial", "etc"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "etc" / "source.sources").write_text(self.source_lines(),
                                                       encoding="utf-8")
        self.config.write_text(
            "#clear APT::Update::Pre-Invoke;\n"
            "#clear APT::Update::Post-Invoke;\n"
            "#clear APT::Update::Post-Invoke-Success;\n"
            "#clear Acquire::IndexTargets::deb::DEP-11;\n"
            f'Dir::State "{folder}";\n'
            f'Dir::State::Lists "{folder}/lists";\n'
            'Dir::State::status "/var/lib/dpkg/status";\n'
            f'Dir::Cache "{folder}";\n'
            f'Dir::Etc::sourcelist "{folder}/etc/source.sources";\n'
            'Dir::Etc::sourceparts "/dev/null";\n'
            f'APT::Sandbox::User "{"root" if os.getuid() == 0 else ""}";\n'
            'Acquire::Languages "none";\n', encoding="utf-8")

    @staticmethod
    def source_lines() -> str:
        """Return apt sources for Debian 13's source packages on the system's mirror."""
        # This command works without root, and before the system has fetched any list.
        listing = subprocess.run(
            ["apt-get", "update", "--print-uris", "-o", "Debug::NoLocking=true"],
            capture_output=True, text=True, check=False, timeout=LOOK_UP_S).stdout
        known = re.findall(r"^'(\S+)/dists/(\S+)/InRelease'", listing, re.M)
        names = {codename(), SUITE, "stable", "oldstable"} - {""}
        main = [uri for uri, suite in known if suite in names]
        security = [uri for uri, suite in known if suite.endswith("-security")
                    and suite.removesuffix("-security") in names]
        if not main:
            raise BuildError("this machine's package sources contain no Debian mirror, "
                             "which is needed to fetch the sources of QEMU and Mbed "
                             "TLS: add one to /etc/apt/sources.list.d")
        text = stanza(main[0], f"{SUITE} {SUITE}-updates")
        return text + (stanza(security[0], f"{SUITE}-security") if security else "")

    def run(self, *words: str, folder: Path | None = None) -> str | None:
        """Return the output of an apt command, or None if it failed."""
        result = subprocess.run([words[0], "-c", str(self.config), *words[1:]],
                                cwd=folder, capture_output=True, text=True,
                                stdin=subprocess.DEVNULL, check=False,
                                env=os.environ | {"LC_ALL": "C"}, timeout=BUILD_S)
        with open(self.log, "a", encoding="utf-8") as file:
            file.write(f"\n$ {' '.join(words)}\n{result.stderr}")
        return result.stdout if result.returncode == 0 else None

    def sources(self, package: str) -> dict[str, dict[str, str]]:
        """Return the versions that the mirror offers, each with its files' SHA-256."""
        if self.run("apt-get", "update", "-q") is None:
            raise BuildError("Debian's package lists cannot be fetched; check the "
                             f"network, and see {self.log}")
        text = self.run("apt-cache", "showsrc", package) or ""
        versions = {}
        for paragraph in text.split("\n\n"):
            match = re.search(r"^Version: (\S+)", paragraph, re.M)
            if match:
                versions[match[1]] = {
                    name: digest for digest, name in re.findall(
                        r"^ ([0-9a-f]{64}) \d+ (\S+)", paragraph, re.M)}
        return versions

    def download(self, package: str, version: str, folder: Path) -> bool:
        return self.run("apt-get", "source", "-q", "--download-only", "--tar-only",
                        f"{package}={version}", folder=folder) is not None


def stanza(uri: str, suites: str) -> str:
    return (f"Types: deb-src\nURIs: {uri}\nSuites: {suites}\nComponents: main\n"
            "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\n")


def codename() -> str:
    text = Path("/etc/os-release").read_text(encoding="utf-8")
    match = re.search(r'^VERSION_CODENAME="?(\w+)', text, re.M)
    return match[1] if match else ""
