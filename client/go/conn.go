package redlockd

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// The daemon allows 1024 pending requests on a connection. The rest is for PING, QUIT, and for
	// the UNLOCKs of HOLDs, which cannot use another connection.
	maxCalls       = 1000
	maxCallsOfHold = 1020
	// A connection with this many abandoned LOCKs takes no new requests, so that they end with it.
	maxAbandoned = 64
	// An abandoned LOCK that waits no longer than this is left to end by itself.
	shortWait = int64(time.Second)
	// A connection is silent after this many ticks without input.
	silentTicks = 5

	tagAuth, tagName, tagPing, tagQuit = "a", "n", "p", "q"
)

var (
	errClosed = errors.New("the client is closed")
	errFull   = errors.New("the connection takes no new requests")
	errEnded  = errors.New("the lock has ended")
)

// call is a request on one connection.
type call struct {
	request *request
	lock    *Lock      // LOCK: is told of the grant; EXTEND: is not sent once this has ended
	reply   chan reply // has room for the reply
	tag     uint64
	sent    int64 // just before the request was sent
	// The caller has gone, and reply is not read. A lock that is granted is released.
	abandoned bool
}

// conn is one connection to a daemon. It carries many requests at once.
//
// One goroutine reads. Another one writes, so that requests of several goroutines become one write,
// and ticks. A connection goes through these states:
//
//	open      takes requests
//	retired   takes no new requests, and ends when nothing relies on it any more
//	quitting  QUIT was sent: the daemon undoes pending LOCKs, releases HOLDs and ends the connection
//	ended     err is set and done is closed
//
// A silent connection is retired, and its requests move to another one. It stays while it has HOLDs
// whose deadlines have not passed, because the daemon may still keep them.
type conn struct {
	client  *Client
	address string
	stream  net.Conn
	socket  net.Conn // below TLS; otherwise the stream
	reader  *bufio.Reader
	born    int64
	wake    chan struct{}
	done    chan struct{}

	mu        sync.Mutex
	err       error
	quitting  bool
	silent    bool
	tag       uint64
	calls     map[uint64]*call
	abandoned int // how many of calls
	out       []byte
	holds     map[string]*Lock // by token
	pinged    int64            // when the pending PING was sent; 0 if there is none
	quiet     int              // ticks without input

	retired atomic.Bool
	heard   atomic.Bool  // input since the last tick
	heardAt atomic.Int64 // when the last input came
}

// dial connects and authenticates. The connection counts only once the daemon has answered PING:
// the kernel also accepts connections for a daemon that is stopped.
func (c *Client) dial(ctx context.Context, a address) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout/time.Duration(len(c.addresses)))
	defer cancel()
	var dialer net.Dialer
	socket, err := dialer.DialContext(ctx, a.network, a.target)
	if err != nil {
		return nil, err
	}
	conn := &conn{
		client: c, address: a.url, stream: socket, socket: socket, born: now(),
		wake: make(chan struct{}, 1), done: make(chan struct{}),
		calls: make(map[uint64]*call), holds: make(map[string]*Lock),
	}
	if err := conn.greet(ctx, a); err != nil {
		socket.Close()
		return nil, err
	}
	return conn, nil
}

func (c *conn) greet(ctx context.Context, a address) error {
	deadline, _ := ctx.Deadline()
	c.socket.SetDeadline(deadline)
	defer c.socket.SetDeadline(time.Time{})
	if a.tls {
		host, _, _ := net.SplitHostPort(a.target)
		config := c.client.config.TLS.Clone()
		if config == nil {
			config = &tls.Config{}
		}
		if config.ServerName == "" {
			config.ServerName = host
		}
		secure := tls.Client(c.socket, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			if errors.As(err, &x509.UnknownAuthorityError{}) {
				err = fmt.Errorf("%w; set TLS.RootCAs", err)
			}
			return err
		}
		c.stream = secure
	}
	secret, err := c.client.secret()
	if err != nil {
		return err
	}
	var hello string
	if secret != "" {
		hello = "#" + tagAuth + " AUTH " + secret + "\n"
	}
	if c.client.config.Name != "" {
		hello += "#" + tagName + " NAME " + c.client.config.Name + "\n"
	}
	hello += "#" + tagPing + " PING\n"
	if _, err := io.WriteString(c.stream, hello); err != nil {
		return err
	}
	c.reader = bufio.NewReaderSize(c.stream, 8*maxLine)
	for {
		line, err := c.readLine()
		if err != nil {
			return err
		}
		tag, text, ok := splitLine(line)
		switch {
		case !ok:
			return errGarbled
		case string(tag) == tagPing && string(text) == "PONG":
			return nil
		case string(tag) == tagName || string(tag) == tagAuth && string(text) == "OK":
		default:
			return refusal(text)
		}
	}
}

var errGarbled = errors.New("the peer does not speak the protocol of redlockd")

// refusal describes the line with which a daemon ends a connection.
func refusal(text []byte) error {
	r := newReply(text)
	if r.word != "DENIED" && r.word != "LIMIT" && r.word != "SHUTDOWN" && r.word != "ERR" {
		return errGarbled
	}
	return replyError("connect", "", r)
}

// readLine reads up to LF. A line without LF is not a reply, so it is an error.
func (c *conn) readLine() ([]byte, error) {
	line, err := c.reader.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, errGarbled
	}
	if err != nil {
		return nil, err
	}
	return line[:len(line)-1], nil
}

// start starts the goroutines of the connection.
func (c *conn) start() {
	go c.write()
	go func() {
		for {
			line, err := c.readLine()
			if err == nil {
				err = c.receive(line)
			}
			if err != nil {
				c.fail(err)
				return
			}
		}
	}()
}

// --- sending ---

// send queues the request. The error errFull means that the connection does not take it, errEnded
// that no connection does. ofHold: the request is about a lock that the daemon holds for this
// connection.
func (c *conn) send(call *call, ofHold bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || c.quitting || c.silent || len(c.calls) >= maxCallsOfHold ||
		!ofHold && (c.retired.Load() || len(c.calls) >= maxCalls) {
		return errFull
	}
	// Once UNLOCK was sent, the token is good for nothing else.
	if call.request.verb == "EXTEND" && call.lock.hasEnded() {
		return errEnded
	}
	c.tag++
	c.calls[c.tag] = call
	call.tag = c.tag
	call.sent = now() // before the write, so that a slow write cannot make a deadline later
	c.out = call.request.appendTo(c.out, c.tag, call.sent)
	c.wakeWriter()
	return nil
}

func (c *conn) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// ping sends a PING, unless one is pending. Its reply proves the HOLDs of the connection.
func (c *conn) ping() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pingLocked()
}

func (c *conn) pingLocked() {
	if c.pinged == 0 && c.err == nil && !c.quitting {
		c.pinged = now()
		c.out = append(c.out, "#"+tagPing+" PING\n"...)
		c.wakeWriter()
	}
}

func (c *conn) write() {
	timeout := c.client.config.Timeout
	ticker := time.NewTicker(timeout / silentTicks)
	defer ticker.Stop()
	var lines []byte
	for {
		select {
		case <-c.wake:
			// Goroutines that are ready to run can add their requests to this write.
			runtime.Gosched()
			c.mu.Lock()
			lines, c.out = c.out, lines[:0]
			c.mu.Unlock()
			if len(lines) == 0 {
				continue
			}
			c.stream.SetWriteDeadline(time.Now().Add(timeout))
			if _, err := c.stream.Write(lines); err != nil {
				c.fail(err)
				return
			}
		case <-ticker.C:
			c.tick()
		case <-c.done:
			return
		}
	}
}

// --- receiving ---

func newReply(text []byte) reply {
	for i, b := range text {
		if b == ' ' {
			return reply{word: wordOf(text[:i]), rest: string(text[i+1:])}
		}
	}
	return reply{word: wordOf(text)}
}

// wordOf saves the allocation for the most frequent word.
func wordOf(text []byte) string {
	if string(text) == "OK" {
		return "OK"
	}
	return string(text)
}

// receive handles one line. After an error the connection is unusable.
func (c *conn) receive(line []byte) error {
	c.heard.Store(true)
	c.heardAt.Store(now())
	tag, text, ok := splitLine(line)
	switch {
	case !ok:
		return errGarbled
	case tag == nil && text[0] == '!':
		return c.receivePush(text)
	case tag == nil:
		return refusal(text)
	case string(tag) == tagPing:
		return c.receivePong(text)
	case string(tag) == tagQuit:
		return nil // the daemon ends the connection
	}
	number, ok := parseNumber(string(tag), 1e18-1)
	if !ok {
		return errGarbled
	}
	r := newReply(text)

	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.calls[uint64(number)]
	if call == nil {
		return errGarbled
	}
	if r.word == "OK" && call.request.verb != "UNLOCK" {
		if r.grant, ok = parseGrant(call.request, r.rest, call.sent, now()); !ok {
			return errGarbled
		}
	}
	delete(c.calls, call.tag)
	granted := r.word == "OK" && call.request.verb == "LOCK"
	if call.abandoned {
		c.abandoned--
		if granted {
			c.client.discard(c, call.request, r.grant)
		} else if call.request.verb == "EXTEND" {
			call.lock.extendedLate(r)
		}
		return nil
	}
	if granted {
		// Before the next line is read, because that can be LOST.
		call.lock.granted(c, r.grant)
		if call.lock.hold {
			c.holds[r.grant.token] = call.lock
		}
	}
	call.reply <- r
	return nil
}

func (c *conn) receivePong(text []byte) error {
	c.mu.Lock()
	sent := c.pinged
	c.pinged = 0
	holds := make([]*Lock, 0, len(c.holds))
	for _, lock := range c.holds {
		holds = append(holds, lock)
	}
	c.mu.Unlock()
	if string(text) != "PONG" || sent == 0 {
		return errGarbled
	}
	for _, lock := range holds {
		lock.proven(sent)
	}
	return nil
}

// receivePush handles "! LOST <resource> <token> <reason>". Other lines are information.
func (c *conn) receivePush(text []byte) error {
	words := strings.Fields(string(text))
	if len(words) < 2 || words[1] != "LOST" {
		return nil
	}
	if len(words) < 5 {
		return errGarbled
	}
	token, reason := words[3], words[4]
	c.mu.Lock()
	lock := c.holds[token]
	delete(c.holds, token)
	c.mu.Unlock()
	if lock != nil {
		lock.lose(explainLoss(reason), nil, reason == "gone")
	}
	return nil
}

// --- the end ---

// abandon gives up a call whose caller has gone.
func (c *conn) abandon(call *call) {
	c.mu.Lock()
	if c.calls[call.tag] == call {
		c.abandonLocked(call)
		if c.abandoned >= maxAbandoned && c.lingering() >= maxAbandoned {
			c.retired.Store(true)
		}
		c.endIfUnused()
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	// The reply came at the same time.
	r := <-call.reply
	if r.word == "OK" && call.request.verb == "LOCK" {
		c.forget(r.grant.token)
		c.client.discard(c, call.request, r.grant)
	} else if call.request.verb == "EXTEND" {
		call.lock.extendedLate(r)
	}
}

// retireIfSilent lets new requests use another connection if nothing was heard since the call was
// sent, which is too long for the reply to an EXTEND. It is too early to give up the other calls.
func (c *conn) retireIfSilent(call *call) {
	if c.heardAt.Load() < call.sent && now()-call.sent >= attemptMin {
		c.leave()
	}
}

// leave lets new requests use another connection, to another daemon if there is one.
func (c *conn) leave() {
	c.retired.Store(true)
	c.client.avoid(c.address)
}

func (c *conn) abandonLocked(call *call) {
	if !call.abandoned {
		call.abandoned = true
		c.abandoned++
	}
}

// lingering counts the abandoned LOCKs that would stay in the queue of the daemon.
func (c *conn) lingering() int {
	at, count := now(), 0
	for _, call := range c.calls {
		if call.abandoned && call.request.waitUntil-at > shortWait {
			count++
		}
	}
	return count
}

// endIfUnused ends the connection if nothing relies on it, and if there is a reason to end it: it
// is retired, or has lingering LOCKs.
func (c *conn) endIfUnused() {
	if len(c.calls) > c.abandoned || c.err != nil || c.quitting {
		return
	}
	at := now()
	for _, lock := range c.holds {
		// On a silent connection, nothing can prove a lock after its deadline.
		if !c.silent || !lock.isOver(at) {
			return
		}
	}
	if c.retired.Load() || c.lingering() > 0 {
		c.quitLocked(errFull)
	}
}

// quit ends the connection cleanly, and with it the calls and HOLDs. The daemon releases the HOLDs.
func (c *conn) quit(err error) {
	c.mu.Lock()
	c.retired.Store(true)
	c.failCalls(err) // from now on no HOLD is added
	holds := c.holds
	c.holds = nil
	c.mu.Unlock()
	// Before QUIT is sent, because the daemon then releases them.
	for _, lock := range holds {
		lock.lose(err.Error(), nil, true)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && !c.quitting {
		c.quitLocked(err)
	}
}

func (c *conn) quitLocked(err error) {
	c.retired.Store(true)
	c.quitting = true
	c.failCalls(err)
	if c.silent {
		c.stream.SetReadDeadline(time.Unix(1, 0)) // ends the reader
		return
	}
	c.out = append(c.out, "#"+tagQuit+" QUIT\n"...)
	c.wakeWriter()
	// Read on until the daemon ends the connection, since a reply that is under way can be the OK
	// to an abandoned LOCK.
	c.stream.SetReadDeadline(time.Now().Add(c.client.config.Timeout))
}

// failCalls ends all calls, but keeps them as abandoned: their replies can still come.
func (c *conn) failCalls(err error) {
	for _, call := range c.calls {
		c.failCall(call, err)
	}
}

func (c *conn) failCall(call *call, err error) {
	if !call.abandoned {
		c.abandonLocked(call)
		call.reply <- reply{err: err}
	}
}

// failLocks ends the pending LOCKs.
func (c *conn) failLocks(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.calls {
		if call.request.verb == "LOCK" {
			c.failCall(call, err)
		}
	}
}

// tick is called silentTicks times in the timeout of the client. It counts ticks instead of time,
// because after a stop of this process the input comes first.
func (c *conn) tick() {
	spare := c.client.isSpare(c)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heard.Swap(false) {
		c.quiet = 0
	} else if c.pinged != 0 {
		c.quiet++
	}
	c.silent = c.quiet >= silentTicks
	if c.silent {
		c.leave()
		c.failCalls(fmt.Errorf("%s does not answer", c.address))
	}
	if len(c.calls) > 0 || len(c.holds) > 0 {
		c.pingLocked()
	}
	if spare && len(c.calls) == 0 && len(c.holds) == 0 {
		c.retired.Store(true)
	}
	c.endIfUnused()
}

// fail ends the connection. Unless the daemon has ended it, or QUIT was sent, the daemon is to take
// it for lost, because it then releases HOLDs no earlier than at their deadlines. So a TCP
// connection is reset. A unix socket can only be closed cleanly, so it stays open until then.
func (c *conn) fail(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	open := !errors.Is(err, io.EOF)
	if !open {
		err = errors.New("the daemon closed the connection")
	}
	c.err = fmt.Errorf("%s: %w", c.address, err)
	orderly := c.quitting
	c.failCalls(c.err)
	holds := c.holds
	c.holds = nil
	c.mu.Unlock()

	var last int64
	for _, lock := range holds {
		deadline := lock.lose("the connection to the daemon has ended", c.err, true)
		if deadline > last {
			last = deadline
		}
	}
	tcp, isTCP := c.socket.(*net.TCPConn)
	if isTCP {
		tcp.SetLinger(0)
	}
	c.socket.SetDeadline(time.Unix(1, 0)) // ends the other goroutine
	if left := last - now(); open && !isTCP && left > 0 {
		time.AfterFunc(time.Duration(left), func() { c.socket.Close() })
	} else {
		c.socket.Close()
	}
	close(c.done)
	c.client.remove(c, orderly)
}

// forget removes a lock from the HOLDs of the connection: nobody wants to hear of it any more.
func (c *conn) forget(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.holds, token)
}
