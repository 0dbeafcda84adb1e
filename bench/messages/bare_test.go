package messages

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// bareEnv is the environment variable that makes this test binary run as the bare server.
const bareEnv = "FRESHET_BENCH_BARE"

// bareServer is a process with a net/http handler that reads the same requests
// and writes the same responses, and does nothing else.
type bareServer struct {
	address string
	pid     int
}

// startBare starts this test binary as the bare server.
func startBare(b *testing.B) *bareServer {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(b.Context(), self)
	cmd.Env = append(os.Environ(), bareEnv+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe() // the bare server exits when its stdin closes
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatalf("bare server did not start: %v", err)
	}
	return &bareServer{address: strings.TrimSpace(address), pid: cmd.Process.Pid}
}

// serveBare runs the bare server until its stdin closes.
func serveBare() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	server := &http.Server{Handler: http.HandlerFunc(bare), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // returns when the parent process exits
		_ = server.Shutdown(context.Background())
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// bare returns the responses of a produce, a consume, an acknowledgement or a batch.
func bare(w http.ResponseWriter, r *http.Request) {
	if _, err := io.ReadAll(r.Body); err != nil {
		return
	}
	h := w.Header()
	switch {
	case r.Method == http.MethodPut:
		w.WriteHeader(http.StatusNoContent)
	case strings.HasSuffix(r.URL.Path, "/"+subscription+"/message"):
		h.Set("Content-Type", "application/octet-stream")
		h.Set("X-Msg-Message-Id", "CAIQACAAMAE=")
		h.Set("X-Msg-Message-String-Id", "2:0:-1:0")
		h.Set("X-Msg-Sequence-Id", "0")
		h.Set("X-Msg-Publish-Time", "1700000000000")
		h.Set("X-Msg-Redelivery-Count", "0")
		h.Set("Content-Length", strconv.Itoa(len(payload)))
		_, _ = io.WriteString(w, payload)
	default:
		h.Set("Content-Type", "application/json")
		h.Set("X-Msg-Message-Id", "CAIQACAAMAE=")
		h.Set("X-Msg-Message-String-Id", "2:0:-1:0")
		h.Set("Content-Length", "10")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `"2:0:-1:0"`)
	}
}
