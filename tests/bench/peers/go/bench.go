// Compares client/go with the same algorithm in redigo: pairs of lock and unlock in a second, with
// independent locks, one daemon and five masters. run.sh beside this file builds and starts it:
//
//	bench FIXTURE_COMMAND ROUNDS SECONDS
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
	redlockd "redlockd.dev/client/go"
)

const (
	ttl = 2 * time.Second
	// Goal 4 of docs/design/performance.md: the ratio of pairs with 64 in flight.
	goal = 5
)

// pair locks and unlocks a resource.
type pair func(resource string) error

type cluster struct {
	Daemons []struct{ TCP, Unix string }
	Masters []string
}

func main() {
	log.SetFlags(0)
	rounds, err := strconv.Atoi(os.Args[2])
	check(err)
	seconds, err := strconv.ParseFloat(os.Args[3], 64)
	check(err)
	duration := time.Duration(seconds * float64(time.Second))

	fixture := exec.Command("sh", "-c", os.Args[1])
	fixture.Stderr = os.Stderr
	input, err := fixture.StdinPipe()
	check(err)
	output, err := fixture.StdoutPipe()
	check(err)
	check(fixture.Start())
	defer fixture.Wait()
	defer input.Close()
	io.WriteString(input, `start {"masters": 5, "config": {"log": {"level": "info"}}}`+"\n")
	line, err := bufio.NewReader(output).ReadBytes('\n')
	check(err)
	var c cluster
	check(json.Unmarshal(line, &c))
	if len(c.Daemons) == 0 {
		log.Fatalf("%s", line)
	}

	for _, inFlight := range []int{1, 16, 64} {
		ours, stopOurs := redlockdPair(c.Daemons[0].TCP)
		theirs, stopTheirs := redigoPair(c.Masters, inFlight)
		var ourRates, theirRates, ratios []float64
		for round := 0; round < rounds; round++ {
			a, _ := measure(ours, inFlight, duration)
			b, _ := measure(theirs, inFlight, duration)
			ourRates, theirRates = append(ourRates, a), append(theirRates, b)
			ratios = append(ratios, a/b)
		}
		_, ourP50 := measure(ours, inFlight, duration)
		_, theirP50 := measure(theirs, inFlight, duration)
		stopOurs()
		stopTheirs()
		fmt.Printf("%2d in flight: redlockd %.0f pairs/s (p50 %v), redigo %.0f pairs/s (p50 %v), ratio %.2f\n",
			inFlight, median(ourRates), ourP50, median(theirRates), theirP50, median(ratios))
		if inFlight == 64 {
			verdict := "met"
			if median(ratios) < goal {
				verdict = "not met"
			}
			fmt.Printf("goal 4, pairs/s, client/go 64 / redigo 64: at least %d, %s\n", goal, verdict)
		}
	}
}

// measure returns the pairs per second and the median duration of a pair.
func measure(p pair, inFlight int, duration time.Duration) (float64, time.Duration) {
	var all sync.WaitGroup
	took := make([][]float64, inFlight)
	start := time.Now()
	for i := range took {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			resource := fmt.Sprintf("peers-%d", i)
			for time.Since(start) < duration {
				began := time.Now()
				check(p(resource))
				took[i] = append(took[i], float64(time.Since(began)))
			}
		}(i)
	}
	all.Wait()
	seconds := time.Since(start).Seconds()
	var pairs []float64
	for _, some := range took {
		pairs = append(pairs, some...)
	}
	return float64(len(pairs)) / seconds, time.Duration(median(pairs)).Round(time.Microsecond)
}

func redlockdPair(url string) (pair, func()) {
	client, err := redlockd.New(redlockd.Config{Addresses: []string{url}})
	check(err)
	ctx := context.Background()
	return func(resource string) error {
		lock, err := client.TryLock(ctx, resource, redlockd.WithTTL(ttl))
		if err != nil {
			return err
		}
		return lock.Unlock(ctx)
	}, func() { client.Close() }
}

var release = redis.NewScript(1,
	"if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0")

// redigoPair is Redlock on all masters at once, with a pool of connections for each.
func redigoPair(masters []string, inFlight int) (pair, func()) {
	var pools []*redis.Pool
	for _, url := range masters {
		target := strings.TrimPrefix(url, "redis://")
		pools = append(pools, &redis.Pool{
			MaxIdle: inFlight,
			Dial:    func() (redis.Conn, error) { return redis.Dial("tcp", target) },
		})
	}
	// onAll returns on how many masters f succeeds.
	onAll := func(f func(redis.Conn) bool) int {
		results := make(chan bool, len(pools))
		for _, pool := range pools {
			go func(pool *redis.Pool) {
				conn := pool.Get()
				defer conn.Close()
				results <- f(conn)
			}(pool)
		}
		count := 0
		for range pools {
			if <-results {
				count++
			}
		}
		return count
	}
	quorum := len(pools)/2 + 1
	lockAndUnlock := func(resource string) error {
		var random [20]byte
		rand.Read(random[:])
		token := hex.EncodeToString(random[:])
		start := time.Now()
		locked := onAll(func(conn redis.Conn) bool {
			reply, err := redis.String(conn.Do("SET", resource, token, "NX", "PX", ttl.Milliseconds()))
			return err == nil && reply == "OK"
		})
		drift := ttl/100 + 2*time.Millisecond
		valid := time.Since(start) < ttl-drift
		released := onAll(func(conn redis.Conn) bool {
			n, err := redis.Int(release.Do(conn, resource, token))
			return err == nil && n == 1
		})
		if locked < quorum || released < quorum || !valid {
			return fmt.Errorf("locked on %d masters, released on %d", locked, released)
		}
		return nil
	}
	return lockAndUnlock, func() {
		for _, pool := range pools {
			pool.Close()
		}
	}
}

func median(values []float64) float64 {
	sort.Float64s(values)
	return values[len(values)/2]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
