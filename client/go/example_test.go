package redlockd_test

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"time"

	redlockd "redlockd.dev/client/go"
)

var (
	ctx    = context.Background()
	client *redlockd.Client
	db     *sql.DB
	ca     *tls.Config
)

func deploy(context.Context) error { return nil }

func Example() {
	client, err := redlockd.New(redlockd.Config{
		Addresses: []string{"unix:/run/redlockd.sock", "tcp://locks.example:7335"},
		Name:      "deployer",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	lock, err := client.Lock(ctx, "deploy",
		redlockd.WithTTL(30*time.Second), redlockd.WithWait(10*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock(ctx)
	if err := deploy(lock.Context()); err != nil {
		log.Print(err)
	}
}

func ExampleNew_tls() {
	client, err := redlockd.New(redlockd.Config{
		Addresses:  []string{"tls://a.example:7335", "tls://b.example:7335"},
		TLS:        ca, // RootCAs, and Certificates if the daemon requires one
		SecretFile: "/etc/deployer/redlockd.secret",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
}

func ExampleClient_TryLock() {
	lock, err := client.TryLock(ctx, "nightly")
	if errors.Is(err, redlockd.ErrNotAcquired) {
		fmt.Println("it already runs somewhere")
		return
	} else if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock(ctx)
}

// The daemon keeps the lock as long as this process lives.
func ExampleWithHold() {
	lock, err := client.Lock(ctx, "leader", redlockd.WithHold())
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock(ctx)
	<-lock.Context().Done()
	log.Print(lock.Err()) // the daemon could not keep the lock
}

func ExampleWithAutoExtend() {
	lock, err := client.Lock(ctx, "report", redlockd.WithAutoExtend())
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock(ctx)
	for step := 0; step < 100; step++ {
		if lock.Err() != nil { // before each step that needs the lock
			log.Fatal(lock.Err())
		}
	}
}

// The store refuses a write of a holder whose lock has ended.
func ExampleWithFence() {
	lock, err := client.Lock(ctx, "job:7", redlockd.WithFence())
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock(ctx)
	result, err := db.ExecContext(lock.Context(),
		"UPDATE job SET state = 'done', fence = ? WHERE id = 7 AND fence < ?",
		lock.Fence(), lock.Fence())
	if err != nil {
		log.Fatal(err)
	}
	if rows, _ := result.RowsAffected(); rows == 0 {
		log.Fatal("another client was granted the lock after this one")
	}
}

// At most three at a time.
func ExampleWithSlots() {
	lock, err := client.Lock(ctx, "deploys", redlockd.WithSlots(3))
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock(ctx)
	fmt.Println(lock.Resource()) // such as deploys#2
}

func ExampleClient_LockAll() {
	locks, err := client.LockAll(ctx, []string{"account:1", "account:2"})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Unlock(ctx)
	_ = deploy(locks.Context())
}
