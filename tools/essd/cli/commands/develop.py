# SPDX-License-Identifier: BSD-2-Clause
"""Commands that test and measure the drive, and check this source tree."""

import json
from pathlib import Path
from typing import Annotated

import typer

from ...base import paths, show
from ...instance.config import UML
from .. import completion
from ..base import AsJson, DEVELOP, command


@command(DEVELOP)
def conform(native: Annotated[bool, typer.Option(
                "--native", help="Test the drive as one native process, which takes "
                                 "seconds.  Default: a drive booted in QEMU.")] = False,
            nand: Annotated[bool, typer.Option(
                "--nand/--block", help="Whether the tested drive has NAND flash and a "
                "translation layer, or a block medium.")] = True,
            target: Annotated[str, typer.Option(
                metavar="ADDR", help="Test the NVMe-oF RoCEv2 target that has this "
                "address; needs --via.")] = "",
            via: Annotated[str, typer.Option(
                metavar="SOCKET|IFACE", help="Link to the --target: a QEMU stream "
                "socket, or a network interface (needs CAP_NET_RAW).")] = "",
            ip: Annotated[str, typer.Option(
                metavar="OWN", help="The suite's own address on that link.")] = "",
            peer: Annotated[str, typer.Option(
                metavar="nvmet|siw", help="Test the Linux kernel's own target in a guest: "
                "over RoCE, or over iWARP and RoCE.")] = "",
            list_: Annotated[bool, typer.Option(
                "--list", help="List the tests with clause and purpose, and exit."
                )] = False,
            clauses: Annotated[bool, typer.Option(
                "--clauses", help="List the clauses that have tests, with how many, and "
                "exit.")] = False,
            only: Annotated[list[str] | None, typer.Option(
                metavar="A,B.C", help="Run only these chapters, groups or tests; "
                "repeatable.")] = None,
            every: Annotated[bool, typer.Option(
                "--all", help="Run the long tests too.")] = False,
            over_tcp: Annotated[bool, typer.Option(
                "--over-tcp", help="Run the chapter nvme over NVMe/TCP.")] = False,
            over_iwarp: Annotated[bool, typer.Option(
                "--over-iwarp", help="Run the chapters nvme and nvmf over iWARP.")] = False,
            mutants: Annotated[bool, typer.Option(
                "--mutants", help="Test the suite itself: build drives with deliberate "
                "defects and check that it fails each of them.")] = False,
            sample: Annotated[int | None, typer.Option(
                min=0, metavar="SEED", help="With --mutants: only a few defects, which "
                "this number chooses.")] = None,
            seed: Annotated[int, typer.Option(
                min=0, help="Seed of all random values in the tests.")] = 1,
            slow: Annotated[int, typer.Option(
                min=1, metavar="N", help="Multiply all time-outs by N.")] = 1,
            drives: Annotated[int, typer.Option(
                min=1, max=8, metavar="N", help="Share the chapters among N drives in "
                "QEMU, which takes half the time with two.")] = 1,
            junit: Annotated[Path | None, typer.Option(
                metavar="FILE", help="Write a JUnit report for CI servers.")] = None,
            html: Annotated[Path | None, typer.Option(
                metavar="FILE", help="Write an HTML report, one file.")] = None,
            pcap: Annotated[Path | None, typer.Option(
                metavar="DIR", help="Write a capture of each test into this folder."
                )] = None,
            compare: Annotated[Path | None, typer.Option(
                metavar="FILE", help="Show which verdicts differ from those of an "
                "earlier run, in a file that --json has written.")] = None,
            as_json: AsJson = False,
            ) -> None:
    """Run the conformance suite against a drive or another NVMe-oF target.

    Exit status 0 means that every applicable test was run and passed.
    """
    from ...conform import conform as conform_module
    from ...conform.results import Results
    options = conform_module.Options(
        native=native, nand=nand, target=target, via=via, ip=ip, peer=peer,
        only=[x for text in only or [] for x in text.split(",") if x], every=every,
        over_tcp=over_tcp, over_iwarp=over_iwarp, seed=seed, slow=slow, drives=drives,
        junit=junit, html=html, pcap=pcap)
    try:
        if only and not options.only:
            raise conform_module.UsageError(
                "--only names no test: ./essd conform --list shows the names")
        options.check()
        if sample is not None and not mutants:
            raise conform_module.UsageError("--sample is for --mutants")
        if list_:
            raise typer.Exit(conform_module.list_tests(options))
        if clauses:
            from ...conform import clauses as clauses_module
            print(clauses_module.of_program(options))
            raise typer.Exit
        if mutants:
            from ...conform import mutants as mutants_module
            raise typer.Exit(mutants_module.command(options, sample))
        if as_json:
            show.only_data()
        before = Results.load(compare) if compare else None
        results = conform_module.run(options)
    except conform_module.UsageError as error:
        show.error(str(error))
        raise typer.Exit(2) from None
    if as_json:
        print(json.dumps(results.as_json(), indent=2))
    elif before is not None:
        changes = results.changes(before)
        show.line(f"{len(changes)} verdicts differ from those of {compare}"
                  + (":" if changes else ""))
        for line in changes:
            show.line(f"  {line}")
    raise typer.Exit(0 if results.is_conforming else 1)


@command(DEVELOP)
def bench(native: Annotated[bool, typer.Option(
              "--native", help="Measure with essd's own initiator instead of a Linux "
                               "host, which would limit the results.")] = False,
          seconds: Annotated[float, typer.Option(help="Seconds of each run.")] = 4,
          rounds: Annotated[int | None, typer.Option(
              help="Runs of each workload, or with --mount starts of each kind; the median "
                   "is reported.  Default: 2; with --mount, and where several drives run in "
                   "turns, 5; with --links 3.")] = None,
          only: Annotated[str, typer.Option(
              help="Run only workloads whose name contains this text.")] = "",
          mtu: Annotated[int | None, typer.Option(
              help="MTU of the links.  Default: 1500, with --goals 9000.")] = None,
          target: Annotated[str, typer.Option(
              help="Target to measure: both, drive or nvmet.")] = "both",
          silent: Annotated[int, typer.Option(
              metavar="HOSTS", help="With --native: measure again beside so many "
                                    "hosts that fall silent.")] = 0,
          nand: Annotated[str | None, typer.Option(
              metavar="SIZE[,KEY=VALUE]...", help="Measure a drive with a NAND array of this "
              "size beside one with a block medium.  With --mount: the drive's array; default: "
              "that of a new drive.")] = None,
          block: Annotated[bool, typer.Option(
              "--block", help="Measure a drive with a block medium instead of NAND "
                              "flash.")] = False,
          timing: Annotated[str | None, typer.Option(
              metavar="fast|realtime|virtual", help="Whether operations of the NAND flash "
              "take time.  With --native, virtual runs everything in one process in "
              "virtual time: the same seed gives the same figures.")] = None,
          seed: Annotated[int | None, typer.Option(
              min=1, help="Seed of a run with --timing virtual; default: 1.")] = None,
          mips: Annotated[int | None, typer.Option(
              min=0, max=1_000_000, help="With --timing virtual: millions of instructions "
              "that the firmware executes in a second; default: 1000.  With 0, they take "
              "no time.")] = None,
          steady: Annotated[bool, typer.Option(
              "--steady", help="With --timing virtual: random writes in the steady state, "
                               "while garbage is collected; takes 7 minutes or more.")] = False,
          mount: Annotated[bool, typer.Option(
              "--mount", help="Measure how long a drive with NAND flash takes to mount its "
              "medium, its memory and its disk space: new, nearly empty and nearly full.")
              ] = False,
          growth: Annotated[bool, typer.Option(
              "--growth", help="Measure how the cost of an I/O grows with queue pairs, "
              "namespaces, data, drives, MTU, ports and kind of hart, one at a time; --only "
              "chooses.")] = False,
          goals: Annotated[bool, typer.Option(
              "--goals", help="Measure each goal of docs/performance.md and show whether it is "
              "met; with --compare BASE beside an earlier drive.  --only chooses rows whose "
              "name contains the text.")] = False,
          links: Annotated[bool, typer.Option(
              "--links", help="Measure what each kind of cable costs the drive and a Linux host: "
              "streams, datagrams and shared memory, in turns; --only chooses.")] = False,
          as_json: AsJson = False,
          html: Annotated[Path | None, typer.Option(
              metavar="FILE", help="Write an HTML page with charts, one file.")] = None,
          compare: Annotated[str | None, typer.Option(
              metavar="BASE|FILE", help="Run an earlier drive beside this one, in turns, and "
              "show ratios: BASE is a git revision, such as HEAD~5, or the folder of a checkout. "
              "Or compare with an earlier run of the same kind: FILE is what --json has "
              "written.")] = None,
          ) -> None:
    """Measure the performance of the drive and of Linux nvmet for comparison."""
    from ...bench import bench as bench_module
    bench_module.command(native, seconds, rounds, only, mtu, target, silent, nand,
                         bench_module.Output(as_json, html, compare), block,
                         bench_module.Timing(timing, seed, mips, steady), mount, growth,
                         goals, links)


@command(DEVELOP)
def compare(host_kind: Annotated[str, typer.Option(
                "--host-kind", metavar="KIND", help="What the host and the Linux target are: "
                "uml (user-mode Linux), or stock (Debian's kernel in virtual machines).")] = UML,
            seconds: Annotated[int, typer.Option(help="Seconds of each turn.")] = 2,
            rounds: Annotated[int, typer.Option(
                help="Turns of each row with each workload; the median is reported.")] = 3,
            only: Annotated[list[str] | None, typer.Option(
                metavar="A,B", help="Measure only rows and workloads whose names contain one of "
                "these texts, such as drive,4k-randread; repeatable.")] = None,
            as_json: AsJson = False,
            html: Annotated[Path | None, typer.Option(
                metavar="FILE", help="Write an HTML page with charts, one file.")] = None,
            ) -> None:
    """Compare the drive's protocols with each other and with Linux's own targets."""
    from ...bench import compare as compare_module
    compare_module.command(host_kind, seconds, rounds, only or [], as_json, html)


@command(DEVELOP)
def paper(profile: Annotated[str, typer.Option(
              metavar="NAME|FILE.toml", help="The constants: of a profile that comes with "
              "essd, or of a file with the same keys.")] = "samsung-2021",
          seed: Annotated[int, typer.Option(
              help="Seed of the flash's errors and of random addresses.")] = 1,
          mtu: Annotated[int, typer.Option(help="MTU of the link.")] = 1500,
          ports: Annotated[int, typer.Option(
              metavar="1|2", help="Ports of the drive that the host uses: with 2, it has a "
              "path through each, and half of its commands on each path.")] = 1,
          small: Annotated[bool, typer.Option(
              "--small", help="A drive with 4 dies, for seconds; its figures are not those of "
                              "the white paper's drive.")] = False,
          sensitivity: Annotated[bool, typer.Option(
              "--sensitivity", help="Measure also with each constant 10% smaller and "
                                    "larger.")] = False,
          curve: Annotated[bool, typer.Option(
              "--curve", help="Measure also how random overwriting slows writes of a drive with "
                              "4 dies, until it has been overwritten twice.")] = False,
          scenarios: Annotated[bool, typer.Option(
              "--scenarios", help="Measure also what a CDN's cache and an object store ask of "
                                  "their drives.")] = False,
          as_json: AsJson = False,
          html: Annotated[Path | None, typer.Option(
              metavar="FILE", help="Write an HTML page with plots, one file.")] = None,
          ) -> None:
    """Measure the white paper's four rows in virtual time.

    Prints the drive's figures beside the paper's, and what limits each of them.  The same
    options print the same bytes on every computer that has the same compiler.
    """
    from ...bench import paper as paper_module
    paper_module.command(paper_module.Wish(profile, seed, mtu, ports, small, sensitivity,
                                           curve, scenarios, as_json, html))


@command(DEVELOP)
def test(every: Annotated[bool, typer.Option(
             "--all", help="Run the long tests too.")] = False,
         only: Annotated[list[str] | None, typer.Option(
             "--only", metavar="STAGE", autocompletion=completion.test_stages,
             help="Run only this stage; repeatable.")] = None,
         coverage: Annotated[bool, typer.Option(
             "--coverage", help="Run only the coverage stage: measure which lines and "
             "branches of the drive the native tests reach.")] = False,
         ) -> None:
    """Run every check and test, stage by stage, and show each stage's time."""
    paths.need_checkout("test")
    from ...testrun.testrun import run_tests
    raise typer.Exit(run_tests(every, (only or []) + ["coverage"] * coverage))


@command(DEVELOP)
def lint(names: Annotated[list[str] | None, typer.Argument(
             metavar="[LINT]...", autocompletion=completion.lints,
             help="Lints to run.  Default: all of them.")] = None,
         every: Annotated[bool, typer.Option(
             "--all", help="Check every file, also where the default is only the "
                           "changed files.")]
         = False) -> None:
    """Run the checks that need no build: formats, names, documents, types."""
    paths.need_checkout("lint")
    from ...testrun import lints
    raise typer.Exit(lints.run_lints(names or [], every))
