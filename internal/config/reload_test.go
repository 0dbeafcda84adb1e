package config_test

import (
	"slices"
	"testing"

	"freshet/internal/config"
)

func TestReload(t *testing.T) {
	t.Parallel()
	old, next := config.Default(), config.Default()
	next.Log.Level, next.Log.Access, next.Metrics.Topics = "debug", config.AccessOff, true
	next.Limits.Connections, next.HTTP, next.TLS.Names = 77, "127.0.0.1:1", []string{"x"}
	now, changed, restart := old.Reload(next)
	if want := []string{"log.access", "log.level", "metrics.topics"}; !slices.Equal(changed, want) {
		t.Errorf("changed: got %v, want %v", changed, want)
	}
	if want := []string{"http", "limits.connections", "tls.names"}; !slices.Equal(restart, want) {
		t.Errorf("restart: got %v, want %v", restart, want)
	}
	if now.Log != next.Log || now.Metrics != next.Metrics || now.HTTP != old.HTTP || now.Limits != old.Limits {
		t.Errorf("got %+v, want only the settings changed that a running server can change", now)
	}
	if _, changed, restart := old.Reload(config.Default()); changed != nil || restart != nil {
		t.Errorf("equal configurations: got %v and %v, want none", changed, restart)
	}
}
