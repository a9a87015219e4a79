package redlockd

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// testTimeout limits how long a test waits for an event.
const testTimeout = 30 * time.Second

// cluster is a set of masters and daemons, which tests/clients/fixture.py owns.
type cluster struct {
	Daemons []struct{ Unix, TCP, TLS string }
	CA      string
	Secret  string
	File    string `json:"secret_file"`

	mu     sync.Mutex
	input  io.WriteCloser
	output *bufio.Reader
}

// root returns the folder of the repository.
func root(t testing.TB) string {
	path, err := filepath.Abs("../..")
	must(t, err)
	return path
}

// startCluster starts masters and daemons. The options are JSON.
func startCluster(t testing.TB, options string) *cluster {
	t.Helper()
	build := os.Getenv("BUILD")
	if build == "" {
		build = "build"
	}
	fixture := exec.Command("python3", "tests/clients/fixture.py", "--build", build)
	fixture.Dir, fixture.Stderr = root(t), os.Stderr
	input, err := fixture.StdinPipe()
	must(t, err)
	output, err := fixture.StdoutPipe()
	must(t, err)
	must(t, fixture.Start())
	c := &cluster{input: input, output: bufio.NewReader(output)}
	t.Cleanup(func() {
		input.Close()
		fixture.Wait()
	})
	must(t, json.Unmarshal(c.do(t, "start "+options), c))
	return c
}

// do carries out a command of the fixture and returns its reply.
func (c *cluster) do(t testing.TB, command string) []byte {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := io.WriteString(c.input, command+"\n")
	must(t, err)
	line, err := c.output.ReadBytes('\n')
	must(t, err)
	var reply struct {
		OK    bool
		Error string
	}
	must(t, json.Unmarshal(line, &reply))
	if !reply.OK {
		t.Fatalf("fixture: %s: %s", command, reply.Error)
	}
	return line
}

// breakLock releases the lock by force, as an operator.
func (c *cluster) breakLock(t testing.TB, resource string) {
	t.Helper()
	var reply struct {
		Exit int
		Err  string
	}
	must(t, json.Unmarshal(c.do(t, `redlock ["break", "`+resource+`"]`), &reply))
	if reply.Exit != 0 {
		t.Fatalf("redlock break: %s", reply.Err)
	}
}

func (c *cluster) pool(t testing.TB) *x509.CertPool {
	pem, err := os.ReadFile(c.CA)
	must(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	return pool
}

// client returns a client of the first daemon, or of all.
func (c *cluster) client(t testing.TB, all bool) *Client {
	config := Config{Secret: c.Secret}
	for _, daemon := range c.Daemons {
		config.Addresses = append(config.Addresses, daemon.TCP)
		if !all {
			break
		}
	}
	return newClient(t, config)
}

func newClient(t testing.TB, config Config) *Client {
	t.Helper()
	client, err := New(config)
	must(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

func (c *cluster) tlsConfig(t testing.TB) *tls.Config { return &tls.Config{RootCAs: c.pool(t)} }

// ask sends one request over a connection of its own and returns the lines of the reply.
func (c *cluster) ask(t testing.TB, daemon int, request string) []string {
	t.Helper()
	conn, err := net.Dial("unix", strings.TrimPrefix(c.Daemons[daemon].Unix, "unix:"))
	must(t, err)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(testTimeout))
	if c.Secret != "" {
		request = "AUTH " + c.Secret + "\n" + request
	}
	_, err = fmt.Fprintf(conn, "%s\nQUIT\n", request)
	must(t, err)
	all, err := io.ReadAll(conn)
	must(t, err)
	lines := strings.Split(strings.TrimSpace(string(all)), "\n")
	if c.Secret != "" {
		lines = lines[1:]
	}
	return lines[:len(lines)-1] // without BYE
}

// waiters returns how many clients wait for the lock at the daemon.
func (c *cluster) waiters(t testing.TB, daemon int, resource string) string {
	for _, word := range strings.Fields(c.ask(t, daemon, "LOCKS "+resource)[0]) {
		if strings.HasPrefix(word, "waiters=") {
			return word[len("waiters="):]
		}
	}
	return "0"
}

// isFree asks the first daemon.
func (c *cluster) isFree(t testing.TB, resource string) bool {
	t.Helper()
	return c.isFreeAt(t, 0, resource)
}

// isFreeAt asks a daemon, and asks again if the masters do not answer it in time.
func (c *cluster) isFreeAt(t testing.TB, daemon int, resource string) bool {
	t.Helper()
	var reply string
	eventually(t, "FREE or HELD", func() bool {
		reply, _, _ = strings.Cut(c.ask(t, daemon, "STATUS "+resource)[0], " ")
		return reply == "FREE" || reply == "HELD"
	})
	return reply == "FREE"
}

// --- scripted daemon ---

// scripted is a daemon that a test plays itself.
type scripted struct {
	t        *testing.T
	listener net.Listener
	conn     net.Conn
	lines    *bufio.Reader
}

func newScripted(t *testing.T) *scripted {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	return &scripted{t: t, listener: listener}
}

func (s *scripted) url() string { return "tcp://" + s.listener.Addr().String() }

// accept takes the next connection and answers the PING with which it begins.
func (s *scripted) accept() {
	s.t.Helper()
	s.listener.(interface{ SetDeadline(time.Time) error }).SetDeadline(time.Now().Add(testTimeout))
	conn, err := s.listener.Accept()
	must(s.t, err)
	s.t.Cleanup(func() { conn.Close() })
	s.conn, s.lines = conn, bufio.NewReader(conn)
	conn.SetDeadline(time.Now().Add(testTimeout))
	line, err := s.lines.ReadString('\n')
	must(s.t, err)
	if line != "#p PING\n" {
		s.t.Fatalf("not a PING: %q", line)
	}
	s.send("#p PONG\n")
}

// expect reads the next request with this verb, answering any PING before it, and returns its tag
// and the rest.
func (s *scripted) expect(verb string) (tag, rest string) {
	s.t.Helper()
	for {
		line, err := s.lines.ReadString('\n')
		must(s.t, err)
		words := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
		switch {
		case words[1] == verb && len(words) == 3:
			return words[0], words[2]
		case words[1] == verb:
			return words[0], ""
		case words[1] == "PING":
			s.send(words[0] + " PONG\n")
		default:
			s.t.Fatalf("expected %s: %q", verb, line)
		}
	}
}

// refuse ends all further connections. If the listener were closed, another test could get its port.
func (s *scripted) refuse() {
	go func() {
		for {
			conn, err := s.listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
}

// answerAll answers all requests with this reply, until the connection ends.
func (s *scripted) answerAll(reply string) {
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return
		}
		words := strings.Fields(line)
		if words[1] == "PING" {
			io.WriteString(s.conn, words[0]+" PONG\n")
		} else {
			io.WriteString(s.conn, words[0]+" "+reply+"\n")
		}
	}
}

func (s *scripted) send(text string) {
	s.t.Helper()
	_, err := io.WriteString(s.conn, text)
	must(s.t, err)
}

// --- waiting ---

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustBe(t testing.TB, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("expected %q: %v", kind, err)
	}
}

func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(testTimeout); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// cancelled waits until the context ends.
func cancelled(t testing.TB, ctx context.Context) {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(testTimeout):
		t.Fatal("the context is not cancelled")
	}
}

// cancelledInTime waits until the context of the lock ends, which must not be long after the deadline.
func cancelledInTime(t testing.TB, lock *Lock, ctx context.Context) {
	t.Helper()
	cancelled(t, ctx)
	if late := now() - lock.deadline; late > 5e9 {
		t.Errorf("%v late", time.Duration(late))
	}
}

func background(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// result waits for the error of a call in another goroutine.
func result(t testing.TB, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(testTimeout):
		t.Fatal("the call does not end")
		return nil
	}
}

func async(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}
