package migrate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"freshet/internal/base/atomicfile"
	"freshet/internal/base/errs"
	"freshet/internal/controlplane/etcd"
)

const (
	manifestFile    = "manifest.json"
	manifestVersion = 1
)

// manifest is the stored progress of a migration.
type manifest struct {
	Version  int         `json:"version"`
	From     string      `json:"from"`
	Source   string      `json:"source"` // fingerprint, which shows whether the source has changed
	Ensemble string      `json:"group"`
	Member   string      `json:"member"`
	Began    time.Time   `json:"began"`
	Finished time.Time   `json:"finished,omitzero"`
	Planned  bool        `json:"planned,omitempty"` // Clusters is set
	Clusters []Cluster   `json:"clusters"`
	Etcd     etcd.Digest `json:"etcd"`               // set after it was compared
	Compared bool        `json:"compared,omitempty"` // everything is compared; publish may have started
}

// fingerprint returns a hash of the names, sizes and times of the source files.
func fingerprint(dir string) (string, error) {
	hash := sha256.New()
	for _, part := range []string{"etcd", "clusters"} {
		err := filepath.WalkDir(filepath.Join(dir, part), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			if d.IsDir() && strings.HasSuffix(path, deletedSuffix) {
				return filepath.SkipDir
			}
			if d.IsDir() || d.Name() == "LOCK" {
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			name, err := filepath.Rel(dir, path)
			_, _ = fmt.Fprintln(hash, name, info.Size(), info.ModTime().UnixNano()) // a hash never fails
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(hash.Sum(nil)[:16]), nil
}

// finished returns the result of an earlier run with the same source, or nil.
func (m *migration) finished(source string) (*Result, error) {
	if exists(m.path(manifestFile)) {
		return nil, nil //nolint:nilnil // an earlier run has not finished
	}
	done, err := readManifest(filepath.Join(m.to, ResultFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, m.checkEmpty()
	}
	if err != nil {
		return nil, err
	}
	if done.Source != source {
		return nil, errs.Newf(errs.Conflict,
			"data of %s was migrated to %s on %s; use an empty data directory for another server", done.From, m.to,
			done.Finished.Format(time.RFC3339))
	}
	return m.result(done, true), os.RemoveAll(m.path()) // an empty folder may be left
}

// begin creates the folder, or continues an earlier run.
func (m *migration) begin(source string) error {
	from, err := filepath.Abs(m.From)
	if err != nil {
		return err
	}
	old, err := readManifest(m.path(manifestFile))
	switch {
	case err == nil && (old.Source == source && old.Ensemble == m.joining.EnsembleID || old.Compared):
		m.m = old
		m.Report.Step("continuing the migration of " + old.Began.Format(time.DateTime))
		return nil
	case err == nil && old.From != from:
		return errs.Newf(errs.Conflict, "migration from %s to %s is not finished; finish it, or remove %s", old.From,
			m.to, m.path())
	case err == nil:
		m.Report.Step("the old data directory has changed since an earlier run; starting again")
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := m.checkDiskSpace(); err != nil {
		return err
	}
	if err := os.RemoveAll(m.path()); err != nil {
		return fmt.Errorf("removing the files of an earlier run: %w", err)
	}
	if err := os.MkdirAll(m.newPath("clusters"), 0o700); err != nil {
		return err
	}
	m.m = &manifest{
		Version: manifestVersion, From: from, Source: source, Ensemble: m.joining.EnsembleID,
		Member: m.Config.Members.Self, Began: time.Now().UTC(),
	}
	return m.save()
}

func readManifest(path string) (*manifest, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if m.Version != manifestVersion {
		return nil, errs.Newf(errs.Precondition, "%s has version %d, but this program reads version %d; use the "+
			"program that wrote it", path, m.Version, manifestVersion)
	}
	return &m, nil
}

// save writes the manifest and syncs it to disk.
func (m *migration) save() error { return m.saveAs(m.path(manifestFile)) }

func (m *migration) saveAs(path string) error {
	text, err := json.MarshalIndent(m.m, "", " ")
	if err != nil {
		return err
	}
	if err := atomicfile.Replace(path, append(text, '\n')); err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	return nil
}
