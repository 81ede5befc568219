# SPDX-License-Identifier: BSD-2-Clause
"""The machine, its boot ROM and the HAL in QEMU.

The image slots hold tests/soc/main.c, and the straps select what it does.
"""

import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools"))

from essd.storage import flash as fl  # noqa: E402
from essd.build import fw_build, qemu_build  # noqa: E402

IDLE = "soc: idle"
MEDIA = ["-blockdev", "driver=null-co,node-name=media,"
         "size=67108864,read-zeroes=on"]


@pytest.fixture(scope="session")
def qemu() -> Path:
    return qemu_build.ensure_qemu()


@pytest.fixture(scope="session")
def trial() -> fw_build.Firmware:
    return fw_build.ensure_soc_trial()


class Machine:
    """A QEMU with its console in a file, and a QMP socket.

    The console's input comes from the file `keys`, such as a FIFO that is already open.
    """

    def __init__(self, qemu: Path, folder: Path, flash: Path | str, *options: str,
                 machine: str = "essd", name: str = "machine",
                 keys: Path | None = None) -> None:
        self.console = folder / f"{name}.console"
        self.console.write_bytes(b"")
        self.errors = folder / f"{name}.err"
        path = folder / f"{name}.qmp"
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(
                [qemu, "-M", machine, "-display", "none",
                 "-chardev", f"file,id=console,path={self.console}"
                 + (f",input-path={keys}" if keys else ""), "-serial", "chardev:console",
                 "-qmp", f"unix:{path},server=on,wait=off",
                 "-drive", f"if=mtd,format=raw,file={flash}", *MEDIA, *options],
                stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
        deadline = time.monotonic() + 30
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        while True:
            try:
                self.socket.connect(str(path))
                break
            except (FileNotFoundError, ConnectionRefusedError):
                assert self.process.poll() is None, self.errors.read_text()
                assert time.monotonic() < deadline
                time.sleep(0.02)
        self.lines = self.socket.makefile("r")
        self.lines.readline()
        self.ask("qmp_capabilities")

    def ask(self, command: str, **arguments: object) -> object:
        text = json.dumps({"execute": command, "arguments": arguments})
        self.socket.sendall(text.encode())
        for line in self.lines:
            answer = json.loads(line)
            if "return" in answer or "error" in answer:
                assert "return" in answer, (command, answer)
                return answer["return"]
        raise AssertionError("QEMU has ended: " + self.errors.read_text())

    def log(self) -> str:
        return self.console.read_bytes().decode(errors="replace")

    def wait_for(self, text: str, seconds: float = 30) -> str:
        deadline = time.monotonic() + seconds
        while text not in self.log():
            assert self.process.poll() is None, self.errors.read_text()
            assert time.monotonic() < deadline, f"no {text!r} in:\n{self.log()}"
            time.sleep(0.02)
        return self.log()

    def wait_for_count(self, text: str, count: int, seconds: float = 30) -> None:
        """Wait until the console has a text for the `count`th time."""
        deadline = time.monotonic() + seconds
        while self.log().count(text) < count:
            assert time.monotonic() < deadline, f"fewer than {count} {text!r}:\n{self.log()}"
            time.sleep(0.02)

    def close(self) -> None:
        self.socket.close()
        self.process.kill()
        self.process.wait(60)


class Bench:
    """Makes flash images and machines, and ends the machines."""

    def __init__(self, qemu: Path, firmware: fw_build.Firmware, folder: Path) -> None:
        self.qemu, self.firmware, self.folder = qemu, firmware, folder
        self.flash = fl.new_flash(firmware, fl.Identity.random(), fl.Config())
        self.path = folder / "flash.bin"
        self.machines: list[Machine] = []

    def start(self, *options: str, straps: int = 0, name: str = "machine") -> Machine:
        if not self.path.exists():
            self.flash.save(self.path)
        machine = Machine(self.qemu, self.folder, self.path, *options,
                          machine=f"essd,media=media,straps={straps}", name=name)
        self.machines.append(machine)
        return machine

    def boot(self, *options: str, straps: int = 0, until: str = IDLE) -> str:
        return self.start(*options, straps=straps).wait_for(until)


@pytest.fixture
def bench(qemu: Path, trial: fw_build.Firmware, tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(qemu, trial, tmp_path)
    yield bench
    for machine in bench.machines:
        machine.close()


# Booting

def test_boots_the_newer_slot(bench):
    log = bench.boot()
    assert "reset by power-on, slot 1, A good, B not needed" in log
    assert "DRAM 512 MiB" in log


def test_boots_slot_b_when_it_is_newer(bench):
    image = bench.flash.image("B")
    bench.flash.set_image("B", fl.Image(image.data, "2.0", 9))
    log = bench.boot()
    assert "slot B: firmware 2.0, sequence 9" in log
    assert "slot 2, A not needed, B good" in log


def test_the_image_is_read_by_dma(bench):
    machine = bench.start("-trace", "essd_spi_dma_write")
    machine.wait_for(IDLE)
    lengths = re.findall(r"offset 0x008 value 0x([0-9a-f]+)", machine.errors.read_text())
    image = len(bench.flash.image("A").data)
    assert sum(int(length, 16) for length in lengths) >= image
    # A few transfers for the headers, the places of the record that says which slot
    # starts, and the image in large pieces: not one for each byte.
    assert len(lengths) < image / 200


def test_a_slot_above_16_mib_is_read_with_four_address_bytes(bench):
    machine = bench.start("-trace", "m25p80_command_decoded")
    machine.wait_for(IDLE)
    boot = machine.errors.read_text()
    assert re.search(r"new command:0x3\b", boot) or "0x03" in boot, boot[:2000]
    assert "0x13" in boot


@pytest.mark.parametrize("what, said", [
    ("image", "bad image CRC"), ("header", "bad header CRC"), ("magic", "empty")])
def test_the_other_slot_boots_if_one_is_damaged(bench, what, said):
    bench.flash.corrupt_slot("A", what)
    log = bench.boot()
    assert f"slot 2, A {said}, B good" in log
    assert f"boot: slot A: {said}" in log or f"bytes: {said}" in log


@pytest.mark.parametrize("change", [
    {"load_addr": 0x1000}, {"entry": 0x7FFFFFFC}, {"entry": 0x80000002},
    {"load_addr": 0x9FFFFFF0, "entry": 0x9FFFFFF0}])
def test_an_image_with_a_bad_length_or_address_is_refused(bench, change):
    image = bench.flash.image("A")
    bench.flash.set_image("A", fl.Image(image.data, "1.0", 5, **change))
    assert "slot 2, A bad length, load address or entry, B good" in bench.boot()


def test_the_boot_rom_stops_if_both_slots_are_damaged(bench):
    bench.flash.corrupt_slot("A", "image")
    bench.flash.erase_slot("B")
    machine = bench.start()
    log = machine.wait_for("stopped: no slot holds a good image")
    assert "slot A" in log and "bad image CRC" in log and "slot B: empty" in log
    status = machine.ask("human-monitor-command",
                         **{"command-line": "xp /1wx 0x1000100c"})
    assert "0x80000260" in status       # done, none, A image CRC, B empty
    before = cpu_ticks(machine)
    time.sleep(1)
    assert cpu_ticks(machine) - before < 10
    assert machine.log() == log


# Devices of the SoC

def test_reset_by_software_keeps_the_scratch_words_quiet(bench):
    log = bench.boot(straps=4)
    assert "reset by software" in log and "panic" not in log


def test_an_assertion_is_reported_after_the_reset(bench):
    log = bench.boot(straps=1)
    assert "panic: tests/soc/main.c:" in log
    assert "reset by panic" in log
    assert "panic 1: assertion cause 0 value 0 file tests/soc/main.c" in log


def test_a_trap_prints_registers_and_is_reported_after_the_reset(bench):
    log = bench.boot(straps=2)
    assert "panic: trap 5 at 0x8000" in log and "x31 " in log
    assert "panic 1: trap cause 5 value 0 file" in log


def test_an_image_that_is_not_a_program_traps(bench):
    bench.flash.set_image("A", fl.Image(b"\0" * 64, "0.0", 9))
    log = bench.boot(until="reset by panic")
    assert "panic: trap 2 at 0x80000000" in log


def test_the_watchdog_resets_firmware_that_hangs(bench):
    assert "reset by watchdog" in bench.boot(straps=3)


def stop_for(machine: Machine, seconds: float) -> None:
    """Stop the whole process, as a busy computer or a debugger does."""
    machine.process.send_signal(signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        machine.process.send_signal(signal.SIGCONT)


def test_a_hart_that_hangs_is_caught_in_time_although_the_process_stops(bench):
    machine = bench.start(straps=3)
    machine.wait_for("soc: trial 3")
    start = time.monotonic()
    for _ in range(3):
        stop_for(machine, 0.4)
    machine.wait_for("reset by watchdog")
    # Two periods of 1 s, the stops, and a second boot on a busy computer.
    assert 2 < time.monotonic() - start < 15


def test_a_drive_that_is_stopped_does_not_restart(qemu, tmp_path):
    """The watchdog counts only time in which the hart could have run."""
    bench = Bench(qemu, fw_build.ensure_firmware(), tmp_path)
    try:
        machine = bench.start()
        machine.wait_for("listening on 4420")
        for seconds in (0.3, 4.5, 0.3, 4.5, 9):
            stop_for(machine, seconds)
            time.sleep(0.1)
        time.sleep(1)
        assert machine.log().count("boot: mask ROM") == 1
        assert "watchdog:" not in machine.log()
        # The hart runs: it serves the monitor's reset and boots again.
        machine.ask("system_reset")
        machine.wait_for_count("listening on 4420", 2)
        assert "reset by reset pin" in machine.log()
    finally:
        for machine in bench.machines:
            machine.close()


def test_a_pause_does_not_empty_the_capacitors(bench):
    """They supply the firmware, which cannot save anything while it is stopped."""
    bench.flash.save(bench.path)
    machine = Machine(bench.qemu, bench.folder, bench.path, "-global",
                      "essd-sysctl.plp-budget-us=2000000",
                      machine="essd,media=media,plp=on")
    bench.machines.append(machine)
    machine.wait_for(IDLE)
    machine.ask("qom-set", path="/machine/sysctl", property="power-fail", value=True)
    stop_for(machine, 4)
    time.sleep(0.5)
    assert machine.process.poll() is None
    assert machine.process.wait(20) == -signal.SIGKILL


def test_system_reset_of_the_monitor_is_the_reset_pin(bench):
    machine = bench.start()
    machine.wait_for(IDLE)
    machine.ask("system_reset")
    machine.wait_for("soc: reset by reset pin")


@pytest.mark.parametrize("harts", [1, 2, 4])
def test_parked_harts_can_be_woken(bench, harts):
    log = bench.boot("-smp", str(harts), straps=5)
    assert log.count("runs") == harts - 1


def test_flash_is_written_below_and_above_16_mib(bench):
    machine = bench.start(straps=6)
    log = machine.wait_for(IDLE)
    assert log.count("works") == 4 and "fails" not in log
    assert "boot number 1\r" in log
    machine.ask("system_reset")
    machine.wait_for("boot number 2\r")
    machine.close()
    assert fl.FlashImage.load(bench.path).data[0xF00009:0xF0000C] == bytes(
        [0xF00 & 255, (0xF00 + 7) & 255, (0xF00 + 14) & 255])


def test_what_the_flash_has_written_survives_the_end_of_qemu(bench):
    """The part is busy until its file has been written; 5 writes a second make that visible."""
    bench.flash.save(bench.path)
    machine = Machine(bench.qemu, bench.folder, f"{bench.path},throttling.iops-write=5",
                      machine="essd,media=media,straps=6")
    bench.machines.append(machine)
    machine.wait_for(IDLE)
    machine.close()
    written = fl.FlashImage.load(bench.path).data
    for sector in (0xF00, 0x1800):
        start = sector * 4096 + 9
        assert written[start:start + 288] == bytes(
            (i * 7 + sector) & 255 for i in range(288))


def test_the_spi_dma_channel_reads_flash_and_refuses_what_is_not_memory(bench):
    log = bench.boot(straps=9)
    assert "DMA reads works" in log
    assert "DMA to no memory: status 2\r" in log
    assert "DMA to registers: status 2\r" in log
    assert "DMA of bad lengths: first byte 5a, status 2\r" in log
    assert "DMA of 14 bytes: 5a 0 0 5a, status 0\r" in log


def test_the_timer_and_interrupts_end_a_wait(bench):
    log = bench.boot(straps=7)
    assert "timer works" in log
    assert "interrupt works, sources 2" in log
    assert "claimed again 0" in log


def test_random_words_differ(bench):
    assert "random works" in bench.boot(straps=8)


def test_the_option_m_sets_the_size_of_dram(bench):
    assert "DRAM 64 MiB" in bench.boot("-m", "64M")


def cpu_ticks(machine: Machine) -> int:
    fields = Path(f"/proc/{machine.process.pid}/stat").read_text().rsplit(")")[1]
    return sum(int(x) for x in fields.split()[11:13])


def test_an_idle_machine_uses_little_processor_time(bench):
    machine = bench.start("-smp", "4")
    machine.wait_for(IDLE)
    before = cpu_ticks(machine)
    time.sleep(3)
    assert cpu_ticks(machine) - before < 30     # a tenth of one processor


# Saving and loading

def save(machine: Machine, state: Path) -> str:
    """Stop the machine, save it to a file, end it; what its console said."""
    machine.ask("stop")
    machine.ask("migrate", uri=f"file:{state}")
    while machine.ask("query-migrate")["status"] != "completed":
        time.sleep(0.02)
    said = machine.log()
    machine.close()
    return said


def load(bench: Bench, state: Path, *options: str) -> Machine:
    machine = bench.start(*options, "-incoming", f"file:{state}", name="second")
    while machine.ask("query-status")["status"] == "inmigrate":
        time.sleep(0.02)
    machine.ask("cont")
    return machine


@pytest.mark.parametrize("delay_ms", [0, 5, 10, 20, 500])
def test_a_saved_machine_resumes_in_every_phase(bench, delay_ms):
    """It is stopped in the ROM, while the image is loaded, or while the image runs."""
    first = bench.start("-S", "-smp", "2")
    first.ask("cont")
    time.sleep(delay_ms / 1000)
    said = save(first, bench.folder / "state")
    second = load(bench, bench.folder / "state", "-smp", "2")
    second.wait_for("soc: alive")
    whole = said + second.log()
    assert whole.count("boot: mask ROM") == 1
    assert "slot 1, A good, B not needed" in whole
    assert whole.count(IDLE) == 1
    second.ask("system_reset")
    second.wait_for("soc: reset by reset pin")


def test_the_real_firmware_resumes_after_loading(qemu, tmp_path):
    """It is saved while all devices run; the watchdog does not expire afterwards."""
    bench = Bench(qemu, fw_build.ensure_firmware(), tmp_path)
    try:
        first = bench.start()
        first.wait_for("listening on 4420")
        time.sleep(0.5)
        save(first, tmp_path / "state")
        second = load(bench, tmp_path / "state")
        time.sleep(6)
        assert second.log() == ""
        second.ask("system_reset")
        second.wait_for("listening on 4420")
        assert "reset by reset pin" in second.log() and ", boot 2\r" in second.log()
    finally:
        for machine in bench.machines:
            machine.close()


# The command line

@pytest.mark.parametrize("options, said", [
    (["-kernel", "/dev/null"], "-kernel and -bios are not supported"),
    (["-bios", "/dev/null"], "-kernel and -bios are not supported"),
    (["-m", "16M"], "-m has to be 64 MiB to 2 GiB"),
    (["-smp", "5"], "Invalid SMP CPUs 5"),
    (["-M", "essd,straps=256"], "straps"),
    (["-M", "essd,media=other"], "other")])
def test_invalid_options_are_refused_in_one_line(qemu, bench, options, said):
    bench.flash.save(bench.path)
    result = subprocess.run(
        [qemu, "-M", "essd,media=media", "-display", "none", *MEDIA, "-drive",
         f"if=mtd,format=raw,file={bench.path}", *options],
        capture_output=True, text=True, timeout=30, check=False)
    assert result.returncode == 1
    assert said in result.stderr and result.stderr.count("\n") == 1, result.stderr


def test_a_machine_without_flash_is_refused(qemu, tmp_path):
    short = tmp_path / "short.bin"
    short.write_bytes(b"\xff" * 4096)
    for options, said in (([], "no SPI flash"), (
            ["-drive", f"if=mtd,format=raw,file={short}"], "has 4096 bytes")):
        result = subprocess.run([qemu, "-M", "essd", "-display", "none", *options],
                                capture_output=True, text=True, timeout=30,
                                check=False)
        assert result.returncode == 1 and said in result.stderr


def test_the_flash_may_be_a_block_node(qemu, trial, bench):
    bench.flash.save(bench.path)
    console = bench.folder / "console"
    with subprocess.Popen(
            [qemu, "-display", "none", "-serial", f"file:{console}", "-blockdev",
             f"driver=raw,node-name=nor,file.driver=file,file.filename={bench.path}",
             *MEDIA, "-M", "essd,flash=nor,media=media"]) as process:
        deadline = time.monotonic() + 20
        while not console.exists() or IDLE not in console.read_text():
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.05)
        process.kill()


def test_qemu_contains_no_protocol_above_roce(qemu):
    symbols = subprocess.run(["nm", qemu], capture_output=True, text=True,
                             check=True, timeout=120).stdout
    assert "essd_machine_init_board" in symbols
    assert "nvmeof" not in symbols.lower()
