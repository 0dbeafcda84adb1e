package kafka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"freshet/bench/process"
	"freshet/test/testserver"
)

// broker is a Kafka protocol server in its own process.
type broker struct {
	name    string
	pid     int
	address string
	opts    []kgo.Opt // options of every client

	bare bool    // bare server: it does not support ApiVersions requests
	idle float64 // CPU time that it uses without clients, in cores

	// Set for Freshet only.
	token     string
	http, ops string
}

func (k *broker) client(opts ...kgo.Opt) (*kgo.Client, error) {
	all := append([]kgo.Opt{kgo.ClientID("bench"), kgo.RetryTimeout(time.Minute), kgo.SeedBrokers(k.address)},
		k.opts...)
	return kgo.NewClient(append(all, opts...)...)
}

func startFreshet(b *testing.B, name, binary string) *broker {
	b.Helper()
	s, err := testserver.Start(b.Context(), binary, b.TempDir(), testserver.Options{Kafka: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Kill)
	mechanism := plain.Auth{User: "bench", Pass: s.Token}.AsMechanism()
	return &broker{
		name: name, pid: s.PID(), address: s.Kafka, opts: []kgo.Opt{kgo.SASL(mechanism)},
		token: s.Token, http: s.URL, ops: s.Ops,
	}
}

// startKafka starts Apache Kafka with hack/kafka-peer.sh, whose path is in
// FRESHET_BENCH_KAFKA.
func startKafka(b *testing.B, script, name string, settings ...string) *broker {
	b.Helper()
	port, err := freePort()
	if err != nil {
		b.Fatal(err)
	}
	dir := filepath.Join(b.TempDir(), "kafka")
	cmd := exec.CommandContext(b.Context(), script, append([]string{dir, fmt.Sprint(port)}, settings...)...)
	log, err := os.Create(dir + ".log")
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = log.Close()
	})
	k := &broker{name: name, pid: cmd.Process.Pid, address: fmt.Sprintf("127.0.0.1:%d", port)}
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute) // the script may have to download libraries
	defer cancel()
	c, err := k.client(kgo.RetryTimeout(time.Second))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	for {
		if err = c.Ping(ctx); err == nil {
			return k
		}
		select {
		case <-time.After(500 * time.Millisecond):
			continue
		case <-ctx.Done():
		case <-ended:
		}
		text, _ := os.ReadFile(log.Name())
		b.Fatalf("%s did not start: %v\n%s", name, err, text)
	}
}

// measureIdle measures the CPU time that the broker uses without clients.
func (k *broker) measureIdle(ctx context.Context) error {
	if _, err := k.settle(ctx); err != nil { // it has just started
		return err
	}
	const length = 5 * time.Second
	before, err := process.CPU(k.pid)
	if err != nil {
		return err
	}
	began := time.Now()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(length):
	}
	after, err := process.CPU(k.pid)
	k.idle = (after - before).Seconds() / time.Since(began).Seconds()
	return err
}

// settle waits until the broker has finished the work that it does after its last
// acknowledgement, and returns how long that took.
func (k *broker) settle(ctx context.Context) (time.Duration, error) {
	const (
		step  = 500 * time.Millisecond
		quiet = 0.05 // of a core, more than when idle
		most  = 30 * time.Second
	)
	began := time.Now()
	last, err := process.CPU(k.pid)
	for since := began; err == nil && time.Since(began) < most; {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(step):
		}
		var now time.Duration
		if now, err = process.CPU(k.pid); err != nil {
			break
		}
		if (now-last).Seconds()/time.Since(since).Seconds() < k.idle+quiet {
			break
		}
		last, since = now, time.Now()
	}
	return time.Since(began), err
}

// freePort returns a free port whose successor is free too, below the range that the
// system uses for outgoing connections.
func freePort() (int, error) {
	for range 100 {
		port := 20_000 + rand.IntN(10_000)
		first, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		second, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+1))
		_ = first.Close()
		if err == nil {
			_ = second.Close()
			return port, nil
		}
	}
	return 0, errors.New("no two consecutive free ports")
}
