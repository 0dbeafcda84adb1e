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

	"freshet/test/testserver"
)

// broker is a Kafka protocol server in its own process.
type broker struct {
	name    string
	pid     int
	address string
	opts    []kgo.Opt // options of every client

	bare bool // bare server: it does not support ApiVersions requests

	// Set for Freshet only.
	token     string
	http, ops string
}

func (k *broker) client(opts ...kgo.Opt) (*kgo.Client, error) {
	all := append([]kgo.Opt{kgo.ClientID("bench"), kgo.RetryTimeout(time.Minute), kgo.SeedBrokers(k.address)},
		k.opts...)
	return kgo.NewClient(append(all, opts...)...)
}

func startFreshet(b *testing.B) *broker {
	b.Helper()
	s, err := testserver.Start(b.Context(), freshet, b.TempDir(), testserver.Options{Kafka: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Kill)
	mechanism := plain.Auth{User: "bench", Pass: s.Token}.AsMechanism()
	return &broker{
		name: "Freshet", pid: s.PID(), address: s.Kafka, opts: []kgo.Opt{kgo.SASL(mechanism)},
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
