package config_test

import (
	"slices"
	"testing"

	"freshet/internal/config"
)

func TestCertificateNames(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.BaseURL, cfg.Domain = "https://Stream.Example:8443/x", "clusters.example"
	cfg.TLS.Names = []string{"192.0.2.7", "localhost"}
	want := []string{"127.0.0.1", "192.0.2.7", "::1", "clusters.example", "localhost", "stream.example"}
	if got := cfg.CertificateNames(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
