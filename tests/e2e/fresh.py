# SPDX-License-Identifier: BSD-2-Clause
"""After a test that has failed, the next one gets other drives and hosts.

Those of a whole file or session are kept from test to test.  A failed test may leave a host
whose kernel waits for ever, and each test after it would fail, too.
"""

import functools
from collections.abc import Callable, Generator, Sequence
from typing import Any

import pytest

from essd.instance.instance import Instance

KEPT = ("module", "package", "session")
# If more tests fail, the reason is another one, and new drives and hosts only take time.
RENEWALS_MAX = 10
OWNERS = ("drives",)
HAS_FAILED: pytest.StashKey[bool] = pytest.StashKey()
RENEWALS: pytest.StashKey[int] = pytest.StashKey()
IS_RENEWING: pytest.StashKey[bool] = pytest.StashKey()

Kept = tuple[pytest.FixtureDef[object], Instance | None]


def instance_of(value: object) -> Instance | None:
    """What a fixture's value runs on, if it is a system, a part, a job, or has one."""
    for one in (value, *(getattr(value, name, None) for name in ("job", "system"))):
        found = one if isinstance(one, Instance) else getattr(one, "instance", None)
        if isinstance(found, Instance):
            return found
    return None


def kept(request: Any) -> list[Kept]:
    """The fixtures of a test that outlive it and have succeeded, with what they run on."""
    return [(definition, instance_of(result[0]))
            for definition in request._fixture_defs.values()
            if definition.scope in KEPT and (result := definition.cached_result) is not None
            and result[2] is None]


def renew(item: Any, had: Sequence[Kept], owners: Sequence[str]) -> None:
    """End the instances that a test had, and the fixtures that have started them.

    `owners` names fixtures that end, too, although their values do not say what they run on.
    """
    found = [(definition, instance) for definition, instance in had
             if instance is not None or definition.argname in owners]
    instances = [instance for _, instance in found if instance is not None]
    count = item.session.stash.get(RENEWALS, 0) + bool(instances)
    if not instances or count > RENEWALS_MAX:
        return
    item.session.stash[RENEWALS] = count
    item.session.stash[IS_RENEWING] = True
    # First the instances: what a fixture asks a host at its end would not be answered.
    steps: list[Callable[[], object]] = [instance.stop for instance in instances]
    steps += [functools.partial(definition.finish, item._request) for definition, _ in found]
    for step in steps:
        try:
            step()
        except Exception as error:      # Each step is done, whatever another one has met.
            print(f"after the failure of {item.name}: {error}")
    item.session.stash[IS_RENEWING] = False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[
        None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[HAS_FAILED] = True
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: Any, nextitem: pytest.Item | None) -> Generator[None]:
    has_ended = False
    # If the next test is in another file, pytest ends those of this file here, but not those
    # of the session that they have taken their drives and hosts from.
    had = kept(item._request)
    try:
        yield
        has_ended = True
    finally:
        if (item.stash.get(HAS_FAILED, False) or not has_ended) and nextitem is not None \
                and item.config.getoption("--target") == "drive":
            renew(item, had, OWNERS)
