# SPDX-License-Identifier: BSD-2-Clause
"""Runs blktests' nvme group in a host guest, against the drive or Linux's own nvmet.

blktests is not part of this project: ESSD_BLKTESTS names a checkout of it.  A copy goes
into the guest, with the files of tests/blktests.  What blktests asks of its target
comes out of the guest as lines (tests/blktests/target_control), and `Target` carries
them out.
"""

import contextlib
import io
import json
import os
import queue
import re
import subprocess
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from blktests_list import SOURCE, Outcome, parse_outcomes

from essd.base.errors import BUILD_S, EssdError
from essd.build import guest_build
from essd.drive import access, mgmt, namespaces
from essd.instance.config import SERVICE
from essd.instance.instance import Instance
from essd.storage.flash import FlashImage

SUITE = "/blktests"                 # in the guest
HOST_ID = "0f01fb42-9f7f-4856-b0b3-51e60b8de349"
HOST_NQN = f"nqn.2014-08.org.nvmexpress:uuid:{HOST_ID}"
# Files of a checkout that the nvme group needs.
WANTED = ("check", "common", "src", "tests/nvme")
ADAPTED = ("common/rc", "tests/nvme/rc")
URING_PROGRAM = "nvme-passthru-admin-uring"
# mkfs.xfs makes nothing smaller than 300 MB, and nvme/012 wants 350.
IMAGE = "350m"
# ANA states, the best first.
ANA_RANK = ("optimized", "non-optimized", "inaccessible", "persistent-loss", "change")
# blktests has six ports in nvme/058: three addresses for each of the drive's ports.
MORE_ADDRESSES = {"10.0.0.11/24": 0, "10.0.0.12/24": 0, "10.0.1.11/24": 1,
                  "10.0.1.12/24": 1}
ONCS_RESERVATIONS = 1 << 5          # bit of Identify Controller's ONCS
NAMESPACE_MIB = 32                  # of a namespace that a test creates
STARTS_S = 60
REFUSAL = 1                         # number of the fault rule that refuses Connect
CONTROLLER_BUSY = 0x181             # status of Connect, without Do Not Retry
FABRICS = 0x7f                      # opcode of Connect
# blktests writes a line when a test begins and when it ends.  Without a line or a
# request to the target for this time, the test hangs.
HANG_S = 600
END_S = 10                          # for ssh to end


def adapted(name: str, text: str) -> str:
    """A file of blktests as the guest needs it."""
    if name == "common/rc":
        # blktests ends when it reads the version 6.12.107+deb13-amd64 of Debian's kernel.
        return text.replace("sed 's/-.*//;s/[^.0-9]//'", "sed 's/[-+].*//'")
    return text + f'\n[[ -z $nvme_target_control ]] || . {SUITE}/helpers\n'


def suite_archive(suite: Path) -> bytes:
    """The files of a checkout and of tests/blktests, as a tar archive."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name in WANTED:
            archive.add(suite / name, name,
                        filter=lambda entry: None if entry.name in ADAPTED else entry)
        for name in ADAPTED:
            content = adapted(name, (suite / name).read_text(encoding="utf-8")).encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        for name in ("target_control", "helpers"):
            archive.add(SOURCE / name, name)
    return data.getvalue()


def uring_program(suite: Path, folder: Path) -> Path:
    """blktests' own program of nvme/067, compiled for the guest."""
    sysroot = guest_build.ensure_sysroot(lambda text: None)
    program = folder / URING_PROGRAM
    done = subprocess.run(
        ["clang", "-O2", "-D_GNU_SOURCE", "--target=x86_64-linux-gnu",
         f"--sysroot={sysroot}", "-o", program, suite / "src" / f"{URING_PROGRAM}.c",
         "-luring"], check=False, text=True, timeout=BUILD_S,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise EssdError(f"{URING_PROGRAM}.c of blktests does not compile:\n{done.stdout}")
    return program


def install(instance: Instance, suite: Path, folder: Path) -> None:
    """Copy blktests into the guest; its rc file then reads our helpers."""
    instance.run(f"mkdir {SUITE} && tar -x -C {SUITE}", send=suite_archive(suite))
    if (suite / "src" / f"{URING_PROGRAM}.c").is_file():    # an older one has no nvme/067
        instance.put(uring_program(suite, folder), f"{SUITE}/src/{URING_PROGRAM}")
    # udev would have made this link, which bash needs.
    instance.run("ln -sfn /proc/self/fd /dev/fd")
    # Linux tests each Diffie-Hellman group when it first uses it.  An emulated host
    # gives up on ffdhe8192, because the test takes longer than a minute.
    instance.run("echo 1 > /sys/module/cryptomgr/parameters/notests")
    instance.run("modprobe -a loop nvme_loop nvmet_rdma nvmet_tcp nvme_tcp xfs")


class Target:
    """The drive as blktests' external target, while the `with` statement lasts."""

    def __init__(self, instance: Instance, transport: str) -> None:
        self.instance = instance
        self.transport = transport      # "rdma" or "tcp"
        assert instance.config.drive is not None
        self.drive = instance.config.drive
        self.addresses = [link.target_address
                          for link in instance.config.ports_of(instance.drive).values()]
        self.nqn = self.drive.nqn       # the drive's name now
        self.log: list[str] = []        # requests and answers, for a failure's report
        self.failures: list[Outcome] = []       # requests that could not be carried out
        self.flash = b""                # of before a test created namespaces
        # State of an ANA group at each of blktests' ports
        self.states: dict[tuple[int, int], str] = {}
        self.has_ana = self.asks_ana()
        self.has_reservations = False

    def __enter__(self) -> "Target":
        for number, (address, port) in enumerate(MORE_ADDRESSES.items()):
            for key, value in (("ip", address), ("port", str(port))):
                mgmt.ask(self.instance, "config-set", key=f"address.{number}.{key}",
                         value=value)
        mgmt.ask(self.instance, "config-save")
        self.write_values()
        self.process = subprocess.Popen(
            [*self.instance.ssh(), "--", f"{SUITE}/target_control serve"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(STARTS_S)
        self.thread.join(STARTS_S)
        self.put_right(self.drive.nqn)
        mgmt.ask(self.instance, "hosts-exclusive", on=False)
        self.refuse(False)

    def look(self) -> tuple[str, bool]:
        """What a host sees: the namespace's UUID, and whether there are reservations."""
        run = self.instance.run
        run(f"nvme connect -t {self.transport} -a {self.addresses[0]} -s {SERVICE} "
            f"-n {self.nqn}")
        device = first_namespace(self.instance)
        uuid = run(f"cat /sys/block/{device}/uuid", apart=True).output.strip()
        controller = json.loads(run(f"nvme id-ctrl /dev/{device} -o json", apart=True).output)
        run("nvme disconnect-all")
        return uuid, bool(controller["oncs"] & ONCS_RESERVATIONS)

    def write_values(self) -> None:
        """What `target_control config` shows."""
        uuid, self.has_reservations = self.look()
        values = {"blkdev-type": "none", "trtype": self.transport, "hostnqn": HOST_NQN,
                  "hostid": HOST_ID, "traddr": self.addresses[0], "trsvid": str(SERVICE),
                  "subsys-uuid": uuid, "subsysnqn": self.nqn,
                  "ana": "yes" if self.has_ana else "no"}
        counts = [0, 0]
        for address, port in [*((one, n) for n, one in enumerate(self.addresses)),
                              *MORE_ADDRESSES.items()]:
            values[f"port{port}-address{counts[port]}"] = address.split("/")[0]
            counts[port] += 1
        text = "".join(f"{name}={value}\n" for name, value in values.items())
        self.instance.run("mkdir -p /run/blktests && cat > /run/blktests/values",
                          send=text.encode())

    def serve(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        for line in self.process.stdout:
            words = line.decode().split()
            start = time.monotonic()
            try:
                getattr(self, f"do_{words[0]}")(*words[1:])
                answer = "ok"
            except Exception as error:      # whatever it is, blktests has to go on
                answer = f"{type(error).__name__}: {error}".replace("\n", " ")
                self.failures.append(Outcome(f"target_control {' '.join(words)}", "fail",
                                             [answer]))
            self.log.append(f"{' '.join(words)}: {answer} "
                            f"({time.monotonic() - start:.1f} s)")
            self.process.stdin.write(answer.encode() + b"\n")
            self.process.stdin.flush()

    # Requests of target_control

    def do_setup(self, nqn: str, host: str, secret: str, drive_secret: str) -> None:
        """Let one host connect, to a drive of this name."""
        self.put_right(nqn)
        access.change(self.instance, {
            "nqn": host, "secret": secret.removeprefix("-"),
            "drive-secret": drive_secret.removeprefix("-"),
            "least-hash": "sha256", "least-group": "null"})
        mgmt.ask(self.instance, "hosts-exclusive", on=True)
        folder = f"/run/blktests/nvmet/subsystems/{nqn}/namespaces/1"
        self.instance.run(f"mkdir -p {folder}")
        if self.has_reservations:
            self.instance.run(f"touch {folder}/resv_enable")
        # Now a host that has tried all the time is let in.
        self.refuse(False)

    def do_cleanup(self, _nqn: str) -> None:
        """End all associations and let nobody connect, as nvmet does.

        nvmet refuses the connection, and the host tries again later.  So the drive answers
        Connect with a status after which a host tries again, too: to a host that is not on
        the list it says that trying again is useless.
        """
        self.refuse(True)
        self.forget_hosts()
        self.instance.run("rm -rf /run/blktests/nvmet")
        mgmt.ask(self.instance, "disconnect", all=True)

    def do_host(self, host: str, key: str, value: str) -> None:
        access.change(self.instance, {"nqn": host, key: value})

    def do_ana(self, port: str, ports: str, group: str, state: str) -> None:
        """A port of the drive has the best state of blktests' ports that stand for it."""
        half = int(ports) // 2
        self.states[int(port), int(group)] = state
        real = int(port) // half
        best = min((found for (one, other), found in self.states.items()
                    if one // half == real and other == int(group)), key=ANA_RANK.index)
        mgmt.ask(self.instance, "ana-set", group=int(group), port=real, state=best)

    def do_create(self, nsid: str, group: str) -> None:
        """Replace a namespace by a new one, which is in an ANA group."""
        with self.controllers() as devices:
            self.delete(devices, nsid)
            blocks = NAMESPACE_MIB << 20 >> 9
            said = self.first_success(
                devices, f"nvme create-ns %s --nsze={blocks} --ncap={blocks} --flbas=0 "
                f"--nmic=1 --anagrp-id={group}")
            found = re.search(r"nsid:(\d+)", said)
            if found is None:
                raise EssdError(f"nvme create-ns printed {said!r}")
            cntlid = json.loads(self.instance.run(
                f"nvme id-ctrl {devices[0]} -o json", apart=True).output)["cntlid"]
            self.first_success(devices, f"nvme attach-ns %s --namespace-id={found[1]} "
                               f"--controllers={cntlid}")

    def do_delete(self, nsid: str) -> None:
        with self.controllers() as devices:
            self.delete(devices, nsid)

    # What they do

    def asks_ana(self) -> bool:
        try:
            mgmt.ask(self.instance, "ana")
        except EssdError:
            return False
        return True

    def put_right(self, nqn: str) -> None:
        """The drive as it was before blktests, with this name, and open to no host."""
        if nqn != self.nqn or self.flash:
            self.restart(nqn)
        for group in {group for _, group in self.states}:
            mgmt.ask(self.instance, "ana-set", group=group, state="optimized")
        self.states = {}
        self.forget_hosts()

    @contextlib.contextmanager
    def controllers(self) -> Iterator[list[str]]:
        """The host's controllers, or one for Namespace Management only."""
        if not self.flash:
            self.flash = Path(self.drive.flash).read_bytes()
        run = self.instance.run
        listed = "ls /sys/class/nvme"
        found = re.findall(r"nvme\d+", run(listed, apart=True).output)
        own = not found
        if own:
            run(f"nvme connect -t {self.transport} -a {self.addresses[0]} -s {SERVICE} "
                f"-n {self.nqn} -q {HOST_NQN} -I {HOST_ID}")
            found = re.findall(r"nvme\d+", run(listed, apart=True).output)
        yield [f"/dev/{name}" for name in found]
        if own:
            run("nvme disconnect-all")

    def first_success(self, devices: list[str], command: str) -> str:
        """Try controllers in turn: some are at a port where ANA makes a group inaccessible.

        Return the output of the first command that succeeds.
        """
        results = []
        for device in devices:
            results.append(self.instance.run(command % device, check=False))
            if results[-1].status == 0:
                return results[-1].output
        raise EssdError("; ".join(one.output.strip() for one in results))

    def delete(self, devices: list[str], nsid: str) -> None:
        there = namespaces.read(self.instance)["namespaces"]
        if int(nsid) in [one["nsid"] for one in there]:
            self.first_success(devices, f"nvme delete-ns %s --namespace-id={nsid}")

    def forget_hosts(self) -> None:
        for host in access.read(self.instance)["hosts"]:
            mgmt.ask(self.instance, "host-remove", nqn=host["nqn"])

    def refuse(self, refused: bool) -> None:
        """Whether each Connect is answered with Controller Busy."""
        rules = mgmt.ask(self.instance, "faults")["faults"]
        is_there = any(one["rule"] == REFUSAL for one in rules)
        if refused and not is_there:
            mgmt.ask(self.instance, "fault-add", rule=REFUSAL, do="status", queue="admin",
                     status=CONTROLLER_BUSY, opcode=FABRICS)
        elif is_there and not refused:
            mgmt.ask(self.instance, "fault-remove", rule=REFUSAL)

    def restart(self, nqn: str) -> None:
        """Start the drive with another name, and with the namespaces that it had.

        Both are in its flash, which is changed while the power is off.
        """
        self.instance.ask("power-cut", part=self.instance.drive)
        path = Path(self.drive.flash)
        if self.flash:
            path.write_bytes(self.flash)
            self.flash = b""
        image = FlashImage.load(path)
        assert image.identity is not None
        image.identity = replace(image.identity, nqn=nqn)
        image.save(path)
        self.instance.ask("power-on", part=self.instance.drive)
        deadline = time.monotonic() + STARTS_S
        while self.instance.run(f"nvme discover -t {self.transport} -a {self.addresses[0]} "
                                f"-s {SERVICE}", check=False).status != 0:
            if time.monotonic() > deadline:
                raise EssdError(f"the drive did not answer {STARTS_S} s after its start")
        self.nqn = nqn


class Hung(EssdError):
    """A test of blktests does not end."""


def follow(instance: Instance, line: str, timeout_s: float, hang_s: float = HANG_S,
           requests: Callable[[], int] = lambda: 0) -> str:
    """Run a command in the guest, and show each of its lines as it comes.

    Hung if no line comes for `hang_s` seconds while the number of `requests` stays the
    same, or if the command does not end within `timeout_s`: the tests that would follow are
    then not run.
    """
    deadline = time.monotonic() + timeout_s
    found: list[str] = []
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    with subprocess.Popen([*instance.ssh(), "--", f"exec 2>&1\n{line}"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pipe = process.stdout

        def read() -> None:
            for one in pipe:
                lines.put(one)
            lines.put(b"")

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        try:
            seen = requests()
            while True:
                left_s = deadline - time.monotonic()
                try:
                    one = lines.get(timeout=max(0, min(hang_s, left_s)))
                except queue.Empty:
                    if left_s <= hang_s or requests() == seen:
                        raise
                    seen = requests()
                    continue
                if not one:
                    break
                found.append(one.decode(errors="replace"))
                print(found[-1], end="", flush=True)
        except queue.Empty:
            raise Hung(f"{running_test(found)} hangs, so the tests after it were not run\n"
                       f"{evidence(instance)}") from None
        finally:
            process.kill()
            thread.join(END_S)
    return "".join(found)


def running_test(lines: list[str]) -> str:
    """The test that has begun and not ended."""
    for line in reversed(lines):
        head = re.match(r"nvme/\d+\b", line)
        if head:
            return head[0]
    return "blktests"


def evidence(instance: Instance) -> str:
    """What shows why a test hangs."""
    try:
        text = instance.run("rdma resource show qp; dmesg | tail -n 40", check=False,
                            timeout_s=STARTS_S).output
    except EssdError as error:
        return str(error)
    if re.search(r"type GSI state ERR", text):
        text += ("\nThe queue pair of Linux's connection manager is in error, and the host "
                 "cannot connect any more: start it again (docs/network.md)")
    return text


def check(instance: Instance, words: str, variables: dict[str, str],
          timeout_s: float, requests: Callable[[], int] = lambda: 0
          ) -> tuple[list[Outcome], str]:
    """Run ./check in the guest; return the outcomes, and all logs."""
    settings = " ".join(f"{name}='{value}'" for name, value in
                        {"USE_RXE": "1", "NVME_IMG_SIZE": IMAGE, "TIMEOUT": "20",
                         "NORMAL_USER": "blktests", **variables}.items())
    output = follow(instance, f"cd {SUITE} && {settings} ./check {words}", timeout_s,
                    requests=requests)
    logs = instance.run(f"cd {SUITE} && head -n 60 results/*/nvme/*.out.bad "
                        "results/*/nvme/*.dmesg 2>/dev/null", check=False).output
    return parse_outcomes(output), logs


def against_drive(instance: Instance, transport: str, words: str, timeout_s: float
                  ) -> tuple[list[Outcome], str]:
    """The tests that prepare a target: the target is the drive."""
    with Target(instance, transport) as target:
        outcomes, text = check(instance, words, {
            "NVME_TARGET_CONTROL": f"{SUITE}/target_control"}, timeout_s,
            lambda: len(target.log))
    return outcomes + target.failures, text + "\n" + "\n".join(target.log)


def against_nvmet(instance: Instance, transport: str, words: str, timeout_s: float
                  ) -> tuple[list[Outcome], str]:
    """The same tests; the target is the guest itself."""
    return check(instance, words, {"NVMET_TRTYPES": transport,
                                   "NVMET_BLKDEV_TYPES": "device"}, timeout_s)


def on_device(instance: Instance, transport: str, words: str, multipath: bool,
              timeout_s: float) -> tuple[list[Outcome], str]:
    """The tests that get a device: a namespace of the drive, through both ports.

    Without multipath, one port, and blktests' own targets are nvmet's loop transport.
    """
    run = instance.run
    run("modprobe -r nvme_loop nvme_rdma nvme_tcp nvmet_rdma nvmet_tcp nvmet nvme_fabrics "
        f"nvme_core; modprobe nvme_core multipath={'Y' if multipath else 'N'} && "
        "modprobe -a nvme_rdma nvme_tcp nvme_loop")
    drive = instance.config.drive
    assert drive is not None
    links = list(instance.config.ports_of(instance.drive).values())
    for link in links if multipath else links[:1]:
        run(f"nvme connect -t {transport} -a {link.target_address} -s {SERVICE} "
            f"-n {drive.nqn}")
    # udev would have made these links, by which blktests names a controller.
    run("mkdir -p /dev/char; for c in /sys/class/nvme/nvme*; do "
        "ln -sfn /dev/${c##*/} /dev/char/$(cat $c/dev); done")
    device = f"/dev/{first_namespace(instance)}"
    try:
        return check(instance, f"-d {words}", {
            "TEST_DEVS": device, "NVMET_TRTYPES": transport if multipath else "loop"}, timeout_s)
    finally:
        run("nvme disconnect-all")


def first_namespace(instance: Instance) -> str:
    deadline = time.monotonic() + STARTS_S
    while True:
        text = instance.run("ls /sys/block", apart=True).output
        found = re.findall(r"^nvme\d+n\d+$", text, re.M)
        if found:
            return str(found[0])
        if time.monotonic() > deadline:
            raise EssdError("the host has no namespace of the drive")


def suite_folder() -> Path | None:
    """The checkout that ESSD_BLKTESTS names; None if the variable is not set."""
    text = os.environ.get("ESSD_BLKTESTS", "")
    if not text:
        return None
    folder = Path(text)
    if not (folder / "tests/nvme/rc").is_file():
        raise EssdError(f"ESSD_BLKTESTS={text} is no checkout of blktests: it has no "
                        "file tests/nvme/rc")
    return folder


def suite_version(folder: Path) -> str:
    done = subprocess.run(["git", "-C", folder, "log", "-1", "--format=%h of %cs"],
                          check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, timeout=BUILD_S)
    return done.stdout.strip() or "unknown"
