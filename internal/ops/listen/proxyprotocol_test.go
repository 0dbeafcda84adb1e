package listen

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"freshet/internal/base/proxies"
	"freshet/test/tally"
)

// v2 returns a header of version 2.
func v2(command, family byte, client, server netip.AddrPort, extension []byte) []byte {
	var body []byte
	if client.IsValid() {
		body = append(body, client.Addr().AsSlice()...)
		body = append(body, server.Addr().AsSlice()...)
		body = binary.BigEndian.AppendUint16(body, client.Port())
		body = binary.BigEndian.AppendUint16(body, server.Port())
	}
	body = append(body, extension...)
	header := append(bytes.Clone(signatureV2), command, family)
	header = binary.BigEndian.AppendUint16(header, uint16(len(body)))
	return append(header, body...)
}

var (
	client4 = netip.MustParseAddrPort("203.0.113.5:4711")
	client6 = netip.MustParseAddrPort("[2001:db8::5]:4711")
	server4 = netip.MustParseAddrPort("192.0.2.1:8443")
	server6 = netip.MustParseAddrPort("[2001:db8::1]:8443")
)

func TestReadProxyHeader(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ header, want string }{
		"v1 IPv4":          {"PROXY TCP4 203.0.113.5 192.0.2.1 4711 8443\r\n", "203.0.113.5:4711"},
		"v1 IPv6":          {"PROXY TCP6 2001:db8::5 2001:db8::1 4711 8443\r\n", "[2001:db8::5]:4711"},
		"v1 health check":  {"PROXY UNKNOWN\r\n", "invalid AddrPort"},
		"v1 unknown, long": {"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", "invalid AddrPort"},
		"v2 IPv4":          {string(v2(commandProxy, familyTCP4, client4, server4, nil)), "203.0.113.5:4711"},
		"v2 IPv6":          {string(v2(commandProxy, familyTCP6, client6, server6, nil)), "[2001:db8::5]:4711"},
		"v2 extension":     {string(v2(commandProxy, familyTCP4, client4, server4, []byte("abc"))), "203.0.113.5:4711"},
		"v2 health check":  {string(v2(commandLocal, familyNone, netip.AddrPort{}, server4, nil)), "invalid AddrPort"},
		"v2 no family":     {string(v2(commandProxy, familyNone, netip.AddrPort{}, server4, nil)), "invalid AddrPort"},
	} {
		r := strings.NewReader(tc.header + "rest")
		got, err := readProxyHeader(r)
		if err != nil || got.String() != tc.want || r.Len() != len("rest") {
			t.Errorf("%s: got %v, %v and %d bytes left; want %s and 4 bytes", name, got, err, r.Len(), tc.want)
		}
	}
	long := v2(commandProxy, familyTCP4, client4, server4, make([]byte, maxProxyV2))
	for name, bad := range map[string]string{
		"HTTP":             "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"nothing":          "",
		"short":            "PROXY TCP4",
		"no end":           "PROXY TCP4 203.0.113.5 192.0.2.1 4711 8443" + strings.Repeat(" ", 200),
		"no port":          "PROXY TCP4 203.0.113.5 192.0.2.1 4711\r\n",
		"bad port":         "PROXY TCP4 203.0.113.5 192.0.2.1 99999 8443\r\n",
		"bad address":      "PROXY TCP4 203.0.113.555 192.0.2.1 1 8443\r\n",
		"name":             "PROXY TCP4 localhost 192.0.2.1 1 8443\r\n",
		"zone":             "PROXY TCP6 fe80::1%eth0 2001:db8::1 1 8443\r\n",
		"wrong family":     "PROXY TCP6 203.0.113.5 192.0.2.1 4711 8443\r\n",
		"mixed families":   "PROXY TCP4 203.0.113.5 2001:db8::1 4711 8443\r\n",
		"two spaces":       "PROXY  TCP4 203.0.113.5 192.0.2.1 4711 8443\r\n",
		"line feed only":   "PROXY TCP4 203.0.113.5 192.0.2.1 4711 8443\n",
		"lower case":       "proxy TCP4 203.0.113.5 192.0.2.1 4711 8443\r\n",
		"v2 other version": string(v2(0x11, familyTCP4, client4, server4, nil)),
		"v2 other command": string(v2(0x22, familyTCP4, client4, server4, nil)),
		"v2 UDP":           string(v2(commandProxy, 0x12, client4, server4, nil)),
		"v2 Unix":          string(v2(commandProxy, 0x31, client4, server4, make([]byte, 216))),
		"v2 too short":     string(v2(commandProxy, familyTCP6, client4, server4, nil)),
		"v2 too long":      string(long),
		"v2 cut":           string(v2(commandProxy, familyTCP4, client4, server4, nil)[:20]),
	} {
		if got, err := readProxyHeader(strings.NewReader(bad)); !errors.Is(err, errProxyHeader) || got.IsValid() {
			t.Errorf("%s: got %v, %v; want an error", name, got, err)
		}
	}
}

func FuzzReadProxyHeader(f *testing.F) {
	f.Add([]byte("PROXY TCP4 203.0.113.5 192.0.2.1 4711 8443\r\n"))
	f.Add(v2(commandProxy, familyTCP6, client6, server6, []byte("x")))
	f.Add(v2(commandLocal, familyNone, netip.AddrPort{}, server4, nil))
	f.Fuzz(func(t *testing.T, header []byte) {
		r := bytes.NewReader(header)
		client, err := readProxyHeader(r)
		if err != nil && client.IsValid() {
			t.Errorf("got %v and %v, want one of them", client, err)
		}
		if read := len(header) - r.Len(); read > len(signatureV2)+4+maxProxyV2 {
			t.Errorf("read %d bytes", read)
		}
	})
}

// proxied opens a listener on a loopback address that trusts the addresses.
func proxied(t *testing.T, trusted ...string) net.Listener {
	t.Helper()
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	set, err := proxies.Parse(trusted)
	if err != nil {
		t.Fatal(err)
	}
	l := AcceptProxied(NewLimit(100).Apply(inner), set, time.Minute)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// dial connects and sends a text.
func dial(t *testing.T, l net.Listener, text string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestAcceptProxied accepts connections of a trusted proxy: a stalled one does not delay the
// others, a wrong one is closed, and the address is that of the client.
func TestAcceptProxied(t *testing.T) {
	t.Parallel()
	l := proxied(t, "127.0.0.1")
	dial(t, l, "PROXY TCP4 203.") // never continues
	wrong := dial(t, l, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := wrong.Read(make([]byte, 1)); err == nil {
		t.Error("connection without a header was answered, want it closed")
	}
	for header, want := range map[string]string{
		"PROXY TCP4 203.0.113.5 192.0.2.1 4711 8443\r\n":            "203.0.113.5:4711",
		string(v2(commandProxy, familyTCP6, client6, server6, nil)): "[2001:db8::5]:4711",
		"PROXY UNKNOWN\r\n": "127.0.0.1:",
	} {
		dial(t, l, header+"hello")
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 5)
		_, err = io.ReadFull(conn, got)
		if err != nil || string(got) != "hello" || !strings.HasPrefix(conn.RemoteAddr().String(), want) {
			t.Errorf("got %q from %v, %v; want hello from %s", got, conn.RemoteAddr(), err, want)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed listener: got %v, want %v", err, net.ErrClosed)
	}
}

// TestAttackForgedProxyHeader sends the PROXY protocol from an address that is not a proxy.
func TestAttackForgedProxyHeader(t *testing.T) {
	t.Parallel()
	l := proxied(t, "192.0.2.0/24", "::1")
	attempts, successes := 0, 0
	for _, header := range []string{
		"PROXY TCP4 203.0.113.5 192.0.2.1 4711 8443\r\n", "PROXY UNKNOWN\r\n",
		string(v2(commandProxy, familyTCP4, client4, server4, nil)),
	} {
		attempts++
		dial(t, l, header)
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(header))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != header ||
			!strings.HasPrefix(conn.RemoteAddr().String(), "127.0.0.1:") {
			successes++
			t.Errorf("got %q from %v, %v; want what was sent from 127.0.0.1", got, conn.RemoteAddr(), err)
		}
		_ = conn.Close()
	}
	tally.Attack(t, "choose the own address with the PROXY protocol", attempts, successes)
}
