// A guest of the torture with the Go package (tests/torture/guests.h).
package main

import (
	"context"
	"fmt"
	"log"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	redlockd "redlockd.dev/client/go"
)

const (
	workers = 4
	grown   = int64(5 * time.Millisecond)
)

var overclaim, _ = strconv.ParseInt(os.Getenv("GUEST_OVERCLAIM_MS"), 10, 64)

// monotonic reads CLOCK_MONOTONIC.
func monotonic() int64 {
	var now syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano()
}

func write(form string, values ...any) {
	fmt.Fprintf(os.Stdout, os.Getenv("GUEST_NAME")+" "+form+"\n", values...)
}

type claim struct {
	lock  *redlockd.Lock
	ttl   time.Duration
	until int64
}

// report reports how long the lock is held: at first, and when that has grown.
func (c *claim) report() {
	now := monotonic()
	until := now + int64(c.lock.Remaining()) + overclaim*1e6
	verb := "more"
	if c.until == 0 {
		verb = "held"
	} else if until < c.until+grown {
		return
	}
	write("%s %s %s %d %d %d %d", verb, c.lock.Resource(), c.lock.Token(), c.lock.Fence(),
		c.ttl.Milliseconds(), now, until)
	c.until = until
}

func visit(client *redlockd.Client, random *rand.Rand) error {
	ms := func(limit int) time.Duration { return time.Duration(random.Intn(limit)) * time.Millisecond }
	way := random.Intn(4) // plain, extended, automatically extended, hold
	c := claim{ttl: 600*time.Millisecond + ms(401)}
	name := fmt.Sprintf("r#%d", random.Intn(6))
	wait := time.Duration(0)
	if random.Intn(3) > 0 {
		wait = ms(2000)
	}
	opts := []redlockd.Option{redlockd.WithTTL(c.ttl), redlockd.WithWait(wait)}
	if random.Intn(2) == 0 {
		opts = append(opts, redlockd.WithFence())
	}
	if random.Intn(3) == 0 {
		name = "r"
		opts = append(opts, redlockd.WithSlots(1+random.Intn(5)))
	}
	switch way {
	case 2:
		opts = append(opts, redlockd.WithAutoExtend())
	case 3:
		opts = append(opts, redlockd.WithHold())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond+ms(4000))
	defer cancel()
	lock, err := client.Lock(ctx, name, opts...)
	if err != nil {
		return err
	}
	c.lock = lock
	c.report()
	work := 60
	if random.Intn(15) == 0 {
		work = 1500
	}
	for end := time.Now().Add(ms(work)); lock.Err() == nil && time.Now().Before(end); c.report() {
		time.Sleep(10 * time.Millisecond)
		if way == 1 && random.Intn(10) == 0 {
			lock.Extend(ctx, c.ttl)
		}
	}
	if way < 2 && random.Intn(25) == 0 {
		return nil // it expires
	}
	write("free %s %s", lock.Resource(), lock.Token())
	return lock.Unlock(ctx)
}

func play(number int) {
	seed, _ := strconv.ParseInt(os.Getenv("GUEST_SEED"), 10, 64)
	random := rand.New(rand.NewSource(seed*100 + int64(number)))
	daemons := strings.Fields(os.Getenv("GUEST_DAEMONS"))
	addresses := append(daemons[number:len(daemons):len(daemons)], daemons[:number]...)
	client, err := redlockd.New(redlockd.Config{Addresses: addresses, Timeout: time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	for {
		if _, err := os.Stat(os.Getenv("GUEST_FINISH")); err == nil {
			return
		}
		if visit(client, random) != nil {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

func main() {
	var all sync.WaitGroup
	for i := 0; i < workers; i++ {
		all.Add(1)
		go func(number int) {
			defer all.Done()
			play(number)
		}(i)
	}
	all.Wait()
}
