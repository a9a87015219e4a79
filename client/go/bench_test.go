package redlockd

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// TestBench prints pairs of LOCK and UNLOCK per second, with REDLOCKD_BENCH=tcp://HOST:PORT or with
// five masters of its own.
func TestBench(t *testing.T) {
	url := os.Getenv("REDLOCKD_BENCH")
	if url == "" {
		t.Skip("REDLOCKD_BENCH is not set")
	}
	if url == "own" {
		url = startCluster(t, `{"masters": 5}`).Daemons[0].TCP
	}
	for _, inFlight := range []int{1, 16, 64} {
		client, err := New(Config{Addresses: []string{url}})
		must(t, err)
		var all sync.WaitGroup
		counts := make([]int, inFlight)
		ctx := context.Background()
		start := time.Now()
		for i := range counts {
			all.Add(1)
			go func(i int) {
				defer all.Done()
				name := fmt.Sprintf("bench-%d", i)
				for time.Since(start) < 3*time.Second {
					lock, err := client.TryLock(ctx, name, WithTTL(2*time.Second))
					if err == nil {
						err = lock.Unlock(ctx)
					}
					if err != nil {
						t.Error(err)
						return
					}
					counts[i]++
				}
			}(i)
		}
		all.Wait()
		sum := 0
		for _, n := range counts {
			sum += n
		}
		fmt.Printf("%d in flight: %.0f pairs/s\n", inFlight, float64(sum)/time.Since(start).Seconds())
		client.Close()
	}
}
