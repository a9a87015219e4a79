"""The client for asyncio."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import socket
import ssl
import sys
import weakref
from types import TracebackType
from typing import Any, Dict, Iterable, List, Optional, Set, Type, Union

from . import _fork
from ._calls import CLOSED, Acquire, Lease, Outcome, Session
from ._clock import NS_PER_S, now_ns
from ._engine import Engine
from ._lock import Extension, LockBase, was_held, why_gone
from ._protocol import NEVER, LockOptions, lock_options
from ._sync import CLOSE_S, TICK_S, Settings, why_not_connected
from .errors import Denied, NotAcquired, RedlockError, Unavailable

_log = logging.getLogger("redlockd")


class _Connection(asyncio.Protocol):
    """One connection of the event loop."""

    def __init__(self, driver: _Driver, session: Session) -> None:
        self.driver, self.session = driver, session
        self.transport: Optional[asyncio.Transport] = None
        self.dropped = False  # the engine has closed it

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.driver.connections[self.session] = self

    def data_received(self, data: bytes) -> None:
        if not self.dropped:
            self.driver.engine.on_bytes(self.session, data, now_ns())
            self.driver.step_done()

    def connection_lost(self, error: Optional[Exception]) -> None:
        if not self.dropped:
            self.driver.read_rest(self.session)
            why = str(error) if error is not None else "the daemon has closed the connection"
            self.driver.lost(self.session, why)


class _Extended(Extension):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.future: asyncio.Future[None] = loop.create_future()

    def on_end(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class _Driver:
    """Carries out what the engine asks for, in one event loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.process = _fork.process_id()
        self.loop: Optional[asyncio.AbstractEventLoop] = None  # of the first use
        names = [address.text for address in settings.addresses]
        self.engine = Engine(names, settings.label, settings.timeout_ns, self)
        self.connections: Dict[Session, _Connection] = {}
        self._sockets: Dict[Session, socket.socket] = {}
        self._opening: Dict[Session, asyncio.Task[None]] = {}
        self._dirty: Set[Session] = set()
        self._timer: Optional[asyncio.TimerHandle] = None
        self._wakes_at_ns = NEVER
        self._idle: Optional[asyncio.Future[None]] = None  # close() waits for it
        _fork.watch(self)

    def use(self) -> asyncio.AbstractEventLoop:
        """Before each request."""
        loop = asyncio.get_running_loop()
        if self.process != _fork.process_id():
            raise Unavailable("the process has forked: make a new client in the child")
        if self.loop is not loop:
            if self.loop is not None:
                raise RuntimeError("the client belongs to another event loop: make one for each")
            self.loop = loop
        return loop

    def step_done(self) -> None:
        """After each use of the engine."""
        engine = self.engine
        next_ns = engine.next_ns()
        if next_ns < self._wakes_at_ns:
            self._set_timer(next_ns)
        if self._idle is not None and engine.is_idle() and not self._idle.done():
            self._idle.set_result(None)

    def _set_timer(self, next_ns: int) -> None:
        assert self.loop is not None
        if self._timer is not None:
            self._timer.cancel()
        now = now_ns()
        delay_ns = min(max(0, next_ns - now), int(TICK_S * NS_PER_S))
        self._wakes_at_ns = now + delay_ns
        self._timer = self.loop.call_later(delay_ns / NS_PER_S, self._on_timer)

    def _on_timer(self) -> None:
        self._timer, self._wakes_at_ns = None, NEVER
        self.engine.on_time(now_ns())
        self.step_done()

    # --- Io of the engine ---

    def connect(self, session: Session) -> None:
        assert self.loop is not None
        opening = self.loop.create_task(self._open(session))
        if not opening.done():  # as it can be with asyncio.eager_task_factory
            self._opening[session] = opening
            opening.add_done_callback(functools.partial(self._on_opened, session))

    def flush(self, session: Session) -> None:
        # Requests of one pass of the event loop go out with one write. A single one goes out at
        # once, which saves a pass.
        if session.live == 1 and session not in self._dirty:
            self._flush(session)
        elif session not in self._dirty:
            assert self.loop is not None
            self._dirty.add(session)
            self.loop.call_soon(self._flush, session)

    def _flush(self, session: Session) -> None:
        self._dirty.discard(session)
        connection = self.connections.get(session)
        if connection is not None and connection.transport is not None:
            connection.transport.write(session.take_output())

    def close(self, session: Session) -> None:
        opening = self._opening.pop(session, None)
        if opening is not None:
            opening.cancel()
        connection = self.connections.pop(session, None)
        self._sockets.pop(session, None)
        if connection is not None:
            connection.dropped = True
            if connection.transport is not None:
                connection.transport.abort()

    def warn(self, text: str) -> None:
        _log.warning("%s", text)

    # --- connections ---

    def _on_opened(self, session: Session, opening: asyncio.Task[None]) -> None:
        # A program that ends can cancel all tasks of the loop, and asyncio.run() does.
        if opening.cancelled() and self._opening.pop(session, None) is not None:
            self.lost(session, "the task that connects was cancelled")

    async def _open(self, session: Session) -> None:
        try:
            secret = self.settings.read_secret()
            await self._connect(session)
        except Denied as error:
            self._opening.pop(session, None)
            if session.state != CLOSED:
                self.engine.on_denied(session, error, now_ns())
                self.step_done()
            return
        except (OSError, ValueError) as error:  # ValueError: of a host name
            self._opening.pop(session, None)
            if session.state != CLOSED:
                self.lost(session, why_not_connected(error))
            return
        self._opening.pop(session, None)
        if session.state != CLOSED:
            self.engine.on_connected(session, secret, now_ns())
            self.step_done()

    async def _connect(self, session: Session) -> None:
        assert self.loop is not None
        address = self.settings.addresses[session.address]
        if address.kind == "unix":
            conn = await self._connect_socket(session, socket.AF_UNIX, address.host)
        else:
            conn = await self._connect_host(session, address.host, address.port)
        is_tls = address.kind == "tls"
        connection = _Connection(self, session)
        try:
            # The other of create_connection() and create_unix_connection() refuses the socket.
            await self.loop.create_connection(
                lambda: connection,
                sock=conn,
                ssl=self.settings.tls if is_tls else None,
                server_hostname=address.host if is_tls else None,
            )
        except BaseException:
            connection.dropped = True
            self._sockets.pop(session, None)
            conn.close()
            raise

    async def _connect_host(self, session: Session, host: str, port: int) -> socket.socket:
        assert self.loop is not None
        found = await self.loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        error: OSError = OSError("the name has no address")
        for family, _, _, _, where in found:
            try:
                return await self._connect_socket(session, family, where)
            except OSError as failure:
                error = failure
        raise error

    async def _connect_socket(self, session: Session, family: int, where: Any) -> socket.socket:
        assert self.loop is not None
        conn = socket.socket(family, socket.SOCK_STREAM)
        self._sockets[session] = conn  # a forked child closes it
        try:
            conn.setblocking(False)
            await self.loop.sock_connect(conn, where)
        except BaseException:
            self._sockets.pop(session, None)
            conn.close()
            raise
        return conn

    def read_rest(self, session: Session) -> None:
        """asyncio ends a connection at the first write that fails. The daemon can have said before
        why it closed the connection."""
        conn = self._sockets.get(session)
        if conn is None or self.settings.addresses[session.address].kind == "tls":
            return
        try:
            data = conn.recv(65536)
        except OSError:
            return
        if data:
            self.engine.on_bytes(session, data, now_ns())

    def lost(self, session: Session, why: str) -> None:
        self.connections.pop(session, None)
        self._sockets.pop(session, None)
        self.engine.on_closed(session, why, now_ns())
        self.step_done()

    # --- the end ---

    async def shut_down(self) -> None:
        """Ends all connections cleanly, and waits a moment for that."""
        if self.process != _fork.process_id() or self.engine.closed:
            return
        self.start_close()
        if self.loop is not None and not self.engine.is_idle():
            self._idle = self.loop.create_future()
            await asyncio.wait([self._idle], timeout=CLOSE_S)
        self.engine.end(now_ns())
        for session in list(self.engine.sessions):  # their daemon does not answer
            self.close(session)
        if self._timer is not None:
            self._timer.cancel()

    def start_close(self) -> None:
        if not self.engine.closed:
            self.engine.close(now_ns())
            self.step_done()

    def request_close(self) -> None:
        """The client is garbage. The collector may run in any thread."""
        if self.loop is not None and self.process == _fork.process_id():
            try:
                self.loop.call_soon_threadsafe(self.start_close)
            except RuntimeError:  # the loop is closed
                pass

    def after_fork(self) -> None:
        """The child closes its copies of the sockets. That does not end the connections, but else
        they would not end together with the parent."""
        for connection in self.connections.values():
            connection.dropped = True
        for conn in self._sockets.values():
            conn.close()
        self.engine.disown()


class AsyncRedlock:
    """A client of redlockd for one event loop. See Redlock, which has the same arguments.

    A forked child must make a client of its own.
    """

    def __init__(
        self,
        addresses: Union[str, Iterable[str]] = "tcp://127.0.0.1:7335",
        *,
        secret: Optional[str] = None,
        secret_file: Optional[Union[str, os.PathLike[str]]] = None,
        name: Optional[str] = None,
        timeout: float = 5.0,
        ca_file: Optional[Union[str, os.PathLike[str]]] = None,
        ssl_context: Optional[ssl.SSLContext] = None,
    ) -> None:
        settings = Settings(addresses, secret, secret_file, name, timeout, ca_file, ssl_context)
        self._driver = _Driver(settings)
        finalizer = weakref.finalize(self, _Driver.request_close, self._driver)
        finalizer.atexit = False

    def lock(
        self,
        resources: Union[str, Iterable[str]],
        *,
        ttl: float,
        wait: Optional[float] = 0.0,
        fence: bool = False,
        hold: bool = False,
        linger: bool = False,
        auto_extend: bool = False,
        slots: Optional[int] = None,
    ) -> AsyncLock:
        """Makes a lock that is not acquired yet: use it in an async with statement, or await
        acquire(). See Redlock.lock()."""
        options = lock_options(resources, ttl, wait, fence, hold, linger, auto_extend, slots)
        return AsyncLock(self, options)

    async def try_lock(
        self,
        resources: Union[str, Iterable[str]],
        *,
        ttl: float,
        fence: bool = False,
        hold: bool = False,
        linger: bool = False,
        auto_extend: bool = False,
        slots: Optional[int] = None,
    ) -> Optional[AsyncLock]:
        """An acquired lock, without a wait; None if another client holds it."""
        options = lock_options(resources, ttl, 0.0, fence, hold, linger, auto_extend, slots)
        lock = AsyncLock(self, options)
        try:
            await lock.acquire()
        except NotAcquired:
            return None
        lock._tried = True
        return lock

    async def close(self) -> None:
        """Ends the connection. HOLDs are released; other locks stay until their TTL ends, but this
        client counts all of them as lost. Requests under way raise Unavailable."""
        await self._driver.shut_down()

    async def __aenter__(self) -> AsyncRedlock:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncLock(LockBase):
    """A lock of AsyncRedlock.lock().

    If the lock is lost in an async with statement, the task that has entered the statement is
    cancelled, and the statement raises Lost. After acquire() no task is cancelled: use check() and
    lost.
    """

    def __init__(self, client: AsyncRedlock, options: LockOptions) -> None:
        super().__init__(options)
        self._client = client  # keeps the connection alive
        self._driver = client._driver
        self._event: Optional[asyncio.Event] = None
        self._task: Optional[asyncio.Task[object]] = None  # to cancel after a loss
        self._cancelling = 0  # cancellations of the task before the statement
        self._cancelled = False  # by this lock

    async def acquire(self) -> AsyncLock:
        """Acquires the lock and returns it. Raises NotAcquired, NoQuorum, Denied or Unavailable.

        If the task is cancelled meanwhile, the lock is released if it was or will be granted.
        """
        driver = self._driver
        future: asyncio.Future[List[Lease]] = driver.use().create_future()
        self._begin_acquire()
        self._event = None

        def done(leases: Optional[List[Lease]], error: Optional[RedlockError]) -> None:
            if future.done():
                return  # the loop has ended with the request under way
            if leases is not None:
                self._set_leases(leases)
                future.set_result(leases)
            elif error is not None:
                future.set_exception(error)

        call = Acquire(self._options, done, self._on_lost)
        try:
            call.start(driver.engine, now_ns())
            driver.step_done()
            await future
            engine = driver.engine
            late = engine.closed_error() if engine.closed else self._late_error()
            if late is not None:
                raise late
        except BaseException:  # such as GeneratorExit: the lock may have been granted
            self._leases = []
            call.cancel(driver.engine, now_ns())
            driver.step_done()
            raise
        finally:
            self._busy = False
        return self

    async def unlock(self) -> bool:
        """Releases the lock. True: it was held until now. False: it had ended before.

        Raises Unavailable, NoQuorum or Denied if the release is not confirmed; the lock then ends
        with its TTL at the latest. The release goes on if the task is cancelled. A lock that is
        lost is released in the background.
        """
        if self._process != _fork.process_id():
            self._take_leases()  # they belong to the parent
        if not self._leases:
            return False
        driver = self._driver
        future: asyncio.Future[List[Outcome]] = driver.use().create_future()
        leases = self._take_leases()

        def done(outcomes: List[Outcome]) -> None:
            if not future.done():
                future.set_result(outcomes)

        driver.engine.release(leases, done, now_ns())
        driver.step_done()
        return was_held(await future)

    async def extend(self, ttl: Optional[float] = None) -> None:
        """Extends the lock, to ttl seconds from now; by default, to its TTL. Never shortens it.

        Raises Lost if the lock is lost. After Unavailable, NoQuorum and NotAcquired the earlier
        deadline stands.
        """
        self.check()
        driver = self._driver
        extended = _Extended(driver.use())
        extended.start(driver.engine, self._leases, self._ttl_ms(ttl))
        driver.step_done()
        await extended.future
        self.check()
        if extended.error is not None:
            raise extended.take_error()

    @property
    def lost(self) -> asyncio.Event:
        """Is set when the lock is lost."""
        if self._event is None:
            self._event = asyncio.Event()
            if self._why_lost() is not None and self._leases:
                self._event.set()
        return self._event

    async def __aenter__(self) -> AsyncLock:
        if not self._take_tried():
            await self.acquire()
        self._task = asyncio.current_task()
        self._cancelled = False
        if sys.version_info >= (3, 11):
            assert self._task is not None
            self._cancelling = self._task.cancelling()
        if self._reason is not None:
            self._cancel_task()
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        """Releases the lock. Raises Lost if the lock was lost, unless another error is raised."""
        reason = self._why_lost() if self._leases else None
        task, self._task = self._task, None
        was_cancelled = isinstance(error, asyncio.CancelledError)
        ended = error is None or was_cancelled  # not by an error of the work
        only_ours = self._cancelled
        if self._cancelled and task is not None:
            if sys.version_info >= (3, 11):
                only_ours = task.uncancel() <= self._cancelling
            if not was_cancelled:
                # The work ended in the moment of the loss. The unlock must not be cancelled.
                try:
                    await asyncio.sleep(0)
                except asyncio.CancelledError:
                    was_cancelled = True
                if sys.version_info >= (3, 11):  # another cancellation may have come meanwhile
                    only_ours = task.cancelling() <= self._cancelling
        leases, deadline_ns = self._leases, self._deadline_ns()
        try:
            if not await self.unlock() and reason is None and now_ns() < deadline_ns:
                reason = why_gone(leases)  # it had ended before its time
        except RedlockError as failure:
            _log.info("unlock: %s", failure)  # the lock ends with its TTL
        if was_cancelled and not only_ours:
            if isinstance(error, asyncio.CancelledError):
                return  # it goes on, with its message
            raise asyncio.CancelledError
        if reason is not None and ended:
            raise self._lost_error(reason) from error

    # --- for LockBase and the engine ---

    def _on_lost(self, lease: Lease) -> None:
        if not self._note_loss(lease):
            return
        if self._event is not None:
            self._event.set()
        self._cancel_task()

    def _cancel_task(self) -> None:
        # The task itself may have found out, with check(), which raises Lost.
        if self._task is not None and not self._cancelled:
            self._cancelled = True
            self._task.cancel()

    def _expire(self) -> None:
        for lease in self._leases:
            self._driver.engine.expire(lease, now_ns())
        self._driver.step_done()
