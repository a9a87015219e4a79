"""The client for threads."""

from __future__ import annotations

import collections
import contextlib
import functools
import logging
import os
import selectors
import socket
import ssl
import sys
import threading
import weakref
from types import TracebackType
from typing import Any, Callable, Deque, Dict, Iterable, List, Optional, Set, Tuple, Type, Union

from . import _fork
from ._address import Address, parse_addresses
from ._calls import CLOSED, Acquire, Failed, Lease, Outcome, Session
from ._clock import NS_PER_S, now_ns
from ._engine import Engine
from ._lock import Extension, LockBase, was_held, why_gone
from ._protocol import NEVER, LockOptions, check_label, check_secret, lock_options, to_ns
from .errors import Denied, NotAcquired, RedlockError, Unavailable

_log = logging.getLogger("redlockd")

# A suspend of the machine stops the timers of Python, but not the deadlines. So look at the clock
# this often while there is a deadline.
TICK_S = 1.0

CLOSE_S = 2.0

# The errors of OpenSSL (X509_V_ERR_...) for a certificate whose issuer is not known.
UNKNOWN_ISSUER = (2, 18, 19, 20, 21)


def why_not_connected(error: Exception) -> str:
    """The text of the error, and what to set."""
    advice = ""
    if isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in UNKNOWN_ISSUER:
        advice = "; set ca_file to the CA of the daemon"
    return (str(error) or type(error).__name__) + advice


class Settings:
    """How to reach the daemons, checked."""

    def __init__(
        self,
        addresses: Union[str, Iterable[str]],
        secret: Optional[str],
        secret_file: Optional[Union[str, os.PathLike[str]]],
        name: Optional[str],
        timeout: float,
        ca_file: Optional[Union[str, os.PathLike[str]]],
        ssl_context: Optional[ssl.SSLContext],
    ) -> None:
        if secret is not None and secret_file is not None:
            raise ValueError("secret and secret_file exclude each other")
        if ca_file is not None and ssl_context is not None:
            raise ValueError("ca_file and ssl_context exclude each other")
        self.addresses = parse_addresses(addresses)
        self.secret = None if secret is None else check_secret(secret)
        self.secret_file = None if secret_file is None else os.fspath(secret_file)
        self.label = None if name is None else check_label(name)
        self.timeout_ns = to_ns(timeout, "timeout")
        if self.timeout_ns == 0:
            raise ValueError("timeout must be above 0")
        self.tls = ssl_context
        if self.tls is None and any(address.kind == "tls" for address in self.addresses):
            try:
                self.tls = ssl.create_default_context(cafile=ca_file)
            except OSError as error:
                raise ValueError(f"ca_file {ca_file}: {error.strerror or error}") from None

    def read_secret(self) -> Optional[bytes]:
        """The secret for a new connection. The file is read each time, as its secret may change.
        Raises Denied."""
        if self.secret_file is None:
            return self.secret
        try:
            with open(self.secret_file, encoding="utf-8") as file:
                return check_secret(file.readline().rstrip("\r\n"))
        except (OSError, ValueError) as error:
            raise Denied(f"the secret file cannot be used: {error}") from None


class _Result(Failed):
    """What a thread waits for. A plain lock is the fastest way to wake another thread."""

    def __init__(self) -> None:
        self.error: Optional[RedlockError] = None
        self.given_up = False  # the client has failed before there was a result
        self._lock = threading.Lock()
        self._lock.acquire()

    def finish(self) -> None:
        if not self.given_up:
            self._lock.release()

    def give_up(self) -> None:
        if self._lock.locked():  # not finished
            self.given_up = True
            self._lock.release()

    def wait(self) -> None:
        self._lock.acquire()


class _Acquired(_Result):
    def done(self, leases: Optional[List[Lease]], error: Optional[RedlockError]) -> None:
        self.error = error
        self.finish()


class _Released(_Result):
    def __init__(self) -> None:
        super().__init__()
        self.outcomes: List[Outcome] = []

    def done(self, outcomes: List[Outcome]) -> None:
        self.outcomes = outcomes
        self.finish()


class _Extended(_Result, Extension):
    def __init__(self) -> None:
        _Result.__init__(self)
        Extension.__init__(self)

    def on_end(self) -> None:
        self.finish()


class _Driver:
    """Carries out what the engine asks for. One thread uses the engine and the sockets. The other
    threads post operations that this thread runs.

    In the main thread, a signal handler could raise an exception in the middle of the engine, or use
    this client again. In any thread, so could a finalizer that the garbage collector runs: it only
    posts its operations.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._reset()
        _fork.watch(self)

    def use(self) -> None:
        """Before each request: notices a fork that code in C has made without telling Python."""
        if self.process != _fork.process_id():
            self.after_fork()

    def _reset(self) -> None:
        self.process = _fork.process_id()
        self.guard = threading.RLock()  # for what takes threads of the caller only a moment
        self._claim = threading.Lock()  # the thread that takes it is the one that uses the engine
        names = [address.text for address in self.settings.addresses]
        self.engine = Engine(names, self.settings.label, self.settings.timeout_ns, self)
        self._sockets: Dict[Session, socket.socket] = {}
        self._opening: Dict[Session, socket.socket] = {}  # a forked child closes these as well
        self._output: Dict[Session, bytes] = {}  # what the kernel has not taken yet
        self._dirty: List[Session] = []
        self._changed: List[Session] = []  # sessions to register with the selector
        self._thread: Optional[threading.Thread] = None
        self._selector: Optional[selectors.BaseSelector] = None
        self._wake: Optional[Tuple[socket.socket, socket.socket]] = None
        self._inbox: Deque[Callable[[], None]] = collections.deque()
        self._results: Set[_Result] = set()  # that callers wait for
        # Those whose caller has not taken the locks. If the client closes before, the thread does.
        self.acquiring: Dict[Acquire, bool] = {}
        self._asleep = False  # the thread does not look at the inbox until it is woken up
        self._closing = False  # the thread closes the engine, if there is a thread
        self._ended = False  # there is no thread any more, and the engine is closed

    # --- calls by other threads ---

    def post(self, operation: Callable[[], None]) -> None:
        """Lets the thread run the operation, soon. Raises Unavailable if there is no thread."""
        if self._thread is None:
            self._start_thread()
        self._inbox.append(operation)
        if self._ended:
            self._run_inbox()  # a closed engine only fails what is left
        elif self._asleep:
            self._wake_up()

    def call(self, operation: Callable[[], None], result: _Result) -> None:
        """Lets the thread run the operation, and waits for the result."""
        self._results.add(result)
        try:
            self.post(operation)
            if self._thread is threading.current_thread():
                raise Unavailable("the result is unknown: the garbage collector cannot wait for it")
            if sys.is_finalizing():
                raise Unavailable("the result is unknown: the interpreter is shutting down")
            result.wait()
        finally:
            self._results.discard(result)
        if result.given_up:
            raise self.engine.closed_error()

    def _start_thread(self) -> None:
        """Raises Unavailable if the system does not let it. The next use then tries again.

        Nothing of it needs to be undone: if two run at once, or a signal handler raises in the
        middle, a thread that is not needed ends, and one that is not expected works all the same.
        """
        if self._closing:
            raise Unavailable("the client is closed")
        if sys.is_finalizing():
            raise Unavailable("the client cannot start: the interpreter is shutting down")
        started = _Result()
        thread = threading.Thread(target=self._run, args=(started,), name="redlockd", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # too many threads
            raise Unavailable(f"the client cannot start: {error}") from error
        started.wait()
        if started.error is not None:
            raise started.take_error()

    def _wake_up(self) -> None:
        wake = self._wake
        if wake is not None:
            with contextlib.suppress(OSError):  # it has enough to read, or has ended
                wake[1].send(b"w")

    # --- the thread ---

    def _run(self, started: _Result) -> None:
        with contextlib.ExitStack() as files:
            try:
                wake = socket.socketpair()
                for end in wake:
                    files.enter_context(end).setblocking(False)
                selector = files.enter_context(selectors.DefaultSelector())
            except Exception as error:  # too many files
                started.error = Unavailable(f"the client cannot start: {error}")
                started.finish()
                return
            is_first = self._claim.acquire(blocking=False)
            if is_first:
                self._selector, self._wake = selector, wake
                self._thread = threading.current_thread()
            started.finish()
            if not is_first:
                return
            try:
                self._loop(selector, wake[0])
            except BaseException as error:
                # A bug. No caller must wait for this thread, or rely on its timers.
                self.engine.close(now_ns(), error)
                for session in list(self._sockets):
                    self.close(session)
                raise
            finally:
                self._ended = True
                try:
                    self._run_inbox()
                finally:
                    if self.engine.failure is not None:
                        for result in list(self._results):
                            result.give_up()  # its operation is the one that has failed

    def _loop(self, selector: selectors.BaseSelector, wake: socket.socket) -> None:
        selector.register(wake, selectors.EVENT_READ)
        ready: List[Tuple[selectors.SelectorKey, int]] = []
        while True:
            for key, events in ready:
                self._on_ready(key, events)
            closing = self._closing  # after this, what was posted before is still done
            self._run_inbox()
            if closing and not self.engine.closed:
                calls = [call for call in list(self.acquiring) if self.acquiring.pop(call, False)]
                self.engine.close(now_ns())
                for call in calls:
                    self.engine.release(call.leases, None, now_ns())
            self._watch(selector)
            self.engine.on_time(now_ns())
            while self._dirty:
                dirty, self._dirty = self._dirty, []
                for session in dirty:
                    self._send(session)
            if self.engine.closed and self.engine.is_idle():
                self.engine.end(now_ns())
                return
            self._asleep = True
            ready = selector.select(self._delay_s())
            self._asleep = False

    def _run_inbox(self) -> None:
        while self._inbox:
            try:
                operation = self._inbox.popleft()
            except IndexError:
                return  # another thread has run it, after the end
            operation()
            del operation  # it can refer to the client

    def _delay_s(self) -> Optional[float]:
        closes = self._closing and not self.engine.closed
        if self._inbox or self._changed or closes:
            return 0.0
        next_ns = self.engine.next_ns()
        if next_ns == NEVER:
            return None
        return min(max(0, next_ns - now_ns()) / NS_PER_S, TICK_S)

    def _watch(self, selector: selectors.BaseSelector) -> None:
        """Registers new connections, and those whose output is blocked."""
        changed, self._changed = self._changed, []
        for session in changed:
            conn = self._sockets.get(session)
            if conn is None:
                continue
            events = selectors.EVENT_READ
            if session in self._output:
                events |= selectors.EVENT_WRITE
            try:
                selector.modify(conn, events, session)
            except KeyError:
                selector.register(conn, events, session)
                if isinstance(conn, ssl.SSLSocket):
                    self._receive(session, conn)  # OpenSSL may have read something already

    def _on_ready(self, key: selectors.SelectorKey, events: int) -> None:
        session = key.data
        if session is None:
            assert self._wake is not None
            self._wake[0].recv(4096)
            return
        conn = self._sockets.get(session)
        if conn is not key.fileobj or conn is None:
            return  # closed meanwhile
        if events & selectors.EVENT_READ:
            self._receive(session, conn)
        if events & selectors.EVENT_WRITE:
            self._send(session)
            self._changed.append(session)

    # --- Io of the engine ---

    def connect(self, session: Session) -> None:
        # A thread of its own, because the lookup of a name can block for a long time.
        opener = threading.Thread(target=self._open, args=(session,), daemon=True)
        try:
            opener.start()
        except RuntimeError as error:  # too many threads
            why = str(error)
            self.post(lambda: self.engine.on_closed(session, why, now_ns()))

    def flush(self, session: Session) -> None:
        self._dirty.append(session)

    def close(self, session: Session) -> None:
        conn = self._sockets.pop(session, None)
        self._output.pop(session, None)
        if conn is not None:
            if self._selector is not None:
                try:
                    self._selector.unregister(conn)
                except KeyError:
                    pass  # not registered yet
            conn.close()

    def warn(self, text: str) -> None:
        _log.warning("%s", text)

    # --- connections ---

    def _open(self, session: Session) -> None:
        address = self.settings.addresses[session.address]
        conn: Optional[socket.socket] = None
        secret: Optional[bytes] = None
        why = ""
        denied: Optional[Denied] = None
        try:
            secret = self.settings.read_secret()
            conn = self._connect(session, address)
            conn.setblocking(False)
        except Denied as error:
            denied = error
        except (OSError, ValueError) as error:  # ValueError: of a host name
            why = why_not_connected(error)
        self.post(lambda: self._opened(session, conn, secret, denied, why))

    def _opened(
        self,
        session: Session,
        conn: Optional[socket.socket],
        secret: Optional[bytes],
        denied: Optional[Denied],
        why: str,
    ) -> None:
        if session.state == CLOSED:
            if conn is not None:
                conn.close()
        elif denied is not None:
            self.engine.on_denied(session, denied, now_ns())
        elif conn is None:
            self.engine.on_closed(session, why, now_ns())
        else:
            self._sockets[session] = conn
            self._changed.append(session)
            self.engine.on_connected(session, secret, now_ns())
        self._opening.pop(session, None)

    def _connect(self, session: Session, address: Address) -> socket.socket:
        if address.kind == "unix":
            return self._connect_socket(session, address, socket.AF_UNIX, address.host)
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        error: OSError = OSError("the name has no address")
        for family, _, _, _, where in found:
            try:
                conn = self._connect_socket(session, address, family, where)
                break
            except OSError as failure:
                error = failure
        else:
            raise error
        if address.kind != "tls":
            return conn
        assert self.settings.tls is not None
        try:
            with _fork.sockets:
                self._opening[session] = secure = self.settings.tls.wrap_socket(
                    conn, server_hostname=address.host, do_handshake_on_connect=False
                )
        except BaseException:
            conn.close()
            raise
        try:
            secure.do_handshake()
        except BaseException:
            secure.close()
            raise
        return secure

    def _connect_socket(
        self, session: Session, address: Address, family: int, where: Any
    ) -> socket.socket:
        with _fork.sockets:
            self._opening[session] = conn = socket.socket(family, socket.SOCK_STREAM)
        try:
            conn.settimeout(self.settings.timeout_ns / NS_PER_S)
            conn.connect(where)
            if address.kind != "unix":
                conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except BaseException:
            conn.close()
            raise
        return conn

    def _send(self, session: Session) -> None:
        conn = self._sockets.get(session)
        if conn is None:
            return
        blocked = self._output.pop(session, b"")
        output = blocked + session.take_output()
        try:
            while output:
                output = output[conn.send(output) :]
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            self._output[session] = output
            if not blocked:
                self._changed.append(session)  # watch it for room to write
        except OSError:
            pass  # the thread that reads finds out, after it has read what is still there

    def _lost(self, session: Session, error: Optional[OSError]) -> None:
        self.close(session)
        why = str(error) if error is not None else "the daemon has closed the connection"
        self.engine.on_closed(session, why, now_ns())

    def _receive(self, session: Session, conn: socket.socket) -> None:
        try:
            while self._sockets.get(session) is conn:
                data = conn.recv(65536)
                if not data:
                    self._lost(session, None)
                    return
                self.engine.on_bytes(session, data, now_ns())
                if not isinstance(conn, ssl.SSLSocket):
                    return  # the selector tells if there is more; OpenSSL may have it already
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except OSError as error:
            self._lost(session, error)

    # --- the end ---

    def request_close(self) -> None:
        """Ends all connections cleanly, soon."""
        self._closing = True
        if self._asleep:
            self._wake_up()

    def shut_down(self) -> None:
        """The same, and waits a moment for that."""
        self.request_close()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(CLOSE_S)

    def after_fork(self) -> None:
        """The child closes its copies of the sockets. That does not end the connections, but else
        they would not end together with the parent."""
        engine, selector, wake = self.engine, self._selector, self._wake
        sockets = [*self._sockets.values(), *self._opening.values()]
        self._reset()
        engine.disown()
        for conn in sockets:
            conn.close()
        if selector is not None:
            selector.close()
        for end in wake or ():
            end.close()


class Redlock:
    """A client of redlockd. Threads may share it; it has one connection for all of them.

    addresses: tcp://HOST:PORT, tls://HOST:PORT or unix:/PATH; or several, in order of preference:
        daemons on the same masters. If one fails, the client uses another one.
    secret, or secret_file: authenticates the client, if the daemon has users.
    name: the name of the connection in the listings of the daemon.
    timeout: seconds for a reply, beyond the wait for a lock; also for a connection.
    ca_file: for tls://, a file with the CA of the daemon; by default, the CAs of the system.
    ssl_context: replaces the default context, for example with one that has a certificate.

    The client connects with the first request. Arguments that are wrong raise ValueError.

    close() ends the client. A forked child may use its copy of the client; it then has a connection
    of its own, and none of the locks of the parent.
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
        # At the end of the process, the kernel closes the connection.
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
    ) -> Lock:
        """Makes a lock that is not acquired yet: use it in a with statement, or call acquire().

        resources: a name, or several names that are acquired together, all or none. A name that is
            given twice is locked once.
        ttl: seconds after which the lock ends, unless it is extended.
        wait: for how many seconds to wait in line for the lock; None: without a limit.
        fence: also request a fencing token.
        auto_extend: extend the lock for as long as it is held. The daemons limit this, by default
            to 1000 extensions and an hour.
        hold: the daemon extends the lock as long as this connection lives, and says so when it
            finds it lost. The client extends it as well, because silence proves nothing. The
            lock is lost when the connection is; it is free at once when this process ends. (Over
            TLS only after close(); else after its TTL.)
        linger: with hold: the lock outlives a killed process by up to the TTL, for locks that also
            protect the work of other processes.
        slots: acquire one of so many slots, so that up to so many clients hold the name.
        """
        options = lock_options(resources, ttl, wait, fence, hold, linger, auto_extend, slots)
        return Lock(self, options)

    def try_lock(
        self,
        resources: Union[str, Iterable[str]],
        *,
        ttl: float,
        fence: bool = False,
        hold: bool = False,
        linger: bool = False,
        auto_extend: bool = False,
        slots: Optional[int] = None,
    ) -> Optional[Lock]:
        """An acquired lock, without a wait; None if another client holds it. See lock()."""
        options = lock_options(resources, ttl, 0.0, fence, hold, linger, auto_extend, slots)
        lock = Lock(self, options)
        try:
            lock.acquire()
        except NotAcquired:
            return None
        lock._tried = True
        return lock

    def close(self) -> None:
        """Ends the connection. HOLDs are released; other locks stay until their TTL ends, but this
        client counts all of them as lost. Requests under way raise Unavailable."""
        self._driver.shut_down()

    def __enter__(self) -> Redlock:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Lock(LockBase):
    """A lock of Redlock.lock(). Any thread may use it."""

    def __init__(self, client: Redlock, options: LockOptions) -> None:
        super().__init__(options)
        self._client = client  # keeps the connection alive
        self._driver = client._driver
        self._call: Optional[Acquire] = None
        self._acquired: Optional[_Acquired] = None
        self._events: Dict[str, threading.Event] = {}  # "lost", once it was asked for

    def acquire(self) -> Lock:
        """Acquires the lock and returns it. Raises NotAcquired, NoQuorum, Denied or Unavailable."""
        driver = self._driver
        driver.use()
        engine = driver.engine
        with driver.guard:
            self._begin_acquire()
        result = _Acquired()
        call = Acquire(self._options, result.done, self._on_lost)
        acquiring = driver.acquiring
        try:
            try:
                acquiring[call] = True
                self._events.clear()
                self._call, self._acquired = call, result
                driver.call(lambda: call.start(engine, now_ns()), result)
                if result.error is None:
                    self._set_leases(call.leases)
                    result.error = self._late_error()
                if not acquiring.pop(call, False):
                    result.error = engine.closed_error()
                if result.error is None:
                    return self
            finally:
                self._call = self._acquired = None
                self._busy = False
        except BaseException:  # such as KeyboardInterrupt: the lock may have been granted
            self._leases = []
            try:
                driver.post(lambda: call.cancel(engine, now_ns()))
            finally:
                acquiring.pop(call, False)
            raise
        if self._leases:
            self._discard(self._take_leases())  # granted too late
        raise result.take_error()

    def cancel(self) -> None:
        """Ends an acquire() that waits in another thread: it raises NotAcquired."""
        call, acquired = self._call, self._acquired
        if call is None or acquired is None:
            return
        driver, cancelled = self._driver, _Result()
        operation = functools.partial(_cancel, driver.engine, call, acquired, cancelled)
        driver.call(operation, cancelled)

    def unlock(self) -> bool:
        """Releases the lock. True: it was held until now. False: it had ended before.

        Raises Unavailable, NoQuorum or Denied if the release is not confirmed; the lock then ends
        with its TTL at the latest. A lock that is lost is released in the background.
        """
        leases = self._leases
        try:
            return self._release(leases)
        except BaseException:  # such as KeyboardInterrupt
            self._discard(leases)
            raise

    def _release(self, leases: List[Lease]) -> bool:
        self._take_leases()
        if not leases or self._process != _fork.process_id():
            return False  # after a fork they belong to the parent
        engine, released = self._driver.engine, _Released()
        self._driver.call(lambda: engine.release(leases, released.done, now_ns()), released)
        return was_held(released.outcomes)

    def _discard(self, leases: List[Lease]) -> None:
        """Releases what an interrupted function may have left. Does nothing if it has left nothing."""
        if leases and self._process == _fork.process_id():
            engine = self._driver.engine
            self._driver.post(lambda: engine.release(leases, None, now_ns()))

    def extend(self, ttl: Optional[float] = None) -> None:
        """Extends the lock, to ttl seconds from now; by default, to its TTL. Never shortens it.

        Raises Lost if the lock is lost. After Unavailable, NoQuorum and NotAcquired the earlier
        deadline stands.
        """
        driver = self._driver
        self.check()
        leases = self._leases
        extended = _Extended()
        ttl_ms = self._ttl_ms(ttl)
        if not leases:
            raise self._lost_error("released")  # by another thread
        driver.call(lambda: extended.start(driver.engine, leases, ttl_ms), extended)
        self.check()
        if extended.error is not None:
            raise extended.take_error()

    @property
    def lost(self) -> threading.Event:
        """Is set when the lock is lost."""
        if self._process != _fork.process_id():
            lost = threading.Event()  # the one of the parent may be in use by another thread
            lost.set()
            return lost
        event = self._events.setdefault("lost", threading.Event())  # the same for all threads
        if self._reason is not None:
            event.set()
        return event

    def __enter__(self) -> Lock:
        return self if self._take_tried() else self.acquire()

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        """Releases the lock. Raises Lost if the work has ended after the lock, without an error."""
        leases = self._leases
        try:
            deadline_ns = self._deadline_ns()  # a loss in this moment makes it 0
            reason = self._why_lost() if leases else None
            if not self._release(leases) and reason is None and now_ns() < deadline_ns:
                reason = why_gone(leases)  # it had ended before its time
        except RedlockError as failure:
            _log.info("unlock: %s", failure)  # the lock ends with its TTL
        except BaseException:  # such as KeyboardInterrupt
            self._discard(leases)
            raise
        if reason is not None and error is None:
            raise self._lost_error(reason)

    # --- for LockBase and the engine ---

    def _on_lost(self, lease: Lease) -> None:
        """Called by the engine."""
        if self._note_loss(lease):
            self._tell()

    def _tell(self) -> None:
        for event in self._events.copy().values():
            event.set()

    def _expire(self) -> None:
        # The thread may be late, and must not extend it any more.
        for lease in self._leases:
            if self._reason is None and now_ns() >= lease.give_up_ns():
                reason, text = lease.why_expired()
                self._reason, self._text = reason, text
                self._tell()
                lose = functools.partial(self._driver.engine.lose, lease, reason, now_ns())
                self._driver.post(functools.partial(lose, text=text))


def _cancel(engine: Engine, call: Acquire, acquired: _Acquired, cancelled: _Result) -> None:
    if not call.finished:
        call.cancel(engine, now_ns())
        acquired.done(None, NotAcquired("the acquire was cancelled"))
    cancelled.finish()
