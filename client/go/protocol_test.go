package redlockd

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

const token = "6c7bac0d008c92701fb34223a36eaf20dda7a0ce"

func TestVersionIsThatOfTheDaemon(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	must(t, err)
	match := regexp.MustCompile(`(?m)^VERSION := (.*)$`).FindSubmatch(makefile)
	if match == nil || string(match[1]) != Version {
		t.Errorf("Version is %s, and the Makefile says %s", Version, match)
	}
}

func TestRequests(t *testing.T) {
	const at = 5e9
	for expected, r := range map[string]request{
		"#7 LOCK deploy 30000\n": {verb: "LOCK", resource: "deploy", ttlMs: 30000},
		"#7 LOCK a 1 SLOTS 3 WAIT 2 FENCE HOLD LINGER\n": {
			verb: "LOCK", resource: "a", ttlMs: 1, slots: 3, waitUntil: at + 1e6 + 1,
			fence: true, hold: true, linger: true,
		},
		// A LOCK whose wait is over does not wait.
		"#7 LOCK a 1\n":               {verb: "LOCK", resource: "a", ttlMs: 1, waitUntil: at},
		"#7 UNLOCK a " + token + "\n": {verb: "UNLOCK", resource: "a", token: token},
		"#7 EXTEND deploy " + token + " 2500\n": {
			verb: "EXTEND", resource: "deploy", token: token, ttlMs: 2500,
		},
	} {
		if line := string(r.appendTo(nil, 7, at)); line != expected {
			t.Errorf("%q instead of %q", line, expected)
		}
	}
	longest := request{
		verb: "LOCK", resource: strings.Repeat("x", maxResource), ttlMs: maxMs, slots: maxSlots,
		waitUntil: int64(maxWait), fence: true, hold: true, linger: true,
	}
	if n := len(longest.appendTo(nil, 1<<64-1, 0)); n > maxLine {
		t.Errorf("%d bytes", n)
	}
}

func TestGrants(t *testing.T) {
	lock := &request{verb: "LOCK", resource: "a", ttlMs: 30000}
	fence := &request{verb: "LOCK", resource: "a", ttlMs: 30000, fence: true}
	slots := &request{verb: "LOCK", resource: "a", ttlMs: 30000, slots: 3}
	extend := &request{verb: "EXTEND", resource: "a", token: token, ttlMs: 30000}
	const sent, received = 100e9, 105e9
	for _, test := range []struct {
		request *request
		rest    string
		grant   grant
		ok      bool
	}{
		{lock, token + " 29689 0 -", grant{token: token, deadline: 129689e6}, true},
		{lock, token + " 29689 2000 -", grant{token: token, deadline: 131689e6}, true},
		// The daemon cannot have spent more time than has passed.
		{lock, token + " 29689 9000 -", grant{token: token, deadline: 134689e6}, true},
		{lock, token + " 29689 0 7 more", grant{token: token, fence: 7, deadline: 129689e6}, true},
		{fence, token + " 29689 0 7", grant{token: token, fence: 7, deadline: 129689e6}, true},
		{slots, token + " 29689 0 - a#2", grant{token: token, slot: "a#2", deadline: 129689e6}, true},
		{lock, token + " 29689 5000 -", grant{token: token, deadline: 134689e6}, true},
		{extend, token + " 29689 0", grant{token: token, deadline: 129689e6}, true},
		{fence, token + " 29689 0 -", grant{}, false},
		{fence, token + " 29689 0 0", grant{}, false},
		{fence, token + " 29689 0 9007199254740992", grant{}, false},
		{slots, token + " 29689 0 -", grant{}, false},
		{slots, token + " 29689 0 - a#4", grant{}, false},
		{slots, token + " 29689 0 - a#0", grant{}, false},
		{slots, token + " 29689 0 - b#1", grant{}, false},
		{slots, token + " 29689 0 - a#02", grant{}, false},
		{lock, token + " 30001 0 -", grant{}, false}, // longer than the TTL
		{lock, token + " -1 0 -", grant{}, false},
		{lock, token + " 29689", grant{}, false},
		{lock, token + " 29689 0", grant{}, false},
		{lock, token[1:] + " 29689 0 -", grant{}, false},
		{lock, strings.ToUpper(token) + " 29689 0 -", grant{}, false},
		{lock, "", grant{}, false},
		{extend, strings.Repeat("0", 40) + " 29689 0", grant{}, false},
	} {
		g, ok := parseGrant(test.request, test.rest, sent, received)
		if ok != test.ok || ok && g != test.grant {
			t.Errorf("%q: %v %v", test.rest, g, ok)
		}
	}
}

func TestLines(t *testing.T) {
	for line, expected := range map[string][2]string{
		"#7 OK":             {"7", "OK"},
		"#7 OK a b":         {"7", "OK a b"},
		"LIMIT clients":     {"", "LIMIT clients"},
		"! LOST a b reason": {"", "! LOST a b reason"},
	} {
		tag, text, ok := splitLine([]byte(line))
		if !ok || string(tag) != expected[0] || string(text) != expected[1] {
			t.Errorf("%q: %q %q %v", line, tag, text, ok)
		}
	}
	for _, line := range []string{"", "#", "#7", "#7 ", "# OK", "OK\r", "O\x1bK", "\x7f"} {
		if _, _, ok := splitLine([]byte(line)); ok {
			t.Errorf("%q is taken for a line", line)
		}
	}
}

func TestAddresses(t *testing.T) {
	for url, expected := range map[string]address{
		"tcp://127.0.0.1:7335":     {network: "tcp", target: "127.0.0.1:7335"},
		"tcp://127.0.0.1:7335/":    {network: "tcp", target: "127.0.0.1:7335"},
		"tcp://[::1]:7335":         {network: "tcp", target: "[::1]:7335"},
		"tls://locks.example:7335": {network: "tcp", target: "locks.example:7335", tls: true},
		"unix:/run/redlockd.sock":  {network: "unix", target: "/run/redlockd.sock"},
	} {
		expected.url = url
		if a, err := parseAddress(url); err != nil || a != expected {
			t.Errorf("%q: %v %v", url, a, err)
		}
	}
	for _, url := range []string{
		"", "127.0.0.1:7335", "tcp://", "tcp://host", "tcp://:7335", "tcp://host:", "unix:",
		"unix:relative", "http://host:1", "redis://host:1", "redis://user:secret@host:1",
	} {
		if a, err := parseAddress(url); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v %v", url, a, err)
		}
	}
}

func TestReplyErrors(t *testing.T) {
	for line, kind := range map[string]error{
		"HELD 1200":                          ErrNotAcquired,
		"HELD -1":                            ErrNotAcquired,
		"LATE 900":                           ErrNotAcquired,
		"NOQUORUM 1/3 need=2 a:timeout":      ErrNoQuorum,
		"GONE":                               ErrLost,
		"DENIED authenticate first":          ErrDenied,
		"LIMIT busy":                         ErrUnavailable,
		"ERR ttl-range a ttl is from 1 to 2": ErrInvalid,
		"SOMETHING new":                      ErrUnavailable,
	} {
		err := replyError("lock", "a", newReply([]byte(line)))
		if !errors.Is(err, kind) {
			t.Errorf("%q: %v", line, err)
		}
	}
	held := replyError("lock", "a", newReply([]byte("HELD 1200")))
	expected := `redlockd: lock "a": another client holds the lock; it can be free in 1.2s`
	if held.Hint != 1200*time.Millisecond || held.Error() != expected {
		t.Error(held.Hint, held)
	}
	if unknown := replyError("lock", "a", newReply([]byte("HELD -1"))); unknown.Hint != -1 {
		t.Error(unknown.Hint)
	}
	if late := replyError("extend", "a", newReply([]byte("LATE 9"))); !errors.Is(late, ErrNoQuorum) {
		t.Error(late)
	}
}

func TestConfig(t *testing.T) {
	url := []string{"tcp://127.0.0.1:1"}
	for _, config := range []Config{
		{},
		{Addresses: []string{"nonsense"}},
		{Addresses: url, Secret: "with space"},
		{Addresses: url, Secret: "with\nLOCK"},
		{Addresses: url, Secret: strings.Repeat("x", 257)},
		{Addresses: url, Secret: "a", SecretFile: "b"},
		{Addresses: url, Name: "with space"},
		{Addresses: url, Timeout: -1},
		{Addresses: url, Timeout: 1},
		{Addresses: url, Name: strings.Repeat("x", 33)},
	} {
		_, err := New(config)
		mustBe(t, err, ErrInvalid)
		if config.Secret != "" && strings.Contains(err.Error(), config.Secret) {
			t.Error(err)
		}
	}
}

// Programs log what they have. %#v of a Lock shows everything, as of each struct.
func TestPrintedClientsAndLocksHaveNoSecrets(t *testing.T) {
	const secret = "a-secret-of-a-user"
	client, err := New(Config{Addresses: []string{"tcp://127.0.0.1:1"}, Secret: secret})
	must(t, err)
	if got, err := client.secret(); got != secret || err != nil {
		t.Error(got, err)
	}
	lock := &Lock{client: client, resource: "a", token: token}
	for _, text := range []string{
		fmt.Sprintf("%v %+v %#v", client, client, client),
		fmt.Sprintf("%v %+v %s", lock, lock, Locks{lock}),
	} {
		if strings.Contains(text, secret) || strings.Contains(text, token) {
			t.Error(text)
		}
	}
}

func TestNamesAreInByteOrder(t *testing.T) {
	names := []string{"b", "ä", "a", "b", "B"}
	if got := strings.Join(inByteOrder(names), " "); got != "B a b ä" {
		t.Error(got)
	}
	if strings.Join(names, " ") != "b ä a b B" {
		t.Error("the argument has changed")
	}
}

// The grant counts from before the request also if the reply comes within a millisecond.
func TestFastGrant(t *testing.T) {
	lock := &request{verb: "LOCK", resource: "a", ttlMs: 30000}
	if g, ok := parseGrant(lock, token+" 1 0 -", 100, 900_000); !ok || g.deadline != 1_000_100 {
		t.Error(g, ok)
	}
}

// A proof that comes after the deadline does not bring the lock back, even if nobody has looked at
// the lock since, as after a suspend.
func TestLateProof(t *testing.T) {
	lock := &Lock{ttl: 30e9, hold: true, delivered: true, deadline: now() - 1}
	lock.proven(now())
	mustBe(t, lock.Err(), ErrLost)
	if lock.Remaining() != 0 {
		t.Error(lock.Remaining())
	}
}

func TestSuspendClock(t *testing.T) {
	var clock suspendClock
	var monotonic, wall int64 = 1e9, 5e15
	start := clock.read(monotonic, wall)
	for _, step := range []struct{ monotonic, wall, expected int64 }{
		{1e9, 1e9, 1e9},         // the machine runs
		{1e6, 6e10, 6e10},       // it sleeps
		{1e9, 1e9 + 1e6, 1e9},   // the time of day is corrected a little
		{0, -9e10, 0},           // it is set back
		{0, 3e10, 3e10},         // the machine sleeps again
		{1e9, 1e9, 1e9},         // it runs
		{1e9, 5 * 1e9, 5 * 1e9}, // the time of day is set ahead, which counts as sleep
	} {
		before := start
		monotonic, wall = monotonic+step.monotonic, wall+step.wall
		start = clock.read(monotonic, wall)
		if got := start - before; got < step.expected || got > step.expected+jumpMin {
			t.Errorf("%v: %d", step, got)
		}
	}
}

func TestClockRuns(t *testing.T) {
	before := now()
	eventually(t, "a later time", func() bool { return now() > before })
}

// Printing a client, for example in a struct of a program, reads no field that other goroutines write.
func TestClientPrintsItsAddresses(t *testing.T) {
	urls := []string{"tcp://127.0.0.1:7335", "unix:/run/redlockd.sock"}
	client, err := New(Config{Addresses: urls, Secret: "hidden"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	const expected = "redlockd client of tcp://127.0.0.1:7335, unix:/run/redlockd.sock"
	if text := fmt.Sprintf("%+v", client); text != expected {
		t.Error(text)
	}
}

// A loss names the failure of an extension only if the lock needed that extension.
func TestFailuresThatEndALock(t *testing.T) {
	failure := replyError("extend", "a", reply{word: "LIMIT", rest: "hold"})
	for _, test := range []struct {
		autoExtend, extended, named bool
	}{
		{true, false, true},
		{true, true, false},
		{false, false, false},
	} {
		l := &Lock{resource: "a", deadline: now() + 60e9, autoExtend: test.autoExtend, failure: failure}
		if test.extended {
			l.moveDeadline(l.deadline+1, now())
		}
		if err := l.expired("its time is over"); strings.Contains(err.Error(), "max_hold") != test.named {
			t.Error(err)
		}
	}
}
