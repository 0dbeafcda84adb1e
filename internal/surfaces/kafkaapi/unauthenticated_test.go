package kafkaapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/identity"
	"freshet/test/tally"
)

// TestAttackExistence checks that callers without credentials of an organization cannot distinguish
// its existing clusters from missing ones.
func TestAttackExistence(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	stranger, _ := w.identity.Account("other", "somebody")
	revoked, _ := w.identity.Account(organization, "gone")
	late := w.identity.Token(revoked, identity.InstanceAudience(organization, instance))
	w.identity.Directory.DeleteAccount(organization, "gone", revoked.UID)
	attempts, disclosed := 0, 0
	for what, token := range map[string]string{
		"made up": "x.y.z", "of another organization": w.identity.Token(stranger,
			identity.InstanceAudience("other", instance)),
		"of an account that is gone": late, "with a wrong signature": w.token[:len(w.token)-4] + "AAAA",
	} {
		answers := map[string]string{}
		for _, cluster := range []string{"acme/prod", "acme/none", "nobody/none"} {
			for mechanism, data := range map[string]string{
				"PLAIN":       "\x00@" + cluster + "\x00token:" + token,
				"OAUTHBEARER": "n,,\x01auth=Bearer " + token + "\x01logicalCluster=" + cluster + "\x01\x01",
			} {
				attempts++
				got := w.tryAuthenticate(mechanism, data)
				if first, known := answers[mechanism]; known && first != got {
					disclosed++
					t.Errorf("token %s for %s: got %q, and %q for another", what, cluster, got, first)
				}
				answers[mechanism] = got
			}
		}
	}
	// Members of the organization get the reason.
	if got, want := w.tryAuthenticate("PLAIN", "\x00@acme/none\x00token:"+w.token), "58 no such cluster"; got != want {
		t.Errorf("a member's token for acme/none: got %q, want %q", got, want)
	}
	tally.Attack(t, "unauthenticated clients probe which clusters exist", attempts, disclosed)
}

// tryAuthenticate tries to authenticate and returns the response.
func (w *harness) tryAuthenticate(mechanism, data string) string {
	w.Helper()
	r := &rawClient{harness: w}
	var err error
	if r.conn, err = (&net.Dialer{}).DialContext(w.Context(), "tcp", w.address); err != nil {
		w.Fatal(err)
	}
	defer r.close()
	r.in = bufio.NewReader(r.conn)
	handshake := kmsg.NewPtrSASLHandshakeRequest()
	handshake.Version, handshake.Mechanism = 1, mechanism
	authenticate := kmsg.NewPtrSASLAuthenticateRequest()
	authenticate.Version, authenticate.SASLAuthBytes = 2, []byte(data)
	if _, err := r.exchange(handshake, nil); err != nil {
		w.Fatal(err)
	}
	response, err := r.exchange(authenticate, nil)
	if err != nil {
		w.Fatal(err)
	}
	answer, _ := response.(*kmsg.SASLAuthenticateResponse)
	return fmt.Sprintf("%d %s", answer.ErrorCode, *answer.ErrorMessage)
}

// dialFrom connects from a local address.
func (w *harness) dialFrom(address string) net.Conn {
	w.Helper()
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}).DialContext(w.Context(),
		"tcp", w.address)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestBurstOfClients opens the maximum of connections of an address before any of them
// authenticates, as clients do after a restart, and checks that all are served.
func TestBurstOfClients(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	const burst = 900
	clients := make([]*rawClient, burst)
	for i := range clients {
		clients[i] = &rawClient{harness: w, token: w.token, conn: w.dialFrom("127.0.0.1")}
	}
	var served atomic.Int64
	var group sync.WaitGroup
	for _, c := range clients {
		group.Go(func() {
			c.login()
			if _, err := c.exchange(kmsg.NewPtrApiVersionsRequest(), nil); err == nil {
				served.Add(1)
			}
		})
	}
	group.Wait()
	if served.Load() != burst {
		t.Errorf("simultaneous clients of one address: got %d served, want %d", served.Load(), burst)
	}
	if got := w.server.Stats().RejectedConnections; got != 0 {
		t.Errorf("rejected connections: got %d, want 0", got)
	}
}

// TestClientsAreServedDuringAttack holds more unauthenticated connections open than the limits allow, and checks
// that authenticating clients are served all the time.
func TestClientsAreServedDuringAttack(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	client := &rawClient{harness: w, token: w.token}
	client.open()
	defer client.close()
	serves := func(when string) {
		t.Helper()
		if _, err := client.exchange(kmsg.NewPtrApiVersionsRequest(), nil); err != nil {
			t.Errorf("existing client, %s: got %v, want a response", when, err)
		}
		other := &rawClient{harness: w, token: w.token}
		other.conn = w.dialFrom("127.0.0.2")
		other.login()
		other.close()
	}
	for range unauthenticatedByAddress + 100 {
		w.dialFrom("127.0.0.3")
	}
	serves("with many strangers of one address")
	for i := range unauthenticatedInTotal/unauthenticatedByAddress + 1 {
		for range unauthenticatedByAddress {
			w.dialFrom(fmt.Sprintf("127.0.1.%d", i+1))
		}
	}
	serves("with many strangers of many addresses")
}

// TestAttackSlowCredentials sends credentials byte by byte and checks that authentication times out
// after 10 s.
func TestAttackSlowCredentials(t *testing.T) {
	t.Parallel()
	if !tally.Long() {
		t.Skip("NOT TESTED: slow credentials: set FRESHET_LONG=1")
	}
	w := newHarness(t)
	conn := w.dialFrom("127.0.0.1")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.ReadFull(conn, make([]byte, 1))
	}()
	if _, err := conn.Write([]byte{0, 0, 0x60, 0}); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	over := time.After(15 * time.Second)
	for sent := 0; ; sent++ {
		select {
		case <-ended:
			tally.Attack(t, "credentials a byte at a time", sent, 0)
			return
		case <-over:
			tally.Attack(t, "credentials a byte at a time", sent, 1)
			return
		case <-tick.C:
			_, _ = conn.Write([]byte{0})
		}
	}
}
