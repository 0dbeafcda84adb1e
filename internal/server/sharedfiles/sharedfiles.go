// Package sharedfiles restores the secret files that all members of an ensemble have in common, when
// one of them is missing or damaged on this member: the encryption keys, the operator's token and the
// certificate authority for clients. The bundle has installed them (ensemble/bundle), and the other
// members have the same ones, so a member never creates its own. It stands beside package server,
// because it knows the files of several packages; it calls the other members through package
// ensemble. It has no locks that outlive a call.
package sharedfiles

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"freshet/internal/base/atomicfile"
	"freshet/internal/base/errs"
	"freshet/internal/base/retry"
	"freshet/internal/config"
	"freshet/internal/ensemble"
	"freshet/internal/identity"
	"freshet/internal/ops/adminfiles"
)

const (
	// Path is the path of the calls between members.
	Path = "/v1/shared-files"
	// part is the name of the files in the register of the member's files.
	part = "keys"

	callTimeout   = 2 * time.Second
	retryInterval = time.Second
	// logInterval is the interval at which a starting member logs that it waits for the others.
	logInterval = 10 * time.Second
	maxFile     = 256 << 10
)

// File is a file that all members have in common.
type File struct {
	Name string // the same on all members
	Path string
	// Check returns what is wrong with the file; nil if it is intact as far as can be determined.
	Check func() error
	// Majority is set for a file without a checksum, so that Check does not find every damage. The contents that
	// more than half of the members have are right.
	Majority bool
}

// List returns the files that a configuration uses. A key file outside the data directory belongs to
// the operator and is not listed.
func List(cfg *config.Config) []File {
	token := cfg.Path(adminfiles.Token)
	list := []File{{adminfiles.Token, token, func() error { return checkToken(token) }, true}}
	if cfg.EncryptionKey.File == "" {
		keys := cfg.EncryptionKeyFile()
		check := func() error {
			_, err := identity.ReadSealer(keys)
			return err
		}
		list = append(list, File{filepath.Base(keys), keys, check, false})
	}
	if cfg.TLS.CertFile == "" {
		cert, key := cfg.Path("tls", "ca.crt"), cfg.Path("tls", "ca.key")
		check := func() error { return checkAuthority(cert, key) }
		list = append(list, File{"tls/ca.crt", cert, check, false}, File{"tls/ca.key", key, check, false})
	}
	return list
}

func checkToken(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text := strings.TrimSpace(string(data))
	if text == "" {
		return fmt.Errorf("%s is empty", path)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%s contains characters that a token cannot have", path)
	}
	return nil
}

func checkAuthority(cert, key string) error {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("reading %s and %s: %w", cert, key, err)
	}
	leaf := pair.Leaf
	if err := leaf.CheckSignature(leaf.SignatureAlgorithm, leaf.RawTBSCertificate, leaf.Signature); err != nil {
		return fmt.Errorf("%s: %w", cert, err)
	}
	return nil
}

// response contains the intact files of a member by name.
type response struct {
	Files map[string][]byte `json:"files"`
}

// Handler returns the handler that sends this member's intact files to another member. The internal
// port accepts only members, which have the same files.
func Handler(cfg *config.Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(response{readIntact(cfg)}) // fails only if the caller disconnected
	})
}

func readIntact(cfg *config.Config) map[string][]byte {
	files := map[string][]byte{}
	for _, f := range List(cfg) {
		if f.Check() != nil {
			continue
		}
		if data, err := os.ReadFile(f.Path); err == nil && len(data) <= maxFile {
			files[f.Name] = data
		}
	}
	return files
}

// Restore fetches the files that are missing or damaged from the other members. It waits until one of
// them has the files, because without them this member would refuse what the others accept. It does not wait for a
// majority of them: the members may all be starting.
func Restore(ctx context.Context, cfg *config.Config, m *ensemble.Member, log *slog.Logger) error {
	var last time.Time
	for {
		theirs, missing := ask(ctx, m), map[string]error{}
		for _, f := range List(cfg) {
			err := f.Check()
			if err == nil && f.Majority {
				err = outvoted(f, theirs, len(m.Names()))
			}
			if err != nil {
				missing[f.Name] = err
			}
		}
		if len(missing) == 0 {
			return nil
		}
		found, err := agreed(theirs)
		if err != nil {
			return err
		}
		for _, f := range List(cfg) {
			if cause := missing[f.Name]; cause != nil && found[f.Name] != nil {
				if err := replace(f, found[f.Name], cause, m, log); err != nil {
					return err
				}
				delete(missing, f.Name)
			}
		}
		if len(missing) == 0 {
			continue // checks what was written
		}
		if time.Since(last) > logInterval {
			last = time.Now()
			for name, cause := range missing {
				log.Warn("file is missing or damaged; the member waits for another member that has it",
					slog.String("file", name), slog.Any("error", cause))
			}
		}
		if err := retry.Sleep(ctx, retryInterval); err != nil {
			return context.Cause(ctx)
		}
	}
}

// replace writes a file that another member has sent. It keeps the damaged one in quarantine.
func replace(f File, data []byte, cause error, m *ensemble.Member, log *slog.Logger) error {
	if old, err := os.ReadFile(f.Path); err == nil && bytes.Equal(old, data) {
		return nil // the other file of the pair is damaged
	}
	if !errors.Is(cause, fs.ErrNotExist) {
		if err := m.Integrity().Quarantine(part, f.Path, cause); err != nil {
			return err
		}
	}
	err := os.MkdirAll(filepath.Dir(f.Path), 0o700)
	if err == nil {
		err = atomicfile.Replace(f.Path, data)
	}
	if err != nil {
		return fmt.Errorf("writing %s, which another member has sent: %w", f.Path, err)
	}
	log.Warn("file was missing or damaged; the member has fetched it from the other members",
		slog.String("file", f.Path), slog.Any("error", cause))
	return nil
}

// outvoted returns an error if more than half of all members have the same file, and this member has another one.
func outvoted(f File, theirs map[string]map[string][]byte, members int) error {
	mine, err := os.ReadFile(f.Path)
	if err != nil {
		return err
	}
	have := map[string][]string{} // members by content
	for member, files := range theirs {
		if text := string(bytes.TrimSpace(files[f.Name])); text != "" {
			have[text] = append(have[text], member)
		}
	}
	for text, names := range have {
		if 2*len(names) > members && text != string(bytes.TrimSpace(mine)) {
			slices.Sort(names)
			return fmt.Errorf("%s differs from that of %s, which is the same", f.Path, strings.Join(names, " and "))
		}
	}
	return nil
}

// ask returns the files of the other members that respond, by member.
func ask(ctx context.Context, m *ensemble.Member) map[string]map[string][]byte {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	all := map[string]map[string][]byte{}
	var mu sync.Mutex // protects all
	var calls sync.WaitGroup
	for _, name := range m.Names() {
		if name == m.Self() {
			continue
		}
		calls.Go(func() {
			var out response
			if err := m.Post(ctx, name, Path, struct{}{}, &out); err == nil {
				mu.Lock()
				defer mu.Unlock()
				all[name] = out.Files
			}
		})
	}
	calls.Wait()
	return all
}

// agreed returns the contents of each file that most of the members have. Members that disagree
// evenly are an error: only the operator can decide.
func agreed(all map[string]map[string][]byte) (map[string][]byte, error) {
	type vote struct {
		data    []byte
		members []string
	}
	votes := map[string]map[[sha256.Size]byte]*vote{}
	for member, files := range all {
		for name, data := range files {
			if votes[name] == nil {
				votes[name] = map[[sha256.Size]byte]*vote{}
			}
			sum := sha256.Sum256(bytes.TrimSpace(data)) // an operator's editor may add a newline to a token
			if votes[name][sum] == nil {
				votes[name][sum] = &vote{data: data}
			}
			votes[name][sum].members = append(votes[name][sum].members, member)
		}
	}
	found := map[string][]byte{}
	for name, kinds := range votes {
		var best, second *vote
		for _, v := range kinds {
			switch {
			case best == nil || len(v.members) > len(best.members):
				best, second = v, best
			case second == nil || len(v.members) > len(second.members):
				second = v
			}
		}
		if second != nil && len(second.members) == len(best.members) {
			return nil, errs.Newf(errs.Precondition, "members %s and %s have different files %s; copy the right one "+
				"to this member and the others, and start it again", strings.Join(best.members, ", "),
				strings.Join(second.members, ", "), name)
		}
		found[name] = best.data
	}
	return found, nil
}

// Compare logs a warning for each file of this member that differs from that of the other members:
// requests that one member forwards to another would be refused there.
func Compare(ctx context.Context, cfg *config.Config, m *ensemble.Member, log *slog.Logger) {
	theirs, err := agreed(ask(ctx, m))
	if err != nil {
		log.Warn("members have different secrets", slog.Any("error", err))
		return
	}
	own := readIntact(cfg)
	for _, f := range List(cfg) {
		if other, mine := theirs[f.Name], own[f.Name]; other != nil && mine != nil &&
			!bytes.Equal(bytes.TrimSpace(other), bytes.TrimSpace(mine)) {
			log.Warn("file differs from that of the other members, so they refuse what this member accepts; if it was "+
				"not changed on purpose, remove it and restart this member, which then fetches it from the others",
				slog.String("file", f.Path))
		}
	}
}
