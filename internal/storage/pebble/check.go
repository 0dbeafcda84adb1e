package pebble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	cdb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/storage/engine"
)

// CheckResult counts what Check has verified.
type CheckResult struct {
	Tables   int
	Messages int
	Records  int // of journals
	Format   uint64
}

// maxFindings limits how many problems are reported individually.
const maxFindings = 100

// checker is the state of one Check.
type checker struct {
	fs       vfs.FS
	dir      string
	report   func(file, problem string)
	findings int
	done     CheckResult
}

// Check verifies the store in dir: that no file is missing or truncated, every block of
// every table, and every record of every topic and journal. No process may have the store
// open, and Check does not change it. Check calls found for every problem, and progress
// with the bytes of the tables that are done.
func Check(ctx context.Context, dir string, found func(file, problem string),
	progress func(done, total int64),
) (CheckResult, error) {
	c := &checker{fs: vfs.Default, dir: dir, report: found}
	if _, err := checkIntact(c.fs, dir, true); err != nil {
		c.problem("", strings.TrimPrefix(err.Error(), engine.ErrCorrupt.Error()+": "))
		return c.done, nil
	}
	if err := c.tables(ctx, progress); err != nil {
		return c.done, err
	}
	return c.done, c.contents(ctx)
}

func (c *checker) problem(file, text string) {
	if c.findings++; c.findings <= maxFindings {
		c.report(file, text)
	}
}

// tables checks the checksum of every block of every table.
func (c *checker) tables(ctx context.Context, progress func(done, total int64)) error {
	names, err := c.fs.List(c.dir)
	if err != nil {
		return err
	}
	var total, done int64
	sizes := make(map[string]int64)
	for _, name := range names {
		if info, err := c.fs.Stat(c.fs.PathJoin(c.dir, name)); err == nil && strings.HasSuffix(name, ".sst") {
			sizes[name] = info.Size()
			total += info.Size()
		}
	}
	for _, name := range names {
		if _, isTable := sizes[name]; !isTable {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := checkTable(ctx, c.fs, c.fs.PathJoin(c.dir, name)); err != nil {
			c.problem(name, "table is damaged, and messages or other records in it cannot be read: "+err.Error())
		}
		c.done.Tables++
		done += sizes[name]
		progress(done, total)
	}
	return nil
}

func checkTable(ctx context.Context, fs vfs.FS, path string) error {
	return readTable(ctx, fs, path, (*sstable.Reader).ValidateBlockChecksums)
}

// readTable opens a table and calls use. Pebble's table reader is not made for damaged
// files, so readTable converts its panics into errors.
func readTable(ctx context.Context, fs vfs.FS, path string, use func(*sstable.Reader) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	file, err := fs.Open(path)
	if err != nil {
		return err
	}
	source, err := sstable.NewSimpleReadable(file)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	reader, err := sstable.NewReader(ctx, source, sstable.ReaderOptions{})
	if err != nil {
		return errors.Join(err, source.Close())
	}
	return errors.Join(use(reader), reader.Close())
}

// contents opens the store read-only and checks every value in it.
func (c *checker) contents(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			c.problem("", fmt.Sprint("store cannot be read: ", r))
		}
	}()
	s, err := openReadOnly(c.fs, c.dir)
	if err != nil {
		c.problem("", "store cannot be opened: "+err.Error())
		return nil
	}
	defer func() { err = errors.Join(err, s.db.Close()) }()
	iter, err := s.db.NewIter(nil)
	if err != nil {
		return storeError(err)
	}
	defer func() { err = errors.Join(err, ignoreCorrupt(iter.Close())) }()
	for ok := iter.First(); ok; ok = iter.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		value, err := iter.ValueAndErr()
		if err != nil {
			break // reported as a damaged block already
		}
		c.value(iter.Key(), value)
	}
	if err := iter.Error(); err != nil {
		c.problem("", "records after the damage could not be checked individually: "+err.Error())
	}
	return nil
}

// ignoreCorrupt drops damage, which was reported already.
func ignoreCorrupt(err error) error {
	if err != nil && (cdb.IsCorruptionError(err) || errors.Is(err, io.ErrUnexpectedEOF)) {
		return nil
	}
	return err
}

// value checks one record.
func (c *checker) value(key, value []byte) {
	if key[0] == keyMessage {
		c.done.Messages++
		if _, err := verify(key, value); err != nil {
			c.problem("", "message is damaged; consumers get an error and can skip it: "+err.Error())
		}
		return
	}
	body, err := checkChecksum(key, value)
	if err != nil {
		c.problem("", "record is damaged, and its topic or journal cannot be opened: "+err.Error())
		return
	}
	switch key[0] {
	case keyRecord:
		c.done.Records++
	case keyFormat:
		u := unpack(body)
		if c.done.Format = u.Uvarint(); c.done.Format > formatVersion {
			c.problem("", newerFormat(c.done.Format).Error())
		}
	}
}
