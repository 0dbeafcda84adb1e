package telemetry

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/zap"
	"k8s.io/klog/v2"
)

// fatalEnv names the way in which a child of this test ends itself.
const fatalEnv = "TELEMETRY_TEST_FATAL"

var fatalWays = map[string]func(log *zap.Logger){
	"klog.Fatalf":     func(*zap.Logger) { klog.Fatalf("the last %s", "words") },
	"klog.Fatal":      func(*zap.Logger) { klog.Fatal("the last words") },
	"klog.FatalDepth": func(*zap.Logger) { klog.FatalDepth(1, "the last words") },
	"klog.Exitf":      func(*zap.Logger) { klog.Exitf("the last %s", "words") },
	"zap.Fatal":       func(log *zap.Logger) { log.Fatal("the last words") },
	"zap.Fatal, known": func(log *zap.Logger) {
		log.Fatal("the last words",
			zap.Error(fmt.Errorf("accept: %w", net.ErrClosed)))
	},
}

// TestFatalIsNeverSilent ends a process in every way that a library can, at every
// level of the log, and looks for its last words.
func TestFatalIsNeverSilent(t *testing.T) {
	if way := os.Getenv(fatalEnv); way != "" {
		level, name, _ := strings.Cut(way, " ")
		log, err := OpenLog(LogOptions{Level: level, Format: "text", Stderr: os.Stderr})
		if err != nil {
			t.Fatal(err)
		}
		BridgeKlog(log.Logger)
		fatalWays[name](ZapLogger(Library(log.Logger, "etcd")))
		os.Exit(0) // fatal was not fatal
	}
	for name := range fatalWays {
		for _, level := range []string{"info", "error"} {
			t.Run(name+" at "+level, func(t *testing.T) {
				t.Parallel()
				child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFatalIsNeverSilent$")
				child.Env = append(os.Environ(), fatalEnv+"="+level+" "+name)
				out, err := child.CombinedOutput()
				var exit *exec.ExitError
				if !errors.As(err, &exit) {
					t.Fatalf("the process ended with %v, want a failure", err)
				}
				if !strings.Contains(string(out), "level=ERROR") || !strings.Contains(string(out), "the last words") {
					t.Errorf("the process ended with %v and said %q, want its last words as an error", err, out)
				}
			})
		}
	}
}
