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

// formatFile contains the format versions of the files in a data directory. The stores of
// clusters and the data in etcd have their own.
const formatFile = "FORMAT"

const formatHeading = "freshet data directory"

// formats are the formats that this version writes. It reads all earlier ones.
//
//   - directory: the layout of files and folders;
//   - keys: encryption.key, tls, admin.token and admin.json;
//   - audit: the lines of the audit log.
var formats = []format{{"directory", 1}, {"keys", 1}, {"audit", 1}}

// format is the version of a part of the data directory.
type format struct {
	part    string
	version int
}

// errNewerDirectory is the error for data of a later version.
var errNewerDirectory = errs.New(errs.Precondition,
	"was written by a newer version of the server; start that version, or restore a backup of this version")

// Formats reports whether a data directory was written by an older version. It returns an
// error if this version cannot read the directory. It changes nothing.
func Formats(dir string) (older bool, err error) {
	if _, err := os.Stat(filepath.Join(dir, formatFile)); errors.Is(err, os.ErrNotExist) {
		left, err := os.ReadDir(dir)
		return len(left) > 0, err // older than formatFile, or empty
	}
	return readFormats(dir)
}

// readFormats returns an error if this version cannot read a data directory, and reports
// whether the file must be written.
func readFormats(dir string) (write bool, err error) {
	path := filepath.Join(dir, formatFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil // a new directory, or one that is older than formatFile, which is format 1
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
		return false, fmt.Errorf("%s is damaged: its first line is not %q; remove the file if no newer version has "+
			"used the directory", path, formatHeading)
	}
	for _, line := range lines[1:] {
		part, number, _ := strings.Cut(line, " ")
		version, err := strconv.Atoi(number)
		switch reads, ok := known[part]; {
		case err != nil:
			return false, fmt.Errorf("%s is damaged: line %q is not a format; remove the file if no newer version has "+
				"used the directory", path, line)
		case !ok || version > reads:
			return false, errs.Newf(errs.Precondition, "data directory %s %w: %s has format %d, but this version "+
				"reads formats up to %d", dir, errNewerDirectory, part, version, reads)
		case version < reads:
			write = true
		}
	}
	return write || len(lines)-1 < len(formats), nil
}

// writeFormats writes formatFile with the formats of this version.
func writeFormats(dir string) error {
	text := formatHeading + "\n"
	for _, f := range formats {
		text += fmt.Sprintf("%s %d\n", f.part, f.version)
	}
	return writeSecret(filepath.Join(dir, formatFile), []byte(text))
}

// openFormats rejects a newer directory and updates formatFile of an older one. If the file
// cannot be written, for example on a full disk, the server starts without.
func openFormats(dir string, log *slog.Logger) error {
	write, err := readFormats(dir)
	if err != nil || !write {
		return err
	}
	if err := writeFormats(dir); err != nil {
		log.Warn("format of the data directory could not be written; the next start retries",
			slog.Any("error", err))
	}
	return nil
}

// etcdFormat is the format of the data under the prefix in etcd: the keys, and how values
// are encoded and encrypted.
const etcdFormat = 1

// openEtcdFormat rejects data of a later version in etcd, and writes the format if it is
// missing.
func openEtcdFormat(ctx context.Context, etcd *clientv3.Client, prefix string, log *slog.Logger) error {
	key := prefix + "/format"
	found, err := etcd.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("reading the format of the stored resources: %w", err)
	}
	if len(found.Kvs) > 0 {
		version, err := strconv.Atoi(string(found.Kvs[0].Value))
		if err != nil {
			return fmt.Errorf("format of the stored resources is %q and not a number: etcd is damaged, or another "+
				"program uses its prefix %s", found.Kvs[0].Value, prefix)
		}
		if version > etcdFormat {
			return errs.Newf(errs.Precondition, "data in etcd %w: its format is %d, but this version reads formats "+
				"up to %d", errNewerDirectory, version, etcdFormat)
		}
		if version == etcdFormat {
			return nil
		}
	}
	_, err = etcd.Txn(ctx).Then(clientv3.OpPut(key, strconv.Itoa(etcdFormat))).Commit()
	if err != nil {
		log.Warn("format of the stored resources could not be written; the next start retries",
			slog.Any("error", err))
	}
	return nil
}
