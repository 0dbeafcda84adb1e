package signinapi_test

import (
	"slices"
	"testing"

	"freshet/internal/surfaces/signinapi"
)

func TestOrigins(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		addresses, names []string
		https            string
		want             []string
	}{
		"an own address": {
			addresses: []string{"https://Stream.Example/base", "https://stream.example"}, https: "off",
			want: []string{"https://stream.example"},
		},
		"the loopback address by all its names": {
			addresses: []string{"http://127.0.0.1:8080"}, https: "off",
			want: []string{"http://127.0.0.1:8080", "http://localhost:8080", "http://[::1]:8080"},
		},
		"all interfaces are no origin": {
			addresses: []string{"http://0.0.0.0:8080"}, https: "off",
			want: []string{"http://localhost:8080", "http://127.0.0.1:8080", "http://[::1]:8080"},
		},
		"names of the certificate": {
			names: []string{"a.example", "*.b.example"}, https: "0.0.0.0:8443",
			want: []string{"https://a.example:8443"},
		},
		"names without HTTPS":    {names: []string{"a.example"}, https: "off"},
		"addresses that are not": {addresses: []string{"://", "%zz"}, https: "off"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := signinapi.Origins(tc.addresses, tc.names, tc.https); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
