# SPDX-License-Identifier: BSD-2-Clause
"""The settings' schema, the files made of it, and the blocks of existing drives."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from essd.settings import block as config_block, schema as settings_schema, settings
from essd.settings.schema import SchemaError
from test_settings import MIXED, say  # noqa: F401

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools"))

import settings_gen  # noqa: E402

# Configuration blocks that the tools wrote before the schema existed, with the
# defaults and with test_settings.MIXED.  Existing drives have such blocks.  The bit of mdns,
# which came later, is 0 in them, as those of the services over TCP.  They end before the
# part of AoE, which is 0 when its keys have their defaults.
DEFAULT_BLOCK = (
    "455353442d434647010020010100000000000000a96e5c5100190100dc05000000000000000000000000"
    "000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000190100dc050000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000041e0000040000000000000000"
    "000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "000000000000000000000000000000000000")
MIXED_BLOCK = (
    "455353442d434647010020010100000000000000a018302109190000282318000a00000a0a0000010000"
    "000000000000000000000000000000000000000000000000000000000000000007000000000000000000"
    "0000000006190200282300400000000000000000fd000000000000000000000000000010fe8000000000"
    "00000000000000000001fe0f000000000000000000000000000001000302010040000000000000000000"
    "0000ffff0a0000097261636b372d736c6f74330000000000000000000000000000000000000000000000"
    "000000000000000000000000000000000000000000000000000001400000fd0000000000000000000000"
    "0000001100000000000000000000000000000000000000000218050000000000000000000000ffff0a00"
    "000b01070703760000000000000000000000")
BLOCKS = [(DEFAULT_BLOCK, {}), (MIXED_BLOCK, MIXED | {"mdns": "off", "tcp.echo": "off",
                                                  "nvme.tcp": "off", "nvme.iwarp": "off",
                                                  "iwarp.crc": "on", "discovery.rdma": "all",
                                                  "aoe.export": "none", "aoe.shelf": "0"})]
HEADER_DIGITS = 2 * 24


@pytest.mark.parametrize(("block", "changes"), BLOCKS)
def test_blocks_of_existing_drives_keep_their_values_and_bytes(
        say: Path, block: str, changes: dict[str, str]) -> None:  # noqa: F811
    values = settings.DEFAULTS | changes
    config = config_block.Config.unpack(bytes.fromhex(block))
    assert config is not None and settings.from_config(config) == values
    assert settings.to_config(values).body().hex() == \
        block[HEADER_DIGITS:] + "00" * len(config_block.Aoe().pack())
    said = subprocess.run([say, "block", block], check=True, capture_output=True,
                          text=True, timeout=60).stdout.splitlines()
    assert said == [f"{key} {value}" for key, value in values.items()]


def test_files_made_of_the_schema_are_up_to_date() -> None:
    assert settings_gen.stale(settings_schema.schema()) == {}


def changed(old: str, new: str) -> str:
    text = settings_schema.PATH.read_text(encoding="utf-8")
    assert old in text
    return text.replace(old, new, 1)


def test_a_change_of_the_schema_changes_firmware_and_tools() -> None:
    schema = settings_schema.parse(changed("max = 9000", "max = 9500"))
    stale = {path.name: text for path, text in settings_gen.stale(schema).items()}
    assert sorted(stale) == ["config_layout.h", "config_rows.inc"]
    assert "MTU_MAX = 9500," in stale["config_layout.h"]
    assert "a number from 1280 to 9500" in stale["config_rows.inc"]
    assert schema.settings["port.N.mtu"].documented == "1280 to 9500"
    setting = schema.settings["port.N.mtu"]
    assert settings.parser(setting)("9500") == "9500"


def test_the_layout_says_what_each_field_is() -> None:
    text = settings_gen.layout(settings_schema.schema())
    assert ("    /* 2 bytes: MTU in bytes of IP packet, 1280 to 9000 */\n"
            "    PORT_MTU = 4,\n") in text
    assert ("    /* 16 bytes: SNTP server, IPv4 as ::ffff:a.b.c.d; all zero: none */\n"
            "    SERVICES_SNTP_SERVER = 8,\n") in text
    assert max(map(len, text.splitlines())) <= 80
    for part in settings_schema.schema().parts.values():
        for field in part.fields:
            words = re.sub("[*`]", "", field.doc).split()
            assert " ".join(words) in re.sub(r"[\s*]+", " ", text), field.name


def contradictions() -> Iterator[tuple[str, str, str]]:
    yield 'default = "1500"', 'default = "15000"', "port.N.mtu: the default 15000"
    yield 'default = "fc"', 'default = "fec"', "port.N.fec: the default fec"
    yield 'name = "MTU", at = 4', 'name = "MTU", at = 2', "port.MTU begins at 2"
    yield 'record = ["port.MTU"]', 'record = ["port.MUT"]', "the block has no port.MUT"
    yield 'record = ["port.MTU"]', "record = []", "no setting uses port.MTU"
    yield 'key = "port.N.mtu"', 'key = "port.N.vlan"', "described twice"
    yield 'key = "port.N.mtu"', 'key = "prt.N.mtu"', "there is no group prt"
    yield 'key = "port.N.mtu"', 'key = "port.mtu"', "has a number"
    yield 'kind = "number"', 'kind = "count"', "there is no kind count"
    yield "numbers = [10, 25]", "numbers = [10, 10]", "a number of its own"
    yield 'doc = "the largest IP packet in bytes"', 'dok = "x"', "port.N.mtu: "
    yield "len = 20", "len = 19", "its fields end at 20"
    yield "live = false", "live = no", "settings.toml"


@pytest.mark.parametrize(("old", "new", "why"), list(contradictions()))
def test_an_inconsistent_schema_is_refused(tmp_path: Path, old: str, new: str,
                                              why: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(changed(old, new), encoding="utf-8")
    with pytest.raises(SchemaError, match=why):
        settings_schema.schema(path)


def test_a_generated_file_that_was_edited_is_reported(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = settings_gen.outputs
    path = TOP / "firmware/store/config_layout.h"
    monkeypatch.setattr(settings_gen, "outputs", lambda schema: (
        outputs(schema) | {path: "another text"}))
    assert settings_gen.main(["--check"]) == 1
    assert "firmware/store/config_layout.h does not follow" in capsys.readouterr().out
    assert path.read_text() != "another text"
