# SPDX-License-Identifier: BSD-2-Clause
"""Systems of drives, hosts and switches: how they start and end."""

import atexit
import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base import chosen, claims, ends, interrupts, paths, process, show
from ..base.errors import EssdError
from ..drive import mgmt
from ..instance import steps
from ..instance.config import Config, HARTS, RISCV, STOCK, console_log
from ..instance.instance import Instance
from ..machine import key_log
from ..setup import setup
from ..setup.temporary import Temporary
from .drive import Drive
from .host import Host
from .part import Switch, last_lines

if TYPE_CHECKING:
    from ..topology.topology import Topology

# The systems that this process has started and not closed.
_open: "list[System]" = []


class System:
    """A running system: drives, hosts and switches with the cables between them.

    up() and attach() return one.  As a context manager it is closed at the end.
    """

    def __init__(self, instance: Instance, owner: Temporary | None = None,
                 is_ours: bool = False) -> None:
        config = instance.config
        self.instance = instance
        self.name = instance.name
        self.drives = [Drive(instance, name) for name in config.drives]
        self.hosts = [Host(instance, name) for name in config.hosts]
        self.switches = [Switch(instance, name) for name in config.switches]
        for part in (*self.drives, *self.hosts, *self.switches):
            part.system = self
        self._owner = owner
        self._is_ours = is_ours

    def __repr__(self) -> str:
        return f"<System {self.name}: {', '.join(self.instance.config.parts())}>"

    # Parts

    @property
    def host(self) -> Host:
        """The first host; EssdError if the system has none."""
        if not self.hosts:
            raise EssdError(f"{self.name} has no host")
        return self.hosts[0]

    def drive(self, name: str) -> Drive:
        """The drive with this name; EssdError names the nearest valid one."""
        for one in self.drives:
            if one.name == name:
                return one
        names = [one.name for one in self.drives]
        raise EssdError(f"{self.name} has no drive {name}{chosen.mean(name, names)}")

    # Looking

    @property
    def folder(self) -> Path:
        """The folder with sockets, logs and captures."""
        return self.instance.folder

    def status(self) -> dict[str, Any]:
        """What `essd status --json` shows: parts and cables (docs/json.md)."""
        return self.instance.status()

    @property
    def captures(self) -> list[Path]:
        """The pcap files of all cables; none without capture=True."""
        return [self.folder / f"link{link.number}.pcap"
                for link in self.instance.config.links if link.capture]

    def last_lines(self) -> dict[str, list[str]]:
        """The last lines of every drive's and host's console, by the part's name."""
        return {name: last_lines(console_log(self.folder, name))
                for name in self.instance.config.parts()
                if name not in self.instance.config.switches}

    def check(self) -> None:
        """EssdError if a part has crashed, or has restarted by itself."""
        self.instance.check()

    def wait_ready(self, timeout_s: float = 180) -> None:
        """Wait until every host runs commands and every powered drive answers.

        EssdError if one of them takes longer than `timeout_s` seconds.
        """
        for host in self.hosts:
            if host.is_on:
                host.wait_ready(timeout_s)
        for drive in self.drives:
            if drive.is_on:
                drive.wait_ready(timeout_s)

    # The end

    @property
    def is_running(self) -> bool:
        return self.instance.is_running

    def close(self) -> None:
        """End the system.  A temporary one is deleted; drives with a name keep their data.

        A system that attach() has returned goes on running, and so does one that was
        started with keep=True.
        """
        if not self._is_ours:
            return
        try:
            for look in ends.before_end:    # A host that hangs takes them a while.
                look(self)
        finally:
            with interrupts.ignored():
                self._is_ours = False
                _open.remove(self)
                if self._owner is None:
                    mgmt.shut_down(self.instance)
                self.instance.stop()
                if self._owner is not None:
                    self._owner.delete()

    def __enter__(self) -> "System":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_systems() -> list[System]:
    """The systems that this process has started and not closed."""
    return list(_open)


@atexit.register
def _close_all() -> None:
    for system in open_systems():
        with contextlib.suppress(EssdError, OSError):
            system.close()


def attach(name: str = "") -> System:
    """A system that runs already; by default the only one.  close() does not end it."""
    instance = Instance(chosen.instance(name))
    instance.status()           # EssdError if it is not running
    return System(instance)


@contextlib.contextmanager
def progress_on_stderr() -> Iterator[None]:
    """Print progress of builds on stderr: stdout belongs to the calling program."""
    before = show.console.stderr
    show.console.stderr = True
    try:
        yield
    finally:
        show.console.stderr = before


def up(*, drives: int = 1, size: str | None = None, mtu: int | None = None,
       cpus: int = 1, host: bool = True, topology: Path | str | None = None,
       capture: bool = False, config: Path | str | None = None,
       name: str = "", new: bool = False, keep: bool = False,
       nand: str | None = None, block: bool = False,
       straps: Sequence[int] = (), devices: Sequence[str] = (),
       boot_key: Path | str | None = None, host_kind: str = STOCK,
       hart: str = RISCV, capture_keys: Path | str | None = None) -> System:
    """Start drives and a Linux host; return when the host can connect to them.

    drives: how many.  One is connected to the host by two cables; several are on two
    switches, one for the ports 0 and one for the ports 1.
    size: capacity of each drive, "64M" to "16T" (default 8G; disk space is used for
    what is written).
    nand: what NAND array each drive has, "profile=qlc" or "8G,plp=on"; this size is that
    of the array (docs/nand.md).
    block: each drive has a block medium instead of a NAND array.
    straps: the strap pins of each drive that are high, such as [5, 6]
    (docs/hardware/soc.md).
    devices: what is put on the I2C buses of each drive, such as
    ["at24c-eeprom,bus=i2c.2,address=0x50,rom-size=256"] (docs/hardware/i2c.md).
    boot_key: a PEM file with a private key, whose public key is fused into each new
    drive: it starts only firmware that is signed with it (docs/firmware-update.md).
    mtu: of the links, 1280 to 9000 bytes.
    cpus: virtual CPUs of the host.  host: False starts the drives alone.
    host_kind: "stock" (Debian's kernel in a virtual machine), or "uml" (user-mode Linux,
    which starts in a second; docs/hosts.md).
    hart: "riscv", or "native": each drive's firmware is built for this computer, and
    faster (docs/hardware/native-hart.md).
    topology: a YAML file instead of all these (docs/topologies.md).
    config: a YAML file with the settings of a single drive (docs/configuration.md).
    capture: record every frame of every cable (System.captures).
    capture_keys: a file for the secrets of the drives' TLS connections, with which the
    captures are decrypted (docs/captures.md).
    name: the system's name for `essd status --name` and the like.  Drives of a system
    with a name are kept when it ends, and used again; `new` deletes them first.
    Without a name, the system gets one that no other has, and is deleted at the end.
    keep: leave the system running when this program ends.

    The first call on a machine builds QEMU and the Linux guest, which takes minutes;
    progress is printed on stderr.  The system ends with close(), at the end of a
    `with`, or with this process, however that ends.

    EssdError if an argument is not valid, something is missing or does not start; the
    error's notes have the last lines of the consoles.
    """
    process.find_system_programs()
    owner = None if name else Temporary("py-")
    instance = Instance(owner.name if owner else name)
    started = False
    try:
        if instance.is_running:
            raise EssdError(f"instance {name} is running already: stop it with "
                            f"{instance.hint('down')}, or use essd.attach")
        with (progress_on_stderr(), claims.claimed(instance.name, "a Python program")):
            # The file is created before an old drive is deleted.
            keys = None if capture_keys is None else key_log.create(Path(capture_keys))
            made = _configure(instance.name, drives, size, mtu, cpus, host, topology,
                              capture, config, nand, block, straps, devices,
                              None if boot_key is None else Path(boot_key),
                              new and not owner, host_kind, hart)
            _keep_keys(made, keys)
            started = True
            _start(instance, made)
    except BaseException as error:
        with interrupts.ignored():
            # If the start was refused, the consoles are those of another's instance.
            if started and instance.has_started:
                instance.stop_started()
                for part in made.parts():
                    _add_note(error, instance.folder, part)
            if owner:
                owner.delete(keep_logs=True)
        raise
    if keep:
        instance.release()
        if owner:
            owner.release()
        return System(instance)
    system = System(instance, owner, is_ours=True)
    _open.append(system)
    return system


def _keep_keys(config: Config, file: Path | None) -> None:
    if file is not None:
        key_log.check(any(link.capture for link in config.links), bool(config.drives))
        config.capture_keys = str(file)


def _add_note(error: BaseException, folder: Path, part: str) -> None:
    lines = last_lines(console_log(folder, part))
    if lines:
        error.add_note("\n".join([f"last lines of {part}'s console:", *lines]))


def _configure_topology(found: "Topology", name: str, capture: bool, new: bool) -> Config:
    from ..topology import setup as topology_setup
    if new:
        topology_setup.forget_for(found, name)
    with setup.half_made(name):
        return topology_setup.configure(found, name, capture)


def _configure(name: str, drives: int, size: str | None, mtu: int | None, cpus: int,
               host: bool, topology: Path | str | None, capture: bool,
               config: Path | str | None, nand: str | None, block: bool,
               straps: Sequence[int], devices: Sequence[str], key: Path | None,
               new: bool, host_kind: str, hart: str) -> Config:
    from ..machine import i2c_devices
    from ..storage import boot_key
    from ..topology import reader as topology_yaml
    from ..topology.topology import of_drives
    chosen.check_word("hart", hart, HARTS)
    if topology is not None:
        if (drives, size, nand, block, list(straps), list(devices), key, mtu, cpus, host,
                config, host_kind, hart) != (1, None, None, False, [], [], None, None, 1, True,
                                             None, STOCK, RISCV):
            raise EssdError("drives, size, nand, block, straps, devices, boot_key, mtu, cpus, "
                            "host, host_kind, hart and config are not for a topology: write "
                            f"them into {topology}")
        return _configure_topology(topology_yaml.read(Path(topology)), name, capture, new)
    parsed = i2c_devices.parse_all(devices, Path.cwd())
    if key is not None:
        boot_key.of_file(key)       # before an old drive is deleted
    if drives != 1:
        if config is not None:
            raise EssdError("config is for a single drive: give each drive a file in a "
                            "topology")
        text = of_drives(drives, size, mtu, cpus, host, nand, block, straps, parsed,
                         key, host_kind, hart)
        found = topology_yaml.load(text, f"drives={drives}", paths.TOP)
        return _configure_topology(found, name, capture, new)
    wish = setup.Wish(name=name, size=size, nand=nand, block=block, straps=straps,
                      devices=parsed, boot_key=key, mtu=mtu, cpus=cpus, host=host,
                      capture=capture, host_kind=host_kind, hart=hart)
    return setup.made(wish, None if config is None else Path(config), new)


def _start(instance: Instance, config: Config) -> None:
    """Start the parts, bound to this process, and wait until they can be used."""
    from ..topology import setup as topology_setup
    instance.start(config, bound=True)
    instance.wait_started(60 + 5 * len(config.drives))
    if config.switches or len(config.drives) != 1 or set(config.hosts) - {"host"}:
        topology_setup.wait_drives(instance)
    elif config.hosts:
        instance.wait_ready("host")
        steps.wait_target(steps.Job.of(instance))
    for name in config.drives:
        Drive(instance, name).wait_ready()
