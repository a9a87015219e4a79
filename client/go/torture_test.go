package redlockd

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// claim is a time during which a client was sure to hold the lock, on the clock of now().
type claim struct {
	from, to int64
	fence    int64
}

// TestTorture lets clients contend for one lock while daemons and masters are killed and stopped,
// for REDLOCKD_TORTURE seconds. No two of them may be sure to hold the lock at the same time, and
// fencing tokens must grow.
func TestTorture(t *testing.T) {
	seconds, _ := strconv.Atoi(os.Getenv("REDLOCKD_TORTURE"))
	if seconds == 0 {
		t.Skip("REDLOCKD_TORTURE is not set")
	}
	c := startCluster(t, `{"daemons": 2, "masters": 5, "config": {"locks": {"max_ttl": "4s"}}}`)
	end := now() + int64(seconds)*1e9
	var mu sync.Mutex
	var claims []claim
	var failed int64
	var all sync.WaitGroup
	for i := 0; i < 12; i++ {
		config := Config{Timeout: time.Second}
		for d := range c.Daemons {
			daemon := c.Daemons[(i+d)%len(c.Daemons)]
			url := daemon.TCP
			if i%4 == 0 {
				url = daemon.Unix
			}
			config.Addresses = append(config.Addresses, url)
		}
		client := newClient(t, config)
		all.Add(1)
		go func(i int) {
			defer all.Done()
			for random := rand.New(rand.NewSource(int64(i))); now() < end; {
				opts := []Option{WithFence(), WithTTL(4 * time.Second), WithWait(2 * time.Second)}
				opts = append(opts, [][]Option{nil, {WithHold()}, {WithAutoExtend()}}[i%3]...)
				ctx, cancel := context.WithTimeout(context.Background(),
					time.Duration(random.Intn(3000))*time.Millisecond)
				lock, err := client.Lock(ctx, "torture", opts...)
				if err != nil {
					atomic.AddInt64(&failed, 1)
					cancel()
					continue
				}
				held := claim{now(), 0, lock.Fence()}
				until := held.from + random.Int63n(1e6)
				if random.Intn(15) == 0 {
					until = held.from + random.Int63n(6e9)
				}
				for {
					at := now()
					if lock.Err() != nil || lock.Remaining() == 0 || at > until {
						break
					}
					held.to = at // the lock was still held after the clock was read
					time.Sleep(50 * time.Microsecond)
				}
				if random.Intn(3) > 0 {
					cancel()
				}
				lock.Unlock(ctx)
				cancel()
				if held.to > 0 {
					mu.Lock()
					claims = append(claims, held)
					mu.Unlock()
				}
			}
		}(i)
	}
	for random := rand.New(rand.NewSource(int64(seconds))); now() < end-5e9; {
		pause := func() { time.Sleep(time.Duration(random.Intn(1500)) * time.Millisecond) }
		pause()
		n := random.Intn(len(c.Daemons))
		switch random.Intn(6) {
		case 0:
			c.do(t, fmt.Sprintf("kill-daemon %d", n))
			pause()
			c.do(t, fmt.Sprintf("start-daemon %d", n))
		case 1:
			c.do(t, fmt.Sprintf("stop-daemon %d", n))
			pause()
			c.do(t, fmt.Sprintf("start-daemon %d", n))
		case 2, 3:
			c.do(t, fmt.Sprintf("pause-daemon %d", n))
			pause()
			pause()
			c.do(t, fmt.Sprintf("continue-daemon %d", n))
		case 4:
			c.do(t, "cut-masters")
			pause()
			c.do(t, "heal-masters")
		case 5:
			m := random.Intn(5)
			c.do(t, fmt.Sprintf("kill-master %d", m))
			pause()
			c.do(t, fmt.Sprintf("start-master %d", m))
		}
	}
	all.Wait()
	if len(claims) == 0 {
		t.Error("no client has held the lock")
	}
	fmt.Printf("%d claims, %d failures to lock, %d overlaps\n", len(claims), failed,
		overlaps(t, claims))
}

// overlaps sorts the claims and counts those that begin before another one has ended.
func overlaps(t *testing.T, claims []claim) (count int) {
	sort.Slice(claims, func(i, j int) bool { return claims[i].from < claims[j].from })
	var last claim // the one that ends last so far
	for _, next := range claims {
		if next.from < last.to || next.fence <= last.fence {
			t.Errorf("%+v and %+v", last, next)
			count++
		}
		if next.to > last.to {
			last = next
		}
	}
	return count
}
