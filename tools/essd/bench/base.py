# SPDX-License-Identifier: BSD-2-Clause
"""`essd bench --compare BASE`: the drive of an earlier revision beside this checkout's.

BASE is a revision that git knows, or the folder of another checkout.  Its QEMU and its
firmware are built by its own tools, with the same cache, and run under the tools of this
checkout: with the same options, and with the same initiator at the other end.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ..base import in_use, paths, show
from ..base.errors import BUILD_S, EssdError, LOOK_UP_S
from ..build.fw_build import Firmware
from ..setup.setup import Binaries, Wish
from . import turns
from .native import build_initiator, wanted_workloads
from .turns import Side

if TYPE_CHECKING:
    from .bench import Output

KEPT = 3            # checkouts of earlier revisions
# Runs in the other checkout.  Its modules have moved: before, all of them were in essd.
# The argument "native" asks for the firmware of a native hart, too.
BUILD = """
import json, sys
sys.path.insert(0, "tools")
try:
    from essd.build import fw_build, qemu_build
except ImportError:
    from essd import fw_build, qemu_build
firmware = fw_build.ensure_firmware()
native = getattr(fw_build, "ensure_native_hart", None) if "native" in sys.argv else None
print(json.dumps({"qemu": str(qemu_build.ensure_qemu()), "image": str(firmware.image),
                  "version": firmware.version, "native": str(native()) if native else ""}))
"""


def is_base(text: str) -> bool:
    """Whether this names a checkout or a revision, and not a file with results."""
    return not Path(text).is_file()


def checkout(base: str) -> Path:
    """The folder with the sources of BASE."""
    if Path(base).is_dir():
        if not (Path(base) / "tools/essd").is_dir():
            raise EssdError(f"--compare {base}: this folder is no checkout of essd")
        return Path(base).absolute()
    paths.need_checkout("bench --compare BASE")
    commit = git("rev-parse", "--verify", "--quiet", f"{base}^{{commit}}")
    if not commit:
        raise EssdError(f"--compare {base}: neither a file with results, nor a folder, nor a "
                        "revision that git knows")
    return unpacked(commit)


def git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(paths.TOP), *words], check=False, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, timeout=LOOK_UP_S)
    return done.stdout.strip() if done.returncode == 0 else ""


def unpacked(commit: str) -> Path:
    """A folder of the cache with the sources of a revision."""
    folder = paths.cache() / "base" / commit[:16]
    if in_use.hold(folder):
        return folder
    folder.parent.mkdir(exist_ok=True)
    with paths.locked(folder.parent / "lock"):
        if not folder.exists():
            fresh = folder.with_name("new")
            in_use.delete_whole(fresh)
            fresh.mkdir()
            unpack(commit, fresh)
            fresh.rename(folder)
        in_use.hold(folder)
        drop_old(folder)
    return folder


def unpack(commit: str, to: Path) -> None:
    with subprocess.Popen(["git", "-C", str(paths.TOP), "archive", commit],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as archive:
        status = subprocess.run(["tar", "-x", "-C", str(to)], stdin=archive.stdout, check=False,
                                timeout=BUILD_S).returncode
    if archive.returncode != 0 or status != 0:
        raise EssdError(f"the sources of {commit[:12]} cannot be unpacked in {to}")


def drop_old(current: Path) -> None:
    """Delete the checkouts of other revisions, except the newest ones."""
    others = sorted((one for one in current.parent.iterdir() if one.is_dir()
                     and one != current and not in_use.is_removed(one)),
                    key=lambda one: one.stat().st_mtime)
    for old in others[:max(0, len(others) - KEPT + 1)]:
        in_use.delete(old)


def binaries(base: str, with_native: bool = False) -> Binaries:
    """Build what BASE is compared by; with its native hart, if it has one."""
    source = checkout(base)
    with show.busy(f"building the drive of {base}"):
        # PYTHONPATH may name this checkout's modules.
        done = subprocess.run([sys.executable, "-c", BUILD, *["native"] * with_native],
                              cwd=source, check=False, text=True,
                              env={word: value for word, value in os.environ.items()
                                   if word != "PYTHONPATH"},
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=BUILD_S)
    try:
        facts = json.loads(done.stdout.splitlines()[-1])
        image = Path(facts["image"])
        firmware = Firmware(image, image, image, image, facts["version"])
        qemu = Path(facts["qemu"])
        in_use.hold(qemu.parent)
        return Binaries(qemu, firmware, Path(facts["native"]) if facts["native"] else None)
    except (IndexError, ValueError, KeyError, TypeError):
        last = (done.stderr.strip() or "no output").splitlines()[-1]
        raise EssdError(f"--compare {base}: its drive cannot be built: {last}") from None


def wish(nand: str | None, is_block: bool, mtu: int, built: Binaries | None) -> Wish:
    return Wish(nand=nand, block=is_block, mtu=mtu, lower_floor=True, binaries=built)


def sides(nand: str | None, is_block: bool, mtu: int, earlier: Binaries) -> Sequence[Side]:
    return (Side("base", wish(nand, is_block, mtu, earlier)),
            Side("new", wish(nand, is_block, mtu, None)))


def command(base: str, seconds: float, rounds: int | None, only: str, mtu: int, is_block: bool,
            nand: str | None, output: "Output") -> None:
    """Run `essd bench --compare BASE`."""
    rounds = turns.ROUNDS if rounds is None else rounds
    if rounds < 1:
        raise EssdError(f"--rounds {rounds}: use 1 or more")
    workloads = wanted_workloads(only)
    earlier = binaries(base)
    program = build_initiator()
    load = turns.now()
    rows = turns.measured(sides(nand, is_block, mtu, earlier), workloads, seconds, rounds, program,
                          lambda row: show.line(turns.progress_line(row)))
    if not output.as_json:
        show.line()
        show.console.print(turns.table_of(rows, "drive", "base"))
        show.line(f"base: the drive of {base}; new: that of this checkout; both with the same "
                  "initiator, in turns")
        turns.show_legend(rows, "base", rounds, load)
    output.write({"workloads": [asdict(row) for row in rows]}, None,
                 f"essd bench --compare {base}: an earlier drive beside this one")
