package redlockd

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
)

// The kinds of errors, for [errors.Is]. Every error of this package is an [*Error].
var (
	// ErrNotAcquired: another client holds the lock, the wait has ended, or the grant came too
	// late.
	ErrNotAcquired = errors.New("not acquired")
	// ErrNoQuorum: too few masters answered in time. A lock that was held keeps its deadline.
	ErrNoQuorum = errors.New("no quorum")
	// ErrLost: the lock is not held any more. This is final.
	ErrLost = errors.New("lost")
	// ErrDenied: the secret is wrong or missing, or the user may not do this.
	ErrDenied = errors.New("denied")
	// ErrUnavailable: no daemon could be reached, the daemon is at a limit, or the client is
	// closed.
	ErrUnavailable = errors.New("unavailable")
	// ErrInvalid: an argument is malformed or out of range.
	ErrInvalid = errors.New("invalid argument")
	// ErrUnlocked: the lock has been unlocked by its holder.
	ErrUnlocked = errors.New("unlocked")
)

// Error describes why a request failed.
type Error struct {
	Op       string // "lock", "extend", "unlock" or "connect"
	Resource string // empty for "connect"
	Kind     error  // one of the kinds above
	Text     string // what happened, for people
	// Hint says how soon the lock can be free if no client extends or releases it. It is -1 if that
	// is not known.
	Hint time.Duration
	Err  error // the cause, such as the error of a context; can be nil

	limit    string // of the daemon, which is reached
	isCancel bool   // of a context
}

func (e *Error) Error() string {
	text := "redlockd: " + e.Op
	if e.Resource != "" {
		text += " " + strconv.Quote(e.Resource)
	}
	text += ": " + e.Text
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Is reports whether target is the kind of the error.
func (e *Error) Is(target error) bool {
	return target == e.Kind || e.isCancel && target == context.Canceled
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func newError(op, resource string, kind error, text string, cause error) *Error {
	return &Error{Op: op, Resource: resource, Kind: kind, Text: text, Hint: -1, Err: cause}
}

// losses explains the reasons of LOST.
var losses = map[string]string{
	"noquorum": "too few masters could vote",
	"late":     "the masters answered too late",
	"gone":     "the token does not hold it any more",
	"limit":    "it was held for as long as the daemon allows (max_hold)",
	"overdue":  "the daemon was stopped or too busy",
	"shutdown": "the daemon is stopping",
}

// limits explains the limits at which the daemon does not extend a lock any more.
var limits = map[string]string{
	"hold":       losses["limit"],
	"extensions": "it was extended as often as the daemon allows (max_extensions)",
}

func explainLoss(reason string) string {
	if text := losses[reason]; text != "" {
		return text
	}
	return reason
}

// replyError describes a reply to LOCK, EXTEND or UNLOCK that is not OK.
func replyError(op, resource string, r reply) *Error {
	kind, text := ErrUnavailable, "unexpected reply "+r.word
	details := r.rest
	switch r.word {
	case "HELD":
		e := newError(op, resource, ErrNotAcquired, "another client holds the lock", nil)
		hint, _, _ := strings.Cut(r.rest, " ")
		if ms, ok := parseNumber(hint, maxMs); ok {
			e.Hint = time.Duration(ms) * time.Millisecond
			e.Text += "; it can be free in " + e.Hint.String()
		}
		return e
	case "LATE":
		kind, text, details = ErrNoQuorum, "the masters answered too late", ""
		if op == "lock" {
			kind = ErrNotAcquired
		}
	case "NOQUORUM":
		kind, text = ErrNoQuorum, "too few masters could vote"
	case "GONE":
		kind, text, details = ErrLost, "the token does not hold the lock any more", ""
	case "DENIED":
		kind, text = ErrDenied, "access denied"
		if strings.HasPrefix(details, "authenticate first:") {
			details += "; set Secret or SecretFile"
		}
	case "LIMIT":
		kind, text = ErrUnavailable, "a limit of the daemon is reached"
	case "ERR":
		kind, text = ErrInvalid, "the daemon rejected the request"
		if strings.HasPrefix(details, "ttl-range ") {
			details += "; for work that takes longer, let the lock be extended" +
				" (WithAutoExtend)"
		}
	}
	if details != "" {
		text += ": " + details
	}
	e := newError(op, resource, kind, text, nil)
	if r.word == "LIMIT" {
		e.limit = r.rest
	}
	return e
}
