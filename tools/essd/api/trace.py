# SPDX-License-Identifier: BSD-2-Clause
"""Events inside a running drive, as they happen (docs/tracing.md)."""

import queue
import threading
import time
from collections.abc import Iterator

from ..instance.instance import Instance
from ..observe.trace import Decoder, Event, Stream, mask_of

END_S = 10.0            # for the last events to come after stop()


class Trace:
    """A subscription to the events of one drive.

    A thread receives the events from the beginning on, so none is lost while the
    program does something else.  Use it as a context manager:

        with drive.trace("commands") as trace:
            host.run("...")
        for event in trace.events:
            print(event.time_ns, event.kind.name, event.args)
    """

    def __init__(self, instance: Instance, events: str = "all") -> None:
        """`events` are groups with commas between them, as for `essd trace`; or "all"."""
        self.mask = mask_of(events)
        self.stream = Stream(instance, ["trace"], self.mask)
        self.decoder = Decoder()
        self.queue: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self.has_ended = False
        self.thread = threading.Thread(target=self.receive, daemon=True)
        self.thread.start()

    def receive(self) -> None:
        try:
            for message in self.stream.events():
                for event in self.decoder.of_message(message, self.mask):
                    self.queue.put(event)
        except (OSError, ValueError):
            pass            # stop() has closed the stream, or the supervisor has ended
        self.queue.put(None)

    @property
    def lost(self) -> int:
        """Events that the drive, and messages that this program, was too slow for."""
        return (self.decoder.lost_firmware + self.decoder.lost_device
                + self.decoder.lost_messages)

    def next(self, timeout_s: float | None = None) -> Event | None:
        """The next event; None after the last one, or if none comes within the time."""
        if self.has_ended:
            return None
        try:
            event = self.queue.get(timeout=timeout_s)
        except queue.Empty:
            return None
        self.has_ended = event is None
        return event

    def __iter__(self) -> Iterator[Event]:
        """Yield events until stop() is called or the system ends."""
        while (event := self.next()) is not None:
            yield event

    def during(self, seconds: float) -> Iterator[Event]:
        """Yield the events that come within this time."""
        end = time.monotonic() + seconds
        while (event := self.next(max(0.0, end - time.monotonic()))) is not None:
            yield event

    @property
    def events(self) -> list[Event]:
        """Stop, and return all events that have not been read yet."""
        self.stop()
        return list(self)

    def stop(self) -> None:
        """End the subscription; events that happened before can still be read."""
        if self.thread.is_alive():
            self.stream.end()
            self.thread.join(END_S)
        self.stream.close()

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
