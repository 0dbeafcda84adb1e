package kafkadiff

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/test/freeport"
	"freshet/test/testserver"
)

var freshetBinary string

func TestMain(m *testing.M) {
	if os.Getenv("FRESHET_TEST_JAVA") == "" {
		os.Exit(m.Run()) // the test skips itself
	}
	testserver.Main(m, &freshetBinary)
}

const (
	peerScript = "../../hack/kafka-peer.sh"
	libraries  = "../../.cache/java/platform/pom.xml" // hack/java-libs.sh downloads them
)

// broker is a broker to send requests to.
type broker struct {
	name    string
	address string
	token   string // credential; "" for none
	ranges  map[int16]versions
}

// versions is a range of versions of an API.
type versions struct{ min, max int16 }

// connect opens a connection and authenticates it.
func (b *broker) connect(ctx context.Context) (*wire, error) {
	w, err := dial(ctx, b.address)
	if err != nil || b.token == "" {
		return w, err
	}
	handshake := kmsg.NewPtrSASLHandshakeRequest()
	handshake.Version, handshake.Mechanism = 1, "PLAIN"
	_, err = w.request(handshake)
	var response kmsg.Response
	if err == nil {
		authenticate := kmsg.NewPtrSASLAuthenticateRequest()
		authenticate.SASLAuthBytes = []byte("\x00user\x00token:" + b.token)
		response, err = w.request(authenticate)
	}
	if err == nil {
		if r, _ := response.(*kmsg.SASLAuthenticateResponse); r.ErrorCode != 0 {
			err = fmt.Errorf("authentication: error %d", r.ErrorCode)
		}
	}
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// common returns the versions of an API that both brokers, and this test, support.
func (b *broker) common(key int16) versions { return b.ranges[key] }

// advertised returns the versions that a broker advertises.
func (b *broker) advertised(ctx context.Context) (map[int16]versions, error) {
	w, err := b.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = w.Close() }()
	request := kmsg.NewPtrApiVersionsRequest()
	request.Version, request.ClientSoftwareName, request.ClientSoftwareVersion = 3, "kafkadiff", "1"
	response, err := w.request(request)
	if err != nil {
		return nil, err
	}
	all := make(map[int16]versions)
	r, _ := response.(*kmsg.ApiVersionsResponse)
	for _, row := range r.ApiKeys {
		all[row.ApiKey] = versions{row.MinVersion, row.MaxVersion}
	}
	return all, nil
}

// start starts both brokers and agrees on the versions to compare.
func start(t *testing.T) (kafka, freshet *broker) {
	t.Helper()
	freshet = startFreshet(t)
	kafka = startKafka(t)
	theirs, err := kafka.advertised(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ours, err := freshet.advertised(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	common := make(map[int16]versions)
	for key, v := range ours {
		other, ok := theirs[key]
		if !ok {
			t.Errorf("API %d: freshet advertises it, Kafka does not", key)
			continue
		}
		if v.max != other.max {
			t.Logf("API %d: freshet advertises versions up to %d, Kafka up to %d", key, v.max, other.max)
		}
		known := kmsg.RequestForKey(key)
		common[key] = versions{max(v.min, other.min), min(v.max, other.max, known.MaxVersion())}
	}
	kafka.ranges, freshet.ranges = common, common
	return kafka, freshet
}

func startFreshet(t *testing.T) *broker {
	t.Helper()
	s, err := testserver.Start(t.Context(), freshetBinary, t.TempDir(), testserver.Options{Kafka: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(30 * time.Second); err != nil {
			t.Error(err)
		}
	})
	return &broker{name: "freshet", address: s.Kafka, token: s.Token}
}

// startKafka starts Apache Kafka and waits until it responds.
func startKafka(t *testing.T) *broker {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "kafka")
	log, err := os.Create(dir + ".log")
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := freeport.Addresses(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(addresses[0])
	_, controller, _ := net.SplitHostPort(addresses[1])
	// Kafka may delay assignments to compute them together; without a delay responses do not depend on timing.
	cmd := exec.CommandContext(t.Context(), peerScript, dir, port, "group.consumer.assignment.interval.ms=0")
	cmd.Env = append(os.Environ(), "CONTROLLER_PORT="+controller, "HEAP=512m", "LOG_LEVEL=warn")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = log.Close()
	})
	b := &broker{name: "Kafka", address: addresses[0]}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		if _, err = b.advertised(ctx); err == nil {
			return b
		}
		select {
		case <-time.After(200 * time.Millisecond):
			continue
		case <-ctx.Done():
		case <-ended:
		}
		text, _ := os.ReadFile(log.Name())
		t.Fatalf("Kafka did not start: %v\n%s", err, text)
	}
}

// coordinate waits until a broker coordinates groups: Kafka first creates and loads the
// partitions of an internal topic.
func (b *broker) coordinate(t *testing.T) {
	t.Helper()
	s := &script{T: t, broker: b}
	s.connect()
	defer func() { _ = s.wire.Close() }()
	produce := func() kmsg.Request { return kmsg.NewPtrInitProducerIDRequest() }
	s.until(produce, func(response kmsg.Response) bool {
		r, _ := response.(*kmsg.InitProducerIDResponse)
		return r.ErrorCode == 0
	})
	for i := range 64 {
		group := fmt.Sprintf("warm-%d", i)
		find := func() kmsg.Request {
			r := kmsg.NewPtrFindCoordinatorRequest()
			r.CoordinatorKeys = []string{group}
			return r
		}
		s.until(find, func(response kmsg.Response) bool {
			r, _ := response.(*kmsg.FindCoordinatorResponse)
			return r.Coordinators[0].ErrorCode == 0
		})
		fetch := func() kmsg.Request {
			r := kmsg.NewPtrOffsetFetchRequest()
			r.Groups = []kmsg.OffsetFetchRequestGroup{{Group: group, MemberEpoch: -1}}
			return r
		}
		s.until(fetch, func(response kmsg.Response) bool {
			r, _ := response.(*kmsg.OffsetFetchResponse)
			return r.Groups[0].ErrorCode == 0
		})
	}
}
