# SPDX-License-Identifier: BSD-2-Clause
"""gdb commands that print the firmware's tables; `essd gdb` loads this into gdb.

This runs in gdb's own Python, so it uses nothing of the project.  It reads the
structures by the names that the firmware's sources give them.
"""

from collections.abc import Iterable, Sequence

import gdb

NO_CTRL = 0xff
NVME_FABRICS = 0x7f


def the_drive() -> gdb.Value:
    """The firmware's `drive`, wherever the hart has been halted."""
    symbol = gdb.lookup_static_symbol("drive")
    if symbol is None:
        raise gdb.GdbError("there are no symbols of the firmware: name its ELF with "
                           "the command \"file\"")
    drive = symbol.value()
    if int(drive["target"]) == 0 or int(drive["rdma"]) == 0:
        raise gdb.GdbError("the firmware has not started the drive yet: its tables "
                           "are made in drive_init()")
    return drive


def elements(array: gdb.Value) -> Iterable[tuple[int, gdb.Value]]:
    """An array's elements, read from the drive at once instead of one by one."""
    array.fetch_lazy()
    first, last = array.type.range()
    return ((i, array[i]) for i in range(first, last + 1))


def name_of(value: gdb.Value, enum: str, prefix: str) -> str:
    """A state's name without its prefix, such as `live` for QPAIR_LIVE."""
    number = int(value)
    for field in gdb.lookup_type(f"enum {enum}").fields():
        if field.enumval == number:
            return str(field.name).removeprefix(prefix).lower()
    return str(number)


def text_of(array: gdb.Value) -> str:
    """A string in an array of fixed length."""
    return str(array.string(errors="replace")).split("\0")[0]


def address_of(array: gdb.Value) -> str:
    """16 bytes as an address: IPv4 ones are mapped into IPv6."""
    data = bytes(int(array[i]) for i in range(16))
    if data[:12] == bytes(10) + b"\xff\xff":
        return ".".join(str(byte) for byte in data[12:])
    return ":".join(data[i:i + 2].hex() for i in range(0, 16, 2))


def show_table(headings: Sequence[str], rows: Sequence[Sequence[object]],
               nothing: str) -> None:
    if not rows:
        gdb.write(nothing + "\n")
        return
    lines = [[str(cell) for cell in row] for row in [headings, *rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(headings))]
    for line in lines:
        gdb.write("  ".join(cell.ljust(width) for cell, width in
                            zip(line, widths, strict=True)).rstrip() + "\n")


class Controllers(gdb.Command):     # type: ignore[misc]
    """The NVMe controllers: one for each association of a host."""

    def __init__(self) -> None:
        super().__init__("essd-controllers", gdb.COMMAND_DATA)

    def invoke(self, _argument: str, _from_tty: bool) -> None:
        target = the_drive()["target"].dereference()
        now_us = int(target["now_us"])
        rows = []
        for i, ctrl in elements(target["ctrl"]):
            if int(ctrl["state"]) == 0:
                continue
            idle_ms = (now_us - int(ctrl["seen_us"])) // 1000
            rows.append((i, name_of(ctrl["state"], "ctrl_state", "CTRL_"),
                         f"0x{int(ctrl['cntlid']):04x}",
                         "discovery" if ctrl["is_discovery"] else "NVM",
                         f"0x{int(ctrl['cc']):08x}", int(ctrl["io_count"]),
                         int(ctrl["kato_ms"]), idle_ms, int(ctrl["aer_count"]),
                         text_of(ctrl["hostnqn"])))
        show_table(("index", "state", "CNTLID", "kind", "CC", "I/O queues", "KATO ms",
                    "idle ms", "AERs", "host NQN"), rows, "there is no controller")


class Qps(gdb.Command):             # type: ignore[misc]
    """The RNIC's queue pairs, and the NVMe queue that each of them carries."""

    def __init__(self) -> None:
        super().__init__("essd-qps", gdb.COMMAND_DATA)

    def invoke(self, _argument: str, _from_tty: bool) -> None:
        drive = the_drive()
        queues = {int(queue["qpn"]): queue
                  for _, queue in elements(drive["rdma"].dereference()["qps"])
                  if int(queue["state"]) != 0}
        qpairs = drive["target"].dereference()["qpair"]
        qpairs.fetch_lazy()
        rows = []
        for slot, qp in elements(drive["net"]["verbs"]["qps"]):
            qpn = int(qp["qpn"])
            if qpn != 0:
                send = (int(qp["sq_pi"]) - int(qp["sq_ci"])) & 0xffffffff
                receive = (int(qp["rq_pi"]) - int(qp["rq_ci"])) & 0xffffffff
                rows.append((f"0x{qpn:06x}", slot, send, receive,
                             *self.nvme_columns(queues.pop(qpn, None), qpairs)))
        for qpn, queue in queues.items():       # the RNIC has let go of them
            rows.append((f"0x{qpn:06x}", "-", "-", "-",
                         *self.nvme_columns(queue, qpairs)))
        show_table(("QPN", "slot", "sends", "receives", "transport", "queue pair", "state",
                    "controller", "QID", "requests", "SQHD", "host"), rows,
                   "there is no queue pair")

    @staticmethod
    def nvme_columns(queue: gdb.Value | None, qpairs: gdb.Value) -> tuple[object, ...]:
        if queue is None:       # of another service, or waiting to be used
            return ("-",) * 8
        number = int(queue["number"])
        qpair = qpairs[number]
        ctrl = int(qpair["ctrl"])
        return (name_of(queue["state"], "rdma_queue_state", "RDMA_QUEUE_"), number,
                name_of(qpair["state"], "qpair_state", "QPAIR_"),
                "-" if ctrl == NO_CTRL else ctrl, int(qpair["qid"]),
                int(queue["in_use"]), int(qpair["sqhd"]), address_of(qpair["host"]))


class Requests(gdb.Command):        # type: ignore[misc]
    """The commands that are in the drive, and what each of them waits for."""

    def __init__(self) -> None:
        super().__init__("essd-requests", gdb.COMMAND_DATA)

    def invoke(self, _argument: str, _from_tty: bool) -> None:
        drive = the_drive()
        rdma = drive["rdma"].dereference()
        queues = rdma["qps"]
        first_queue = int(queues[0].address)
        rows = []
        whole = gdb.lookup_type("struct nvmf_request").pointer()
        for i, request in elements(rdma["requests"]):
            if int(request["state"]) == 0:
                continue
            nvmf = request["nvmf"].cast(whole).dereference()
            sqe = nvmf["sqe"]
            number = ((int(request["qp"]) - first_queue)
                      // queues.type.target().sizeof)
            queue = queues[number]
            opcode = int(sqe["opcode"])
            is_fabrics = opcode == NVME_FABRICS
            rows.append((
                i, f"0x{int(queue['qpn']):06x}", int(queue["qid"]), int(sqe["cid"]),
                f"0x{opcode:02x}" + (f"/{int(sqe['fctype']):02x}" if is_fabrics else ""),
                "-" if is_fabrics else int(sqe["nsid"]),
                f"0x{int(sqe['cdw11']) << 32 | int(sqe['cdw10']):x}",
                int(nvmf["data_len"]), f"{int(nvmf['progress'])}/{int(nvmf['steps'])}",
                name_of(nvmf["state"], "nvmf_request_state", "NVMF_REQUEST_"),
                name_of(request["state"], "rdma_request_state", "RDMA_REQUEST_")))
        show_table(("request", "QPN", "QID", "CID", "opcode", "NSID", "CDW11:10", "bytes",
                    "steps", "target", "transport"), rows, "there is no request")


Controllers()
Qps()
Requests()
