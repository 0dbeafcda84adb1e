package kafkaapi

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"freshet/internal/base/errs"
	"freshet/internal/broker/messaging"
	"freshet/internal/broker/messaging/messagingtest"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/statemachine"
)

// declared returns the names in a Go file for which match returns a name.
func declared(t *testing.T, path string, match func(ast.Node) string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if name := match(n); name != "" {
			found[name] = true
		}
		return true
	})
	return found
}

// TestConsumerCodes checks that errors which pass, such as those while a shard gets another owner, have codes at which
// Kafka's consumer fetches again. Others end it with an exception.
func TestConsumerCodes(t *testing.T) {
	t.Parallel()
	again := []code{codeNotLeader, codeStorage, codeFencedEpoch, codeUnknownEpoch}
	for _, err := range []error{
		engine.ErrNoOwner, engine.ErrNotOwner, engine.ErrClosed, engine.ErrOpening, engine.ErrBusy, engine.ErrConflict,
		engine.ErrFailed, engine.ErrNotOpen, messaging.ErrClosing, statemachine.ErrClosed, statemachine.ErrContended,
		errs.New(errs.Unavailable, "member does not respond"),
	} {
		found, _ := codeOf(err)
		if got := consumerCode(found); !slices.Contains(again, got) {
			t.Errorf("%v: got code %d, want one of %d", err, got, again)
		}
	}
}

// TestEverySentinelHasACode checks that the table has a row for every error that the layers below
// declare. Others would reach clients as internal errors.
func TestEverySentinelHasACode(t *testing.T) {
	t.Parallel()
	inTable := declared(t, "codes.go", func(n ast.Node) string {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := s.X.(*ast.Ident); ok {
				return pkg.Name + "." + s.Sel.Name
			}
		}
		return ""
	})
	faults := map[string]bool{"engine.ErrCompacted": true} // only readers of a journal get it
	for pkg, path := range map[string]string{
		"messaging": "../../broker/messaging/errors.go", "engine": "../../storage/engine/errors.go",
		"groups":  "../../broker/groups/errors.go",
		"records": "../../broker/records/doc.go", "statemachine": "../../storage/statemachine/machine.go",
	} {
		sentinels := declared(t, path, func(n ast.Node) string {
			if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Err") {
				return v.Names[0].Name
			}
			return ""
		})
		if len(sentinels) == 0 {
			t.Errorf("%s: got no errors, want some", path)
		}
		for name := range sentinels {
			own := pkg + "." + name
			if !inTable[own] && !inTable["messaging."+name] && !faults[own] {
				t.Errorf("%s has no row in the table of error codes", own)
			}
		}
	}
}

// TestCodesOfSentinels checks that wrapped errors are found in the table, and that no row has the
// code for unknown errors.
func TestCodesOfSentinels(t *testing.T) {
	t.Parallel()
	for _, err := range messagingtest.Sentinels() {
		found, known := codeOf(fmt.Errorf("doing something: %w", err))
		if fault := errors.Is(err, engine.ErrCompacted); !fault && (!known || found == codeUnknown || found == codeOK) {
			t.Errorf("%v: got code %d, known %v; want a code of its own", err, found, known)
		}
	}
	for _, row := range errorCodes {
		if found, known := codeOf(fmt.Errorf("doing something: %w", row.err)); !known || found != row.code {
			t.Errorf("%v: got code %d, want %d", row.err, found, row.code)
		}
	}
	if found, known := codeOf(errors.New("surprise")); known || found != codeUnknown {
		t.Errorf("unknown error: got code %d, known %v; want %d, unknown", found, known, codeUnknown)
	}
}
