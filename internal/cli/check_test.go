package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"freshet/internal/cli/servercmd"
	"freshet/internal/config"
)

// checkedServer is a server whose data directory the-dir has the results of do.
type checkedServer struct {
	Server
	t  *testing.T
	do func(report servercmd.CheckReport) error
}

// Check implements servercmd.Server.
func (s checkedServer) Check(_ context.Context, cfg *config.Config, report servercmd.CheckReport) error {
	if cfg.DataDir != "the-dir" {
		s.t.Errorf("directory: got %q, want the-dir", cfg.DataDir)
	}
	return s.do(report)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		do   func(report servercmd.CheckReport) error
		code int
		out  string
		err  string
	}{
		"intact": {
			func(r servercmd.CheckReport) error { r.Progress("etcd", 1, 2); r.Part("etcd", "all of it"); return nil },
			ExitOK, "ok       etcd: all of it\nthe-dir is intact\n", "",
		},
		"damaged": {
			func(r servercmd.CheckReport) error {
				r.Part("etcd", "all")
				r.Damaged("clusters/x/1.sst", "a block", "restore it")
				return nil
			},
			ExitError, "ok       etcd: all\nDAMAGED  clusters/x/1.sst: a block\n         restore it\n",
			"data directory is damaged: 1 damaged part in the-dir",
		},
		"in use": {
			func(servercmd.CheckReport) error { return errors.New("in use: stop it first") },
			ExitError, "", "in use: stop it first",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errOut bytes.Buffer
			code := Execute(t.Context(), []string{"check", "the-dir"}, Streams{Out: &out, Err: &errOut},
				checkedServer{t: t, do: tc.do})
			if code != tc.code || out.String() != tc.out || !strings.Contains(errOut.String(), tc.err) {
				t.Errorf("got %d %q %q, want %d %q %q", code, out.String(), errOut.String(), tc.code, tc.out, tc.err)
			}
		})
	}
}
