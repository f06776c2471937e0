"""Drives libcurl's transfers from an asyncio loop, with few system calls.

pycurl's own `pycurl.AsyncCurlMulti` gives every socket to the event loop when a transfer begins
and takes it back when it ends, although the connection stays: six system calls and a handle of
the loop's for every request, a third of what a request costs. `SocketSet` does the same work with
a set of its own (epoll's, of which the loop watches only the one descriptor), in which idle
connections stay.
"""

from __future__ import annotations

import asyncio
import math
import select
from typing import Protocol

import pycurl


class Transfers(Protocol):
    """What the client needs of either; see `pycurl.AsyncCurlMulti`."""

    def setopt(self, option: int, value: int) -> None:
        """Set an option of the library's."""

    def add_handle(self, curl: pycurl.Curl) -> asyncio.Future[pycurl.Curl]:
        """Begin a transfer; the future is done when it is, with `pycurl.error` if it failed."""
        ...

    def remove_handle(self, curl: pycurl.Curl) -> None:
        """End a transfer at once.

        Raises:
            RuntimeError: It has ended already.
        """

    async def aclose(self) -> None:
        """End all transfers and connections."""


def transfers() -> Transfers:
    """`SocketSet` where the system has what it needs (Linux), else pycurl's own."""
    return SocketSet() if hasattr(select, "epoll") else pycurl.AsyncCurlMulti()


class SocketSet:
    """Transfers on the loop that runs when the first one begins."""

    def __init__(self) -> None:
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._wanted)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._due)
        self._came: dict[pycurl.Curl, asyncio.Future[pycurl.Curl]] = {}
        self._poll = select.epoll()
        self._events: dict[int, int] = {}
        """What is waited for at sockets that transfers use; idle ones stay in the poll."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._deadline, self._timer_at = math.inf, math.inf
        self._timer: asyncio.Handle | None = None

    def setopt(self, option: int, value: int) -> None:
        """Set an option of the library's."""
        self._multi.setopt(option, value)

    def add_handle(self, curl: pycurl.Curl) -> asyncio.Future[pycurl.Curl]:
        """Begin a transfer; the future is done when it is, with `pycurl.error` if it failed."""
        loop = self._bound()
        self._multi.add_handle(curl)
        came = self._came[curl] = loop.create_future()
        return came

    def remove_handle(self, curl: pycurl.Curl) -> None:
        """End a transfer at once.

        Raises:
            RuntimeError: It has ended already.
        """
        if self._came.pop(curl, None) is None:
            raise RuntimeError("the transfer has ended")
        self._multi.remove_handle(curl)

    async def aclose(self) -> None:
        """End all transfers and connections."""
        if self._poll.closed:
            return
        for curl, came in list(self._came.items()):
            self.remove_handle(curl)
            came.cancel()
        if self._loop is not None:
            self._loop.remove_reader(self._poll.fileno())
        if self._timer is not None:
            self._timer.cancel()
        self._multi.close()
        self._poll.close()

    def _bound(self) -> asyncio.AbstractEventLoop:
        """The loop of the first transfer."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._poll.fileno(), self._ready)
        return self._loop

    # --- what the library asks for ------------------------------------------------------------

    def _wanted(self, what: int, fd: int, _multi: object, _assigned: object) -> None:
        """Wait for a socket, or no longer."""
        if what in _EVENTS:
            events = self._events[fd] = _EVENTS[what]
            try:
                self._poll.modify(fd, events)
            except FileNotFoundError:  # new, or an earlier one of this number was closed
                self._poll.register(fd, events)
        else:
            self._events.pop(fd, None)

    def _due(self, timeout_ms: int) -> None:
        """Call `_expired` after so long, -1 for never."""
        loop = self._bound()
        if timeout_ms == 0:
            self._deadline = 0.0
        else:
            self._deadline = math.inf if timeout_ms < 0 else loop.time() + timeout_ms / 1000
        if self._deadline < self._timer_at:  # one that fires too early sets itself again
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = self._deadline
            if timeout_ms == 0:  # not now: the library calls from within a call
                self._timer = loop.call_soon(self._expired)
            else:
                self._timer = loop.call_at(self._deadline, self._expired)

    # --- what happens -------------------------------------------------------------------------

    def _expired(self) -> None:
        self._timer, self._timer_at = None, math.inf
        loop = self._bound()
        if self._deadline <= loop.time():
            self._act([(pycurl.SOCKET_TIMEOUT, 0)])
        elif self._deadline < math.inf:
            self._timer_at = self._deadline
            self._timer = loop.call_at(self._deadline, self._expired)

    def _ready(self) -> None:
        self._act(self._poll.poll(0))

    def _act(self, happened: list[tuple[int, int]]) -> None:
        """Tell the library, and those who wait for transfers that ended by it."""
        act, events = self._multi.socket_action, self._events
        try:
            for fd, event in happened:
                if fd == pycurl.SOCKET_TIMEOUT:
                    act(fd, 0)
                elif fd in events:
                    act(fd, _ACTIONS.get(event, _BOTH))
                else:
                    self._forget(fd)
        except pycurl.error as error:  # of the set as a whole, which ends no transfer by itself
            for curl in list(self._came):
                self._end(curl, error)
            return
        _, done, failed = self._multi.info_read()
        for curl in done:
            self._end(curl, None)
        for curl, code, said in failed:
            self._end(curl, pycurl.error(code, said))

    def _forget(self, fd: int) -> None:
        """Leave out a socket that nobody waits for: its other end has closed it."""
        try:
            self._poll.unregister(fd)
        except OSError:
            # It was closed here too, and a process that was forked meanwhile holds it open: it
            # has no number any more by which it could be left out, and would wake us without end.
            loop, old = self._bound(), self._poll
            loop.remove_reader(old.fileno())
            old.close()
            self._poll = select.epoll()
            for wanted, events in self._events.items():
                self._poll.register(wanted, events)
            loop.add_reader(self._poll.fileno(), self._ready)

    def _end(self, curl: pycurl.Curl, error: pycurl.error | None) -> None:
        came = self._came.pop(curl)
        self._multi.remove_handle(curl)
        if came.done():  # cancelled, and its task has yet to hear of it
            return
        if error is None:
            came.set_result(curl)
        else:
            came.set_exception(error)


_EVENTS = (
    {
        pycurl.POLL_IN: select.EPOLLIN,
        pycurl.POLL_OUT: select.EPOLLOUT,
        pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
    }
    if hasattr(select, "epoll")
    else {}
)
_ACTIONS = (
    {select.EPOLLIN: pycurl.CSELECT_IN, select.EPOLLOUT: pycurl.CSELECT_OUT}
    if hasattr(select, "epoll")
    else {}
)
_BOTH = pycurl.CSELECT_IN | pycurl.CSELECT_OUT
"""After an error or the other end's leaving the library looks for itself."""
