package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/base/errs"
)

// formatFile says in which formats the plain files of a data directory are. The
// stores of clusters and what is in etcd carry their own.
const formatFile = "FORMAT"

const formatHeading = "freshet data directory"

// formats are what this version writes. It reads all earlier ones.
//
//   - directory: which files and folders there are, and where;
//   - keys: encryption.key, tls, admin.token and admin.json;
//   - audit: the lines of the audit trail.
var formats = []format{{"directory", 1}, {"keys", 1}, {"audit", 1}}

// format is the version of a part of the data directory.
type format struct {
	part    string
	version int
}

// errNewerDirectory is a data directory that a later version has written.
var errNewerDirectory = errs.New(errs.Precondition,
	"was written by a newer version of the server; start that version, or restore a backup that this one made")

// Formats says whether a data directory was written by an older version; one that this
// version cannot read is an error. It changes nothing.
func Formats(dir string) (older bool, err error) {
	if _, err := os.Stat(filepath.Join(dir, formatFile)); errors.Is(err, os.ErrNotExist) {
		left, err := os.ReadDir(dir)
		return len(left) > 0, err // from before there was such a file, or empty
	}
	return readFormats(dir)
}

// readFormats refuses a data directory that this version cannot read, and says
// whether the file has to be written.
func readFormats(dir string) (write bool, err error) {
	path := filepath.Join(dir, formatFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil // new, or from before there was such a file, which is format 1
	}
	if err != nil {
		return false, fmt.Errorf("reading the format of the data directory: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	known := map[string]int{}
	for _, f := range formats {
		known[f.part] = f.version
	}
	if lines[0] != formatHeading {
		return false, fmt.Errorf("%s is damaged: its first line is not %q; remove the file if no newer version was "+
			"ever started on the directory", path, formatHeading)
	}
	for _, line := range lines[1:] {
		part, number, _ := strings.Cut(line, " ")
		version, err := strconv.Atoi(number)
		switch reads, ok := known[part]; {
		case err != nil:
			return false, fmt.Errorf("%s is damaged: %q is not the format of anything; remove the file if no newer "+
				"version was ever started on the directory", path, line)
		case !ok || version > reads:
			return false, errs.Newf(errs.Precondition, "data directory %s %w: %s has format %d, this version reads "+
				"formats up to %d", dir, errNewerDirectory, part, version, reads)
		case version < reads:
			write = true
		}
	}
	return write || len(lines)-1 < len(formats), nil
}

// writeFormats notes what this version writes.
func writeFormats(dir string) error {
	text := formatHeading + "\n"
	for _, f := range formats {
		text += fmt.Sprintf("%s %d\n", f.part, f.version)
	}
	return writeSecret(filepath.Join(dir, formatFile), []byte(text))
}

// openFormats refuses a newer directory and brings an older one up to date. A disk
// without room for a line is no reason not to start.
func openFormats(dir string, log *slog.Logger) error {
	write, err := readFormats(dir)
	if err != nil || !write {
		return err
	}
	if err := writeFormats(dir); err != nil {
		log.Warn("the format of the data directory could not be written down; it is tried again at the next start",
			slog.String("error", err.Error()))
	}
	return nil
}

// etcdFormat is the layout of what is stored under the prefix in etcd: the keys,
// and how values are encoded and sealed.
const etcdFormat = 1

// openEtcdFormat refuses what a later version has stored in etcd, and notes the
// format where there is none.
func openEtcdFormat(ctx context.Context, etcd *clientv3.Client, prefix string, log *slog.Logger) error {
	key := prefix + "/format"
	found, err := etcd.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("reading the format of the stored resources: %w", err)
	}
	if len(found.Kvs) > 0 {
		version, err := strconv.Atoi(string(found.Kvs[0].Value))
		if err != nil {
			return fmt.Errorf("the format of the stored resources is %q and not a number: etcd is damaged, or its "+
				"prefix %s is used by something else", found.Kvs[0].Value, prefix)
		}
		if version > etcdFormat {
			return errs.Newf(errs.Precondition, "what is stored in etcd %w: its format is %d, this version reads "+
				"formats up to %d", errNewerDirectory, version, etcdFormat)
		}
		if version == etcdFormat {
			return nil
		}
	}
	_, err = etcd.Txn(ctx).Then(clientv3.OpPut(key, strconv.Itoa(etcdFormat))).Commit()
	if err != nil {
		log.Warn("the format of the stored resources could not be written down; it is tried again at the next start",
			slog.String("error", err.Error()))
	}
	return nil
}
