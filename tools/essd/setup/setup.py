# SPDX-License-Identifier: BSD-2-Clause
"""Turn the options of `essd up` into the configuration of an instance.

The flash and media files of a drive are kept in $ESSD_DATA/<name>, or else in
$XDG_DATA_HOME/essd/<name>, so that the drive keeps its identity and its data.
"""

import contextlib
import ipaddress
import re
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..base import chosen, claims, disk_swap, files, in_use, interrupts, paths, show
from ..base.errors import EssdError
from ..build import native_build
from ..build.fw_build import Firmware
from ..instance.config import (BootKey, Config, DEFAULT_PORTS, Drive, End, HOST_KINDS, Host,
                               Link, NATIVE, Nand, PEER_PORT, Peer, RISCV, STOCK, STREAM,
                               Switch, UML, VHOST_USER)
from ..machine import i2c_devices, key_log, outside, straps, uml
from ..machine.outside import Outside
from ..settings import block as config_block, settings
from ..storage import boot_key, flash, media, nand
from . import native_hart, prepare

MTUS = (config_block.SETTINGS["port.N.mtu"].min, config_block.SETTINGS["port.N.mtu"].max)
NAMESPACES_MAX = 128
NAMESPACE_MIB_MAX = 65535
MEDIA_FILE = "media.raw"     # of a drive without --media
LITTLE_SPACE = 64 << 20      # bytes of free space on a disk
SWITCH = "tools/switch/essd-switch"
WIRE_LINK = 100         # number of the cable beyond the switch of port 0's wire
# Addresses for a port that has none.  No network of the other port can overlap
# all of them.
SPARE_PORTS = ("10.0.3.10/24", "192.168.3.10/24")


@dataclass(frozen=True)
class Binaries:
    """What runs instead of this checkout's drive: that of an earlier revision."""

    qemu: Path
    firmware: Firmware
    native_hart: Path | None = None     # the firmware for it, if this drive can have one


@dataclass
class Wish:
    """The options of `essd up`; None keeps the drive's value, or the default.

    The drive saves its settings in flash, so the next `up` need not repeat them.
    """

    name: str = "default"
    part: str = "drive"     # the drive's name
    ports: Sequence[str | None] = (None, None)      # ADDR/LEN[,ADDR/LEN]
    # Where a port's cable leads; None: to the host
    outside: Sequence[Outside | None] = (None, None)
    nqn: str | None = None
    size: str | None = None
    media: Path | None = None
    media_format: str | None = None     # of an existing file without a record
    nand: str | None = None     # [SIZE][,KEY=VALUE]... of a new drive's NAND array
    block: bool = False         # a new drive has a block medium instead of NAND
    straps: Sequence[int] = ()  # the strap pins that are high until the instance ends
    boot_key: Path | None = None    # PEM file with the key that a new drive gets
    hart: str = RISCV               # or NATIVE
    lower_floor: bool = False       # firmware with a lower security version may be written
    devices: Sequence[i2c_devices.Device] = ()  # on the I2C buses until the instance ends
    mtu: int | None = None
    host_mtu: int = 0               # of the host's cards; 0: MTU of the links
    host: bool = True
    host_kind: str = STOCK          # or UML
    link: str = STREAM              # kind of the cables between host and drive
    target: str = "drive"           # or "nvmet": a Linux target replaces the drive
    beside: bool = False            # also start an nvmet guest, on a third cable
    capture: bool = False
    capture_bytes: int = 0      # of a file; 0: no limit
    capture_keys: Path | None = None    # file for the secrets of TLS, which made() creates
    listens: bool = False           # the target, not the host, creates the sockets
    memory_mib: int = 1024
    cpus: int = 1
    extra: list[str] = field(default_factory=list)      # for the drive's QEMU
    kernel: list[str] = field(default_factory=list)     # for the host's kernel
    services: config_block.Services | None = None
    network: config_block.Network | None = None
    nvme_tcp: bool | None = None    # NVMe over TCP, beside RDMA
    transports: frozenset[str] | None = None    # rdma and others
    namespaces: str | None = None   # COUNTxSIZE[@4096]: how a new drive is divided
    config: config_block.Config | None = None      # replaces the drive's configuration
    binaries: Binaries | None = None    # other ones than those of this checkout


def data_folder(name: str, part: str = "drive") -> Path:
    return paths.drive(name, part)


def parse_addresses(text: str) -> list[str]:
    """Parse one or two ADDR/LEN (IPv4 and IPv6) separated by a comma."""
    found = []
    for part in text.split(","):
        try:
            if "/" not in part:
                raise ValueError
            address = ipaddress.ip_interface(part.strip())
        except ValueError:
            raise EssdError(f"{part!r} is not a valid address: write ADDR/LEN, such as "
                            f"{DEFAULT_PORTS[0]}") from None
        network = address.network
        if network.num_addresses < 4 or address.ip == network.network_address or (
                network.version == 4 and address.ip == network.broadcast_address):
            raise EssdError(f"{part}: this network has no room for a drive and a host, "
                            "or the address is its network or broadcast address")
        if address.ip.is_multicast or address.ip.is_loopback:
            raise EssdError(f"{part}: a port cannot have a multicast or loopback "
                            "address")
        found.append(address)
    if len({x.version for x in found}) != len(found):
        raise EssdError(f"{text}: a port takes at most one IPv4 and one IPv6 address "
                        "here; more go into a --config file")
    return [str(x) for x in found]


def parse_namespaces(text: str) -> tuple[int, int, bool]:
    """Number, MiB of each (0: equal shares) and whether blocks have 4096 bytes."""
    match = re.fullmatch(r"([0-9]{1,3})(?:x([0-9]{1,9})([MG]))?(?:@(512|4096))?", text)
    count = int(match[1]) if match else 0
    size = int(match[2] or 0) * (1024 if match[3] == "G" else 1) if match else 0
    if match is None or not 1 <= count <= NAMESPACES_MAX or (match[2] and size == 0):
        raise EssdError(f"{text!r} is no division into namespaces: write their number, "
                        f"1 to {NAMESPACES_MAX}, and their size, such as 4x1G, 4x512M@4096 "
                        "or 4 for equal shares")
    if size > NAMESPACE_MIB_MAX:
        raise EssdError(f"{text!r}: a namespace can have {NAMESPACE_MIB_MAX}M at most here; "
                        f"{count} divides the drive into equal shares, and nvme create-ns "
                        "makes namespaces of any size")
    return count, size, match[4] == "4096"


def with_transports(config: config_block.Config, words: frozenset[str]
                    ) -> config_block.Config:
    """The same with exactly these transports.  AoE exports what it exported, or
    namespace 1."""
    exports = (config.aoe.exports or frozenset({1})) if "aoe" in words else frozenset()
    return replace(config, aoe=replace(config.aoe, exports=exports),
                   network=replace(config.network, nvme_tcp="tcp" in words,
                                   nvme_iwarp="iwarp" in words))


def wanted(wish: Wish, kept: config_block.Config | None) -> config_block.Config:
    """The configuration for the drive's flash; `kept` is the one in it now."""
    config = wish.config or kept or config_block.Config(
        (config_block.Port.of(DEFAULT_PORTS[0]), config_block.Port.of(DEFAULT_PORTS[1])))
    ports = list(config.ports)
    for n, text in enumerate(wish.ports):
        if text is not None:
            asked = config_block.Port.of(*parse_addresses(text))
            if (asked.ipv4, asked.ipv6) != (ports[n].ipv4, ports[n].ipv6):
                ports[n] = replace(
                    ports[n], ipv4=asked.ipv4, ipv6=asked.ipv6,
                    ipv4_gateway=asked.ipv4_gateway, ipv6_gateway=asked.ipv6_gateway)
    if wish.mtu is not None:
        check_mtu(wish.mtu)
        ports = [replace(port, mtu=wish.mtu) for port in ports]
    config = replace(config, ports=(ports[0], ports[1]),
                     services=wish.services or config.services,
                     network=wish.network or config.network)
    if wish.nvme_tcp is not None:
        config = replace(config, network=replace(config.network, nvme_tcp=wish.nvme_tcp))
    if wish.transports is not None:
        config = with_transports(config, wish.transports)
    if wish.namespaces is not None:
        count, size, has_4k = parse_namespaces(wish.namespaces)
        config = replace(config, network=replace(
            config.network, ns_count=count, ns_size=size, ns_4k=has_4k))
    # The drive checks its flash when it starts and ignores an invalid
    # configuration, so an invalid one is refused here.
    mistakes = settings.check(settings.from_config(config))
    if mistakes:
        raise EssdError("; ".join(mistakes))
    return config


def check_mtu(mtu: int) -> None:
    if not MTUS[0] <= mtu <= MTUS[1]:
        raise EssdError(f"the MTU {mtu} is outside {MTUS[0]} to {MTUS[1]}")


def overlaps(texts: Sequence[str], others: Sequence[str]) -> str:
    """Name a pair of addresses whose networks overlap; "" if there is none."""
    for one in map(ipaddress.ip_interface, texts):
        for other in map(ipaddress.ip_interface, others):
            if one.version == other.version and one.network.overlaps(other.network):
                return f"{one} and {other}"
    return ""


def far_ends(config: config_block.Config) -> list[list[str]]:
    """Addresses of each port; a port without any gets an unused default."""
    found = [parse_addresses(",".join(str(x) for x in (port.ipv4, port.ipv6) if x))
             if port.ipv4 or port.ipv6 else [] for port in config.ports]
    both = overlaps(found[0], found[1])
    if both:
        raise EssdError("the two ports must be in separate networks: "
                        f"{both} are in the same one")
    for n, texts in enumerate(found):
        if not texts:
            found[n] = [next(text for text in (DEFAULT_PORTS[n], *SPARE_PORTS)
                             if not overlaps([text], found[1 - n]))]
    return found


def check_outside(wish: Wish) -> None:
    """EssdError if the cables that lead outside make no sense or cannot be attached."""
    places = [place for place in wish.outside if place is not None]
    if places and wish.target != "drive":
        raise EssdError(f"{places[0]}: only a drive's cables can lead outside, not those "
                        f"of --target {wish.target}")
    if len(places) == 2 and wish.host:
        raise EssdError("both cables lead outside, so the host has none: add --no-host")
    if len(set(places)) != len(places):
        raise EssdError(f"{places[0]}: both ports' cables cannot lead to the same place")
    for place in places:
        outside.check(place)


def check_host_kind(wish: Wish) -> None:
    """EssdError if there is no such kind of host, or it cannot be as asked for."""
    if wish.host_kind not in HOST_KINDS:
        raise EssdError(f"{wish.host_kind!r} is no kind of host: there are {STOCK} and {UML}")
    check_cpus(wish.host_kind, wish.cpus)
    if wish.link == VHOST_USER and wish.target != "drive":
        raise EssdError(f"cables of kind {VHOST_USER} lead from a host to a drive")
    if wish.link == VHOST_USER and wish.host and wish.host_kind == UML:
        uml.check_shared_memory(wish.memory_mib, f"--link {STREAM}")


def check_cpus(host_kind: str, cpus: int) -> None:
    """EssdError if a host of this kind cannot have so many virtual CPUs."""
    if host_kind == UML and cpus != 1:
        raise EssdError(f"a host of kind {UML} has one CPU, not {cpus}")


def wire_name(port: int) -> str:
    """The switch between a port and a network interface; it has just these two."""
    return f"wire{port}"


def wires(wish: Wish) -> dict[str, Switch]:
    """The switches that carry frames between ports and network interfaces."""
    found = {}
    for port, place in enumerate(wish.outside):
        if place is not None and outside.needs_wire(place):
            program = native_build.native_program("fast", SWITCH, "the switch")
            outside.check_raw_frames(place, program)
            found[wire_name(port)] = Switch(str(program), ["--link-local", "forward"])
    return found


def links(wish: Wish, config: config_block.Config) -> list[Link]:
    if wish.host_mtu:
        check_mtu(wish.host_mtu)
    mtus = [max(port.mtu, MTUS[0]) for port in config.ports]
    ports = far_ends(config)
    if wish.beside:
        ports.append([PEER_PORT])
        mtus.append(max(mtus))
    target = "drive" if wish.target == "drive" else "peer"
    found = []
    found_wires: list[Link] = []
    for n, addresses in enumerate(ports):
        ends = [End("host", n), End("peer" if n == 2 else target, n)]
        place = wish.outside[n] if n < len(wish.outside) else None
        if place is not None and outside.needs_wire(place):
            ends[0] = End(wire_name(n), 1)
            found_wires.append(Link(WIRE_LINK + n, [], mtus[n], ends=[
                End(outside=str(place)), End(wire_name(n), 0)]))
        elif place is not None:
            ends[0] = End(outside=str(place))
        shared = place is None and n < 2 and wish.link == VHOST_USER
        if wish.listens or shared:
            ends.reverse()
        found.append(Link(n, addresses, mtus[n], wish.host_mtu, wish.capture, ends,
                          kind=VHOST_USER if shared else STREAM))
    return found + found_wires


def drive_nand(wish: Wish) -> Nand | None:
    """Check the file of the drive's NAND array, after creating it for a new drive.

    None: the drive has no array.  Whether it has one was decided when it was created.
    """
    asked = asked_nand(wish)
    path = data_folder(wish.name, wish.part) / nand.FILE
    array = nand.recorded(path)
    if array is None:
        if has_block_medium(wish):
            return None
        array = new_nand(path, wish, asked)
    else:
        check_kept(array, wish)
        array = nand.update(array, asked)
    if array is not None:
        nand.check(array)
    return array


def has_block_medium(wish: Wish) -> bool:
    """Whether a drive without an array is old, or is to have a block medium."""
    is_old = (flash_path(wish.name, wish.part).exists()
              or (data_folder(wish.name, wish.part) / MEDIA_FILE).exists())
    if is_old and wish.nand is not None:
        raise EssdError("--nand: the drive has been created without NAND: choose another "
                        "--name, or replace the drive by a new one with --new")
    return (is_old or wish.block or wish.media is not None
            or wish.media_format is not None)      # which drive_media() refuses


def asked_nand(wish: Wish) -> nand.Wanted:
    """What array the options ask for."""
    if wish.nand is not None and (wish.block or wish.media is not None):
        raise EssdError(f"--nand does not go with {'--block' if wish.block else '--media'}: a "
                        "drive has either a NAND array or a block medium")
    return nand.parse(wish.nand) if wish.nand is not None else nand.Wanted()


def new_sizes(wish: Wish, asked: nand.Wanted) -> tuple[str, int] | None:
    """The size of a new drive's array, and the capacity that hosts see; 0: all of it.

    None: no array has the capacity that is asked for.
    """
    capacity = media.parse_size(wish.size) if wish.size is not None else 0
    if asked.size is None:
        capacity = capacity or media.DEFAULT_SIZE
    try:
        size = nand.choose_size(asked, capacity)
        return size, capacity or nand.choose_capacity(asked, size)
    except nand.TooLargeError as error:
        if wish.nand is None:
            return None
        raise EssdError(f"{error}; omit --nand to get a block medium"
                        if asked.size is None else str(error)) from None


def new_nand(path: Path, wish: Wish, asked: nand.Wanted) -> Nand | None:
    """Create the array of a new drive; None if no array has its capacity."""
    sizes = new_sizes(wish, asked)
    if sizes is None:
        show.note(f"{wish.part}: no NAND array has a capacity of {wish.size}, so the drive "
                  "gets a block medium, as with --block")
        return None
    return nand.create(path, asked, *sizes)


def check_sockets(wish: Wish) -> None:
    """EssdError if sockets of the instance would have too long paths."""
    chosen.check_sockets(wish.name, ["host"] if wish.host else [],
                         [wish.part] if wish.target == "drive" else [])


def check_new(wish: Wish) -> None:
    """EssdError if a new drive cannot have what is asked for: its size, its array, the
    devices on its I2C buses."""
    if wish.target == "drive":
        asked = asked_nand(wish)
        i2c_devices.check(wish.devices, straps.level(wish.straps))
        if wish.size is not None:
            media.parse_size(wish.size)
        if not (wish.block or wish.media is not None):
            new_sizes(wish, asked)


def check_kept(array: Nand, wish: Wish) -> None:
    """EssdError if the options ask for another medium than the drive's array."""
    for option, is_given in (("--block", wish.block), ("--media", wish.media is not None),
                             ("--media-format", wish.media_format is not None)):
        if is_given:
            raise EssdError(f"{option} is for drives without NAND: the array of this one "
                            "holds its data; choose another --name, or replace the drive by "
                            "a new one with --new")
    if wish.size is not None and media.parse_size(wish.size) != array.capacity:
        has = (f"a capacity of {media.show_size(array.capacity)}" if array.capacity
               else f"all that its array of {array.size} has space for")
        raise EssdError(f"--size {wish.size}: the drive has {has}: omit --size, or replace "
                        "the drive by a new one with --new")


def drive_media(wish: Wish, has_nand: bool = False) -> media.Media:
    """Check the media file, after creating it if it is new and its size is known.

    The machine cannot start without one.  A drive with a NAND array stores nothing in it.
    """
    size = None if has_nand else wish.size
    if wish.media is not None:
        # The format record is kept beside the real file, not beside a symbolic
        # link to it.
        path = wish.media.resolve()
        is_new = size is not None and not path.exists()
        asked = wish.media_format
    else:
        if wish.media_format is not None:
            raise EssdError("--media-format needs --media FILE")
        path = data_folder(wish.name, wish.part) / MEDIA_FILE
        files.make_folder(path.parent)
        is_new = not path.exists()
        asked = "raw"       # This program creates only raw files here.
    if is_new:
        if asked == "qcow2":
            raise EssdError(f"a new media file is always raw: to use a qcow2 image, "
                            f"create {path} with qemu-img create -f qcow2 first")
        media.create(path, media.parse_size(size) if size
                     else media.SMALLEST if has_nand else media.DEFAULT_SIZE)
    if not path.exists():
        raise media.MediaError(f"media file {path} does not exist: give --size "
                               "to create it")
    kind = media.decide_format(path, asked)
    found = media.check(path, kind)
    if media.recorded_format(path) is None:
        media.record_format(path, kind)
    if size is not None and found.size != media.parse_size(size):
        raise EssdError(f"media file {found.path} holds "
                        f"{media.show_size(found.size)}, not {size}: omit "
                        "--size, or replace the drive by a new one with --new")
    return found


def forget(name: str) -> None:
    """Delete a drive with its identity and its data; ClaimedError if somebody uses it."""
    with claims.claimed(name, "essd"), contextlib.suppress(OSError):
        in_use.delete_whole(data_folder(name))


def forget_for(wish: Wish) -> None:
    """Delete a drive, unless no new one can be made as asked for."""
    check_new(wish)
    check_sockets(wish)
    forget(wish.name)


def made(wish: Wish, config_file: Path | None, is_new: bool) -> Config:
    """The configuration of an instance whose drive was created now, unless it was kept.

    With `is_new`, a drive that exists is deleted first.  `config_file` has changes of the
    drive's settings.
    """
    from . import settings_cmd      # which imports this file
    prepare.check_folders()             # before the drive's array is made
    with claims.claimed(wish.name, "essd up"):
        if wish.capture_keys is not None:       # before a drive is deleted
            key_log.check(wish.capture, wish.target == "drive")
            wish.capture_keys = key_log.create(wish.capture_keys)
        if is_new:
            forget_for(wish)
        if config_file is not None:
            wish.config = settings_cmd.for_start(wish, config_file)
        with half_made(wish.name):
            return configure(wish)


@contextlib.contextmanager
def half_made(name: str) -> Iterator[None]:
    """Delete a drive that was created inside, and not completely, on any exception."""
    with claims.claimed(name, "essd up"):
        is_new = not data_folder(name).exists()
        try:
            yield
        except BaseException:
            if is_new:
                with interrupts.ignored():
                    forget(name)
            raise


def kept_uuid(name: str, part: str) -> str:
    """A UUID that is the same at every start; a guest derives its NQN from it."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"essd {os.getuid()} {name} {part}"))


def configure(wish: Wish) -> Config:
    """Check the options, build what is missing and create the drive's files.

    Nothing is started.  ClaimedError if somebody else uses the drive.
    """
    with claims.claimed(wish.name, "essd up"):
        return configured(wish)


def configured(wish: Wish) -> Config:
    """The same, while the instance's name is claimed."""
    with_drive = wish.target == "drive"
    wishes = wanted(wish, kept_config(wish.name) if with_drive else None)
    wishes.pack()           # Raises FlashError for a value out of range.
    cables = links(wish, wishes)
    check_outside(wish)
    switches = wires(wish)
    level = straps.level(wish.straps)
    for option, is_given in (("--nand", wish.nand is not None), ("--block", wish.block),
                             ("--straps", level != 0), ("--device", wish.devices),
                             ("--boot-key", wish.boot_key is not None)):
        if is_given and not with_drive:
            raise EssdError(f"{option} is for a drive, not for --target {wish.target}")
    i2c_devices.check(wish.devices, level)
    check_sockets(wish)
    # The drive's files are checked before a build that takes minutes.
    key = drive_boot_key(wish) if with_drive else None
    native_hart.check(wish, key is not None)
    array = drive_nand(wish) if with_drive else None
    found = drive_media(wish, array is not None) if with_drive else None
    guests = wish.host or wish.beside or not with_drive
    check_host_kind(wish)
    built = prepare.prepare(guest=guests, drive=with_drive,
                            user_mode=wish.host and wish.host_kind == UML,
                            native_hart=wish.hart == NATIVE)
    prepare.report_sandbox()
    config = Config(wish.name, str(built.guest.path) if built.guest else "",
                    prepare.ensure_accel(built.guest) if built.guest else "tcg",
                    cables, switches=switches, capture_bytes=wish.capture_bytes)
    config.capture_keys = str(wish.capture_keys or "")
    if found is not None:
        assert built.qemu is not None and built.firmware is not None
        drive = wish.binaries or Binaries(built.qemu, built.firmware)
        image, nqn = drive_flash(wish, wishes, drive.firmware, array, key)
        config.drives["drive"] = Drive(str(drive.qemu), str(image), str(found.path),
                                       found.format, nqn, extra=wish.extra, nand=array,
                                       straps=level, boot_key=key, devices=drive_devices(wish),
                                       hart_image=native_hart.kept(
                                           native_hart.chosen(wish, built.native_hart), image))
    if wish.host:
        kernel, relay = user_mode(built)
        config.hosts["host"] = Host(wish.memory_mib, wish.cpus,
                                    kept_uuid(wish.name, "host"), wish.kernel,
                                    uml=kernel, relay=relay)
    peer = kept_uuid(wish.name, "peer")
    if not with_drive:
        config.peer = Peer(size=wish.size or "512m", uuid=peer)
        if wish.nqn:
            config.peer.nqn = wish.nqn
    elif wish.beside:
        config.peer = Peer(uuid=peer)
    note_full_disks(config)
    return config


def user_mode(built: prepare.Built) -> tuple[str, str]:
    """A host's user-mode Linux and the QEMU of its relay; "" if that was not built."""
    if built.uml is None:
        return "", ""
    assert built.qemu is not None
    return str(built.uml.path), str(built.qemu)


def note_full_disks(config: Config) -> None:
    """Say which disks have hardly any space for what hosts will write."""
    folders = {Path(drive.nand.path if drive.nand else drive.media).parent
               for drive in config.drives.values()}
    told = set()
    for folder in sorted(folders):
        left = shutil.disk_usage(folder).free
        disk = folder.stat().st_dev
        if left < LITTLE_SPACE and disk not in told:
            told.add(disk)
            show.note(f"the disk of {folder} has {media.show_size(left)} left: when it is "
                      "full, the drive cannot store what hosts write", "yellow")


def drive_devices(wish: Wish) -> list[str]:
    """The devices on the I2C buses, for Config, after creating their files."""
    i2c_devices.make_files(wish.devices)
    return [str(device) for device in wish.devices]


def flash_path(name: str, part: str = "drive") -> Path:
    """The flash file of a drive; if a load of a snapshot was killed, it is undone."""
    disk_swap.recover_of(name)
    return data_folder(name, part) / "flash.img"


def kept_config(name: str, part: str = "drive") -> config_block.Config | None:
    """The configuration in a drive's flash, or None if there is no such drive."""
    path = flash_path(name, part)
    return flash.FlashImage.load(path).config if path.exists() else None


def drive_boot_key(wish: Wish) -> BootKey | None:
    """The drive's boot key, which a new drive gets now."""
    path = flash_path(wish.name, wish.part)

    def fits(key: BootKey) -> bool:
        file = flash.FlashImage.load(path)
        signed = [image for slot in flash.SLOTS if (image := file.image(slot)) and image.signature]
        return not signed or any(image.is_signed_with(bytes.fromhex(key.public))
                                 for image in signed)
    return boot_key.choose(data_folder(wish.name, wish.part), wish.boot_key, path.exists(), fits)


def drive_flash(wish: Wish, config: config_block.Config, firmware: Firmware, array: Nand | None,
                key: BootKey | None = None) -> tuple[Path, str]:
    """Bring the drive's flash file up to date; return its path and its NQN."""
    path = flash_path(wish.name, wish.part)
    capacity = array.capacity if array is not None else 0
    return path, flash.ensure_flash(path, firmware, config, wish.nqn, capacity,
                                    lambda image: boot_key.sign(image, key),
                                    wish.lower_floor).nqn


def connections(config: Config) -> list[str]:
    """What the user is to connect to the cables that lead outside, and how."""
    lines: list[str] = []
    for part in config.drives:
        for number, link in config.ports_of(part).items():
            place = link.outside
            far = link.far_end(part).part
            if far in config.switches and far == wire_name(number):
                place = config.ports_of(far)[0].outside
            if place:
                lines += outside.instructions(number, Outside.of(place),
                                              link.targets, link.hosts, link.mtu)
    return lines


def array_lines(config: Config) -> list[str]:
    """The size and the spare of each drive's array; the drives do not run yet."""
    return [f"{part}: NAND array of {nand.size_line(drive.nand)}"
            for part, drive in config.drives.items() if drive.nand is not None]


def captures(config: Config) -> list[str]:
    """Where the captures of the cables are written."""
    return [f"{link.label} is captured: {link.pcap(claims.folder(config.name))}"
            for part in config.parts() for link in config.captures(part)]
