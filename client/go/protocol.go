package redlockd

import (
	"bytes"
	"errors"
	"net"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Limits of the line protocol (docs/protocol.txt).
const (
	maxResource = 256
	maxSecret   = 256
	maxLabel    = 32
	maxLine     = 2048
	maxSlots    = 1000
	maxWait     = 24 * time.Hour
	tokenLen    = 40
	maxMs       = 1e15 - 1 // a duration in a reply
	maxFence    = 1<<53 - 1
)

// --- addresses and arguments ---

type address struct {
	url     string
	network string // "tcp" or "unix"
	target  string // HOST:PORT or a path
	tls     bool
}

func parseAddress(url string) (address, error) {
	a := address{url: url, network: "tcp"}
	switch {
	case strings.HasPrefix(url, "unix:/"):
		a.network, a.target = "unix", strings.TrimPrefix(url, "unix:")
		return a, nil
	case strings.HasPrefix(url, "tls://"):
		a.tls, a.target = true, strings.TrimPrefix(url, "tls://")
	case strings.HasPrefix(url, "tcp://"):
		a.target = strings.TrimPrefix(url, "tcp://")
	}
	a.target = strings.TrimSuffix(a.target, "/")
	host, port, err := net.SplitHostPort(a.target)
	if err != nil || host == "" || port == "" {
		// The text is not quoted: a URL of Redis can contain a password.
		return a, errors.New("an address must be tcp://HOST:PORT, tls://HOST:PORT or unix:/PATH")
	}
	return a, nil
}

// isWord reports whether s is one word of the protocol: 1 to max bytes without spaces and control
// characters.
func isWord(s string, max int) bool {
	for i := 0; i < len(s); i++ {
		if s[i] <= ' ' || s[i] == 0x7f {
			return false
		}
	}
	return len(s) > 0 && len(s) <= max
}

func isLabel(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '_' && c != '.' && c != ':' && c != '-' {
			return false
		}
	}
	return len(s) > 0 && len(s) <= maxLabel
}

// inByteOrder returns the names without duplicates, in the order in which all clients lock several
// resources.
func inByteOrder(names []string) []string {
	sorted := append([]string(nil), names...)
	sort.Strings(sorted)
	distinct := sorted[:0]
	for i, name := range sorted {
		if i == 0 || name != sorted[i-1] {
			distinct = append(distinct, name)
		}
	}
	return distinct
}

// --- requests ---

// request is a LOCK, EXTEND or UNLOCK. It can be sent again over another connection.
type request struct {
	verb     string
	resource string
	token    string // EXTEND, UNLOCK
	ttlMs    int64  // LOCK, EXTEND
	slots    int    // LOCK: 0 for the lock itself
	// waitUntil is when the wait of a LOCK ends, on the clock of now(); 0 for no wait. A LOCK that
	// is sent again waits only for the rest.
	waitUntil           int64
	fence, hold, linger bool
}

// appendTo appends the line of the request.
func (r *request) appendTo(line []byte, tag uint64, at int64) []byte {
	line = append(line, '#')
	line = strconv.AppendUint(line, tag, 10)
	line = append(line, ' ')
	line = append(line, r.verb...)
	line = append(line, ' ')
	line = append(line, r.resource...)
	if r.token != "" {
		line = append(line, ' ')
		line = append(line, r.token...)
	}
	if r.ttlMs > 0 {
		line = append(line, ' ')
		line = strconv.AppendInt(line, r.ttlMs, 10)
	}
	if r.slots > 0 {
		line = append(line, " SLOTS "...)
		line = strconv.AppendInt(line, int64(r.slots), 10)
	}
	if wait := r.waitUntil - at; wait > 0 {
		line = append(line, " WAIT "...)
		line = strconv.AppendInt(line, (wait+1e6-1)/1e6, 10)
	}
	if r.fence {
		line = append(line, " FENCE"...)
	}
	if r.hold {
		line = append(line, " HOLD"...)
	}
	if r.linger {
		line = append(line, " LINGER"...)
	}
	return append(line, '\n')
}

// --- replies ---

// reply is the reply to a request, or the error of the connection that ended before it.
type reply struct {
	word  string // the outcome
	rest  string
	grant grant // of OK to LOCK and EXTEND
	err   error
}

type grant struct {
	token    string
	fence    int64 // 0: none
	slot     string
	deadline int64 // on the clock of now()
}

// splitLine splits a line, without its LF, into the tag and the text. The tag is empty if the line
// has none.
func splitLine(line []byte) (tag, text []byte, ok bool) {
	for _, c := range line {
		if c < ' ' || c == 0x7f {
			return nil, nil, false
		}
	}
	if len(line) == 0 || line[0] != '#' {
		return nil, line, len(line) > 0
	}
	tag, text, ok = bytes.Cut(line[1:], []byte{' '})
	return tag, text, ok && len(tag) > 0 && len(text) > 0
}

func parseNumber(s string, max int64) (int64, bool) {
	if len(s) == 0 || len(s) > 18 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	var n int64
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, n <= max
}

func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		if (s[i] < '0' || s[i] > '9') && (s[i] < 'a' || s[i] > 'f') {
			return false
		}
	}
	return len(s) == tokenLen
}

// parseGrant parses what follows OK: "<token> <validity_ms> <elapsed_ms>", after LOCK also the
// fence and, with SLOTS, the slot. False: this is not a reply to the request.
func parseGrant(r *request, rest string, sent, received int64) (grant, bool) {
	var words [5]string
	for i := range words {
		words[i], rest, _ = strings.Cut(rest, " ")
	}
	g := grant{token: words[0]}
	validity, ok := parseNumber(words[1], r.ttlMs)
	elapsed, ok2 := parseNumber(words[2], maxMs)
	if !isToken(g.token) || !ok || !ok2 {
		return g, false
	}
	// The daemon cannot have spent more time than has passed here.
	granted := received
	if elapsed <= (received-sent)/1e6 {
		granted = sent + elapsed*1e6
	}
	g.deadline = granted + validity*1e6
	if r.verb == "EXTEND" {
		return g, g.token == r.token
	}
	if words[3] != "-" {
		g.fence, ok = parseNumber(words[3], maxFence)
		ok = ok && g.fence > 0
	} else {
		ok = !r.fence
	}
	if r.slots > 0 {
		g.slot = words[4]
		prefix := r.resource + "#"
		n, isNumber := parseNumber(strings.TrimPrefix(g.slot, prefix), int64(r.slots))
		ok = ok && strings.HasPrefix(g.slot, prefix) && isNumber && n > 0
	}
	return g, ok
}
