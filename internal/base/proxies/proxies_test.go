package proxies_test

import (
	"strings"
	"testing"

	"freshet/internal/base/proxies"
	"freshet/test/tally"
)

func set(t testing.TB, list ...string) proxies.Set {
	t.Helper()
	s, err := proxies.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestClient(t *testing.T) {
	t.Parallel()
	trusted := set(t, "10.0.0.0/8", "192.0.2.1", "2001:db8::/32")
	for name, tc := range map[string]struct {
		remote    string
		forwarded []string
		want      string
	}{
		"no proxy":                {"203.0.113.5:1", nil, "203.0.113.5:1"},
		"one proxy":               {"10.1.2.3:1", []string{"203.0.113.5"}, "203.0.113.5:0"},
		"one proxy, mapped":       {"[::ffff:10.1.2.3]:1", []string{"203.0.113.5"}, "203.0.113.5:0"},
		"with a port":             {"192.0.2.1:1", []string{"203.0.113.5:77"}, "203.0.113.5:77"},
		"IPv6":                    {"[2001:db8::1]:1", []string{"2a00::5"}, "[2a00::5]:0"},
		"IPv6 with a port":        {"[2001:db8::1]:1", []string{"[2a00::5]:7"}, "[2a00::5]:7"},
		"IPv6 in brackets":        {"[2001:db8::1]:1", []string{"[2a00::5]"}, "[2a00::5]:0"},
		"two proxies":             {"10.1.2.3:1", []string{"203.0.113.5, 10.9.9.9"}, "203.0.113.5:0"},
		"two headers":             {"10.1.2.3:1", []string{"203.0.113.5", "10.9.9.9"}, "203.0.113.5:0"},
		"client inside":           {"10.1.2.3:1", []string{"10.5.5.5"}, "10.5.5.5:0"},
		"proxy without a client":  {"10.1.2.3:1", []string{"unknown"}, "10.1.2.3:1"},
		"empty header":            {"10.1.2.3:1", []string{""}, "10.1.2.3:1"},
		"second proxy is strange": {"10.1.2.3:1", []string{"_hidden, 10.9.9.9"}, "10.9.9.9:0"},
	} {
		if got := trusted.Client(tc.remote, tc.forwarded); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

// TestAttackForgedForwardedFor sends X-Forwarded-For from addresses that are not proxies, and
// entries in front of those that a proxy appends.
func TestAttackForgedForwardedFor(t *testing.T) {
	t.Parallel()
	attempts, successes := 0, 0
	try := func(s proxies.Set, remote, want string, forwarded ...string) {
		t.Helper()
		attempts++
		if got := s.Client(remote, forwarded); got != want {
			successes++
			t.Errorf("%s %q: got %s, want %s", remote, forwarded, got, want)
		}
	}
	try(proxies.Set{}, "10.1.2.3:1", "10.1.2.3:1", "203.0.113.5")
	trusted := set(t, "10.0.0.0/8")
	for _, forged := range []string{
		"203.0.113.5", "127.0.0.1", "10.1.2.3", "::1", "203.0.113.5, 10.1.2.3",
		strings.Repeat("10.0.0.1,", 1000) + "::1",
	} {
		try(trusted, "198.51.100.1:1", "198.51.100.1:1", forged)
		try(trusted, "198.51.100.1:1", "198.51.100.1:1", forged, forged)
		try(trusted, "a name", "a name", forged)
		try(trusted, "10.1.2.3:1", "198.51.100.1:0", forged, "198.51.100.1")
		try(trusted, "10.1.2.3:1", "198.51.100.1:0", forged+",198.51.100.1")
		try(trusted, "10.1.2.3:1", "198.51.100.1:0", forged+",198.51.100.1,10.7.7.7")
	}
	tally.Attack(t, "choose the own address with X-Forwarded-For", attempts, successes)
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"", "proxy", "0.0.0.0/0", "::/0", "10.0.0.0/33", "10.0.0.1:80", "::ffff:10.0.0.0/104",
	} {
		if _, err := proxies.Parse([]string{bad}); err == nil {
			t.Errorf("%q: got no error", bad)
		}
	}
	s := set(t, "10.1.2.3/8", "::ffff:192.0.2.7")
	for remote, want := range map[string]bool{
		"10.9.9.9:1": true, "192.0.2.7:5": true, "192.0.2.8:5": false, "10.0.0.1": true, "x": false,
	} {
		if got := s.ContainsRemote(remote); got != want {
			t.Errorf("%s: got %v, want %v", remote, got, want)
		}
	}
}
