// The scenario of tests/clients/test_redis_clients.py with redigo.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

func expect(condition bool, what string) {
	if !condition {
		fmt.Println("failed:", what)
		os.Exit(1)
	}
}

func ok(step string) {
	fmt.Println("ok", step)
}

func dial(secret string) (redis.Conn, error) {
	return redis.Dial("tcp", os.Getenv("HOST")+":"+os.Getenv("PORT"),
		redis.DialUsername("app"), redis.DialPassword(secret),
		redis.DialReadTimeout(time.Minute)) // longer than any WAIT
}

func connect() redis.Conn {
	conn, err := dial(os.Getenv("SECRET"))
	expect(err == nil, fmt.Sprint(err))
	return conn
}

// reply of an array that begins with the outcome.
func array(conn redis.Conn, verb string, words ...interface{}) []interface{} {
	values, err := redis.Values(conn.Do(verb, words...))
	expect(err == nil, fmt.Sprint(verb, words, err))
	return values
}

func outcome(values []interface{}) string {
	return string(values[0].([]byte))
}

func token(values []interface{}) string {
	expect(outcome(values) == "OK", fmt.Sprint(values))
	return string(values[1].([]byte))
}

func status(conn redis.Conn, verb string, words ...interface{}) string {
	text, err := redis.String(conn.Do(verb, words...))
	expect(err == nil, fmt.Sprint(verb, words, err))
	return text
}

func errorOf(conn redis.Conn, verb string, words ...interface{}) string {
	_, err := conn.Do(verb, words...)
	expect(err != nil, fmt.Sprint("no error: ", verb, words))
	return err.Error()
}

func main() {
	a, b := connect(), connect()

	grant := array(a, "LOCK", "x", "30s")
	expect(len(token(grant)) == 40 && grant[2].(int64) > 0 && grant[4] == nil, "LOCK")
	ok("lock")

	held := array(b, "LOCK", "x", "30s")
	expect(outcome(held) == "HELD" && held[1].(int64) > 0, "HELD")
	ok("exclusion")

	expect(token(array(a, "EXTEND", "x", token(grant), "40s")) == token(grant), "EXTEND")
	ok("extend")

	expect(status(a, "UNLOCK", "x", token(grant)) == "OK", "UNLOCK")
	expect(status(a, "UNLOCK", "x", token(grant)) == "GONE", "UNLOCK again")
	ok("unlock")

	token(array(a, "LOCK", "x", "2s"))
	token(array(b, "LOCK", "x", "30s", "WAIT", "30s"))
	ok("wait")

	first := array(a, "LOCK", "f", "30s", "FENCE")
	expect(status(a, "UNLOCK", "f", token(first)) == "OK", "UNLOCK")
	expect(array(a, "LOCK", "f", "30s", "FENCE")[4].(int64) > first[4].(int64), "FENCE")
	ok("fence")

	expect(strings.Contains(errorOf(a, "LOCK", "x", "1ms"), "ttl-range TTL 1ms must be between"), "the error")
	ok("error")

	_, err := dial("wrong")
	expect(err != nil && strings.HasPrefix(err.Error(), "WRONGPASS"), fmt.Sprint(err))
	ok("secret")

	expect(strings.Contains(errorOf(a, "LOCK", "h", "3s", "HOLD"), "send HELLO 3 first"), "HOLD")
	ok("hold")

	for i := 0; i < 64; i++ {
		a.Send("LOCK", fmt.Sprint("many:", i), "30s")
	}
	a.Flush()
	for i := 0; i < 64; i++ {
		values, err := redis.Values(a.Receive())
		expect(err == nil && len(token(values)) == 40, "many")
	}
	ok("many")

	nodes := array(a, "NODES")
	votes := 0
	for _, node := range nodes {
		fields, _ := redis.Values(node, nil)
		for i := 0; i < len(fields); i += 2 {
			if string(fields[i].([]byte)) == "vote" && string(fields[i+1].([]byte)) == "yes" {
				votes++
			}
		}
	}
	expect(len(nodes) == 3 && votes == 3, "NODES")
	ok("listing")

	expect(strings.HasPrefix(errorOf(a, "BREAK", "x"), "NOPERM"), "BREAK")
	ok("denied")

	// A pool replaces a connection that has failed.
	pool := &redis.Pool{
		MaxIdle: 1,
		Dial:    func() (redis.Conn, error) { return dial(os.Getenv("SECRET")) },
	}
	conn := pool.Get()
	kept := token(array(conn, "LOCK", "kept", "50s"))
	conn.Close()
	fmt.Println("restart")
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	expect(line == "restarted\n", line)
	conn = pool.Get()
	errorOf(conn, "STATUS", "kept")
	conn.Close()
	conn = pool.Get()
	expect(outcome(array(conn, "STATUS", "kept")) == "HELD", "STATUS")
	expect(status(conn, "UNLOCK", "kept", kept) == "OK", "UNLOCK")
	ok("reconnect")
}
