package redlockd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"sync"
	"time"
)

// Version is the version of this package and of the redlockd that it belongs to.
const Version = "0.2.0"

const (
	timeoutMin = 10 * time.Millisecond
	backoffMin = 25 * time.Millisecond
	backoffMax = time.Second
	// A connection that lived for less time counts as a failure of its daemon.
	shortLife = int64(time.Second)
	// For this long after an address has failed, the others are tried first.
	avoidTime = int64(5 * time.Second)
	// The pause before a request that could not be carried out is sent again.
	repeatPause = 100 * time.Millisecond
)

// Config describes how to reach the daemons. Only Addresses is required.
type Config struct {
	// Addresses are daemons on the same masters, in order of preference: tcp://HOST:PORT,
	// tls://HOST:PORT or unix:/PATH. Each new connection tries them in this order. An address that
	// has failed comes last for 5 s.
	Addresses []string
	// TLS is the configuration for tls:// addresses, for example with RootCAs and Certificates. Nil
	// means the CAs of the system.
	TLS *tls.Config
	// Secret authenticates the client, if the daemons have users.
	Secret string
	// SecretFile is a file with the secret in one line. It is read for each new connection.
	SecretFile string
	// Name is shown in the listings and the log of the daemons: 1 to 32 of A-Z a-z 0-9 _ . : -
	Name string
	// Timeout limits how long a request tries to reach a daemon, and after how long without any
	// reply a daemon counts as unreachable. The default is 5 s. It does not limit the wait for a
	// lock: once a daemon was reached, Lock tries to reach one again until that wait ends.
	Timeout time.Duration
}

// Client is a client of redlockd. It is safe for concurrent use. All requests share one connection,
// which is opened when it is needed; only above 1000 requests at a time are there more connections.
type Client struct {
	config    Config  // without the secret
	password  *string // the secret: a pointer, so that printing the client does not show it
	addresses []address
	lifetime  context.Context
	end       context.CancelFunc

	mu       sync.Mutex
	closing  bool    // sends nothing but UNLOCK
	ended    bool    // makes no new connections
	conns    []*conn // replaced, never changed; new requests prefer the first
	dialing  *dialing
	reached  bool             // whether a daemon ever was
	avoided  map[string]int64 // addresses that have failed, and until when they come last
	failures int              // in a row
	trouble  error            // why no daemon could be reached; nil once one was
	// Releases of locks that no caller has. Close waits for them.
	releases int
	released chan struct{} // is closed when there are none
}

// dialing is an attempt to connect that all requests without a connection wait for.
type dialing struct {
	done chan struct{}
	err  error
}

// New checks the configuration and returns a client. It does not connect.
func New(config Config) (*Client, error) {
	c := &Client{config: config, password: &config.Secret, avoided: make(map[string]int64)}
	c.config.Secret = ""
	invalid := func(text string) (*Client, error) {
		return nil, newError("connect", "", ErrInvalid, text, nil)
	}
	if len(config.Addresses) == 0 {
		return invalid("an address is missing")
	}
	for _, url := range config.Addresses {
		a, err := parseAddress(url)
		if err != nil {
			return invalid(err.Error())
		}
		c.addresses = append(c.addresses, a)
	}
	if config.Secret != "" && config.SecretFile != "" {
		return invalid("there must be either Secret or SecretFile")
	}
	if config.Secret != "" && !isWord(config.Secret, maxSecret) {
		return invalid("the secret must be 1 to 256 bytes without spaces")
	}
	if config.Name != "" && !isLabel(config.Name) {
		return invalid("the name must be 1 to 32 characters of A-Z a-z 0-9 _ . : -")
	}
	if config.Timeout == 0 {
		c.config.Timeout = 5 * time.Second
	} else if config.Timeout < timeoutMin {
		return invalid("the timeout must be at least 10ms")
	}
	c.lifetime, c.end = context.WithCancel(context.Background())
	c.released = make(chan struct{})
	close(c.released)
	return c, nil
}

// String describes the client. It leaves out the secret, so a client may be logged.
func (c *Client) String() string {
	return "redlockd client of " + strings.Join(c.config.Addresses, ", ")
}

func (c *Client) secret() (string, error) {
	if c.config.SecretFile == "" {
		return *c.password, nil
	}
	content, err := os.ReadFile(c.config.SecretFile)
	secret := strings.TrimSpace(string(content))
	if err == nil && !isWord(secret, maxSecret) {
		err = fmt.Errorf("%s must have a secret of 1 to 256 bytes in one line", c.config.SecretFile)
	}
	if err != nil {
		err = newError("connect", "", ErrDenied, "the secret file cannot be used", err)
	}
	return secret, err
}

// Close ends the connection. The daemon then releases the locks with HOLD, and their contexts are
// cancelled. Requests that wait end with ErrUnavailable. Locks without HOLD stay until they expire,
// so unlock them first. Close takes at most about two times Config.Timeout.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closing = true
	conns := c.conns
	c.mu.Unlock()
	for _, conn := range conns {
		conn.failLocks(errClosed)
	}
	limit, cancel := context.WithTimeout(context.Background(), c.config.Timeout)
	defer cancel()
	c.waitForReleases(limit)
	c.quitAll()
	// An OK that crossed QUIT is released over another connection.
	c.waitForReleases(limit)
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.end()
	c.quitAll()
	return nil
}

func (c *Client) waitForReleases(limit context.Context) {
	c.mu.Lock()
	released := c.released
	c.mu.Unlock()
	select {
	case <-released:
	case <-limit.Done():
	}
}

// quitAll ends all connections.
func (c *Client) quitAll() {
	c.mu.Lock()
	conns := c.conns
	c.mu.Unlock()
	for _, conn := range conns {
		conn.quit(errClosed)
	}
	for _, conn := range conns {
		<-conn.done
	}
}

// --- connections ---

// connect returns when there may be a connection that takes new requests. tried are those that took
// none.
func (c *Client) connect(ctx context.Context, tried []*conn) error {
	c.mu.Lock()
	if n := len(c.conns); n > 0 && (len(tried) == 0 || c.conns[n-1] != tried[len(tried)-1]) {
		c.mu.Unlock()
		return nil // opened meanwhile
	}
	d := c.dialing
	if d == nil {
		d = &dialing{done: make(chan struct{})}
		c.dialing = d
		go c.dialAll(d, c.backoff())
	}
	c.mu.Unlock()
	select {
	case <-d.done:
		return d.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// backoff returns how long to wait before the next attempt to connect. The first follows at once.
func (c *Client) backoff() time.Duration {
	if c.failures == 0 {
		return 0
	}
	wait := backoffMax
	if c.failures < 7 {
		wait = backoffMin << (c.failures - 1)
	}
	return wait/2 + time.Duration(rand.Int63n(int64(wait)/2))
}

// avoid tells the client that an address has failed.
func (c *Client) avoid(url string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.avoided[url] = now() + avoidTime
}

// inOrder returns the addresses in the order in which to try them.
func (c *Client) inOrder() []address {
	c.mu.Lock()
	defer c.mu.Unlock()
	var first, last []address
	for at, i := now(), 0; i < len(c.addresses); i++ {
		if a := c.addresses[i]; c.avoided[a.url] > at {
			last = append(last, a)
		} else {
			first = append(first, a)
		}
	}
	return append(first, last...)
}

// dialAll tries each address once.
func (c *Client) dialAll(d *dialing, wait time.Duration) {
	select {
	case <-time.After(wait):
	case <-c.lifetime.Done():
	}
	var conn *conn
	var failures []string
	var denied error
	for _, a := range c.inOrder() {
		var err error
		if conn, err = c.dial(c.lifetime, a); err == nil {
			break
		}
		c.avoid(a.url)
		if errors.Is(err, ErrDenied) {
			denied = err
		}
		failures = append(failures, a.url+": "+err.Error())
	}

	c.mu.Lock()
	c.dialing = nil
	switch {
	case conn != nil:
		c.reached = true
		c.conns = append(c.conns[:len(c.conns):len(c.conns)], conn)
		conn.start()
	case denied != nil:
		d.err = denied
	default:
		d.err = errors.New(strings.Join(failures, "; "))
	}
	if conn == nil {
		c.failures++
	}
	c.trouble = d.err
	ended := c.ended
	c.mu.Unlock()

	if conn != nil && ended {
		conn.quit(errClosed)
	}
	close(d.done)
}

// remove forgets a connection that has ended. orderly: this client has ended it.
func (c *Client) remove(ended *conn, orderly bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var conns []*conn
	for _, conn := range c.conns {
		if conn != ended {
			conns = append(conns, conn)
		}
	}
	c.conns = conns
	if orderly || now()-ended.born >= shortLife {
		c.failures = 0
	} else {
		c.failures++
	}
}

// isSpare reports whether new requests prefer another connection.
func (c *Client) isSpare(conn *conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, other := range c.conns {
		if !other.retired.Load() {
			return other != conn
		}
	}
	return false
}

// --- requests ---

// send sends the request over the connection that has the HOLD, if any, or else over the first one
// that takes it. A daemon that was never reached may be starting, or its address is wrong, so only
// then does a LOCK with a wait give up before the end of that wait.
func (c *Client) send(ctx context.Context, holder *conn, call *call) (*conn, error) {
	if holder != nil {
		if err := holder.send(call, true); err != errFull {
			return holder, err
		}
	}
	giveUp := now() + int64(c.config.Timeout)
	for {
		c.mu.Lock()
		conns, last := c.conns, c.trouble
		if c.reached && giveUp < call.request.waitUntil {
			giveUp = call.request.waitUntil
		}
		if c.closing {
			giveUp = 0 // Close waits for no daemon to come back
		}
		ended := c.ended || c.closing && call.request.verb != "UNLOCK"
		c.mu.Unlock()
		if ended {
			return nil, errClosed
		}
		for _, conn := range conns {
			if err := conn.send(call, false); err != errFull {
				return conn, err
			}
		}
		err := c.connect(ctx, conns)
		if ctx.Err() != nil && last != nil {
			return nil, fmt.Errorf("%w (%v)", ctx.Err(), last)
		}
		if err != nil && (errors.Is(err, ErrDenied) || ctx.Err() != nil || now() >= giveUp) {
			return nil, err
		}
	}
}

// do sends a request and returns the reply. If the connection ends before the reply, or the daemon
// stops, it sends the request again over the next connection, unless it is later than until by
// then. After LIMIT it repeats an UNLOCK, and after LATE a LOCK within its wait. repeated says that
// an earlier attempt may have been carried out.
func (c *Client) do(ctx context.Context, holder *conn, request *request, lock *Lock,
	until int64) (r reply, repeated bool, err error) {
	op := strings.ToLower(request.verb)
	fail := func(kind error, text string, err error) (reply, bool, error) {
		return r, repeated, newError(op, request.resource, kind, text, err)
	}
	givenUp := func() (reply, bool, error) {
		if request.verb == "LOCK" {
			return fail(ErrNotAcquired, "given up", ctx.Err())
		}
		return fail(ErrUnavailable, "no reply yet", ctx.Err())
	}
	for {
		call := &call{request: request, lock: lock, reply: make(chan reply, 1)}
		conn, err := c.send(ctx, holder, call)
		if errors.Is(err, ErrDenied) {
			return fail(ErrDenied, "cannot authenticate", err)
		} else if errors.Is(err, errEnded) {
			return fail(ErrUnlocked, "not sent again", err)
		} else if err != nil {
			return fail(ErrUnavailable, "no daemon can be reached", err)
		}
		select {
		case r = <-call.reply:
		case <-ctx.Done():
			conn.abandon(call)
			if request.verb == "EXTEND" {
				conn.retireIfSilent(call)
			}
			return givenUp()
		}
		switch {
		case r.err != nil:
			repeated = true
		case r.word == "SHUTDOWN":
			repeated = true
			conn.leave()
			r.err = errors.New("the daemon is stopping")
		case r.word == "LIMIT" && request.verb == "UNLOCK",
			r.word == "LATE" && now()+int64(repeatPause) < request.waitUntil:
			r.err = errors.New("the daemon has answered " + r.word + " " + r.rest)
			select {
			case <-time.After(repeatPause):
			case <-ctx.Done():
				return givenUp()
			}
		default:
			return r, repeated, nil
		}
		if errors.Is(r.err, errClosed) || now() >= until {
			return fail(ErrUnavailable, "no reply", r.err)
		}
	}
}

// check returns an error if the client is closed.
func (c *Client) check(op, resource string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return newError(op, resource, ErrUnavailable, errClosed.Error(), nil)
	}
	return nil
}

// inBackground runs f, which Close waits for.
func (c *Client) inBackground(f func()) {
	c.beginRelease()
	go func() {
		defer c.endRelease()
		f()
	}()
}

func (c *Client) beginRelease() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.releases == 0 {
		c.released = make(chan struct{})
	}
	c.releases++
}

func (c *Client) endRelease() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.releases--
	if c.releases == 0 {
		close(c.released)
	}
}

// unlock sends an UNLOCK. If it fails, only the end of the connection can end a HOLD. But if ctx ends
// before the reply, the caller sends another UNLOCK.
func (c *Client) unlock(ctx context.Context, holder *conn, request *request,
	until int64) (r reply, repeated bool, err error) {
	r, repeated, err = c.do(ctx, holder, request, nil, until)
	if holder != nil && (err == nil || ctx.Err() == nil) && r.word != "OK" && r.word != "GONE" {
		holder.retired.Store(true)
	}
	return r, repeated, err
}

// discard releases a lock that was granted to a caller that has gone.
func (c *Client) discard(holder *conn, lock *request, g grant) {
	request := &request{verb: "UNLOCK", resource: lock.resource, token: g.token}
	if g.slot != "" {
		request.resource = g.slot
	}
	if !lock.hold {
		holder = nil
	}
	c.inBackground(func() {
		c.unlock(context.Background(), holder, request, g.deadline)
	})
}
