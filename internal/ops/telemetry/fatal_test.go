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

// fatalEnv is the environment variable with the level and the function with which a
// child process of this test ends itself.
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

// TestFatalIsNeverSilent ends a child process with every fatal function of the
// libraries, at several log levels, and checks that it logs an error.
func TestFatalIsNeverSilent(t *testing.T) {
	if way := os.Getenv(fatalEnv); way != "" {
		level, name, _ := strings.Cut(way, " ")
		log, err := OpenLog(LogOptions{Level: level, Format: "text", Stderr: os.Stderr})
		if err != nil {
			t.Fatal(err)
		}
		BridgeKlog(log.Logger)
		fatalWays[name](ZapLogger(Library(log.Logger, "etcd")))
		os.Exit(0) // the function returned, which is a failure
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
					t.Fatalf("process ended with %v, want a non-zero exit status", err)
				}
				if !strings.Contains(string(out), "level=ERROR") || !strings.Contains(string(out), "the last words") {
					t.Errorf("process ended with %v and output %q, want the last words as an error", err, out)
				}
			})
		}
	}
}
