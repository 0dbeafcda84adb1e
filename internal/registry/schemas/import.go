package schemas

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"freshet/internal/storage/statemachine"
)

const (
	maxImportLine  = 16 << 20 // bytes; enough for a schema of 5 MB with escapes
	importLines    = 200      // lines of a batch
	importBatchMax = 4 << 20  // bytes after which a batch gets no further line
)

// Imported counts the lines of an import.
type Imported struct {
	Versions  int `json:"versions"` // versions that were written
	Levels    int `json:"levels"`   // levels that were written
	Unchanged int `json:"known"`    // lines that matched the registry already
}

// Import reads a file of Export into this registry and keeps its ids and version
// numbers. It skips lines that match the registry already, so that an import can
// be repeated. The first line that contradicts the registry ends the import: its
// batch is not written, but the batches before it are. An error of permit for a
// subject ends the import as well; a nil permit allows all subjects.
func (r *Registry) Import(ctx context.Context, file io.Reader, permit func(subject string) error) (Imported, error) {
	in := &importer{r: r, ctx: ctx, lines: bufio.NewReaderSize(file, 256<<10), permit: permit}
	for !in.ended {
		if err := in.batch(); err != nil {
			return in.total, err
		}
	}
	return in.total, nil
}

// lineError returns an error for a line of the file.
func lineError(number int, err error) error {
	return reject(ErrImport, "Line %d: %s", number, err.Error())
}

// named adds the subject and the version of a line to an error.
func (l *exportLine) named(err error) error {
	switch l.Kind {
	case lineVersion:
		return fmt.Errorf("subject %s version %d: %w", l.Subject, l.Version, err)
	case lineLevel:
		return fmt.Errorf("level of subject %s: %w", l.Subject, err)
	}
	return err
}

type importer struct {
	r      *Registry
	ctx    context.Context // of the call of Import
	lines  *bufio.Reader
	permit func(subject string) error
	number int // of the line that was read last
	ended  bool
	total  Imported
}

// batch reads and writes one batch of lines.
func (in *importer) batch() error {
	var lines []exportLine
	first := in.number
	for size := 0; len(lines) < importLines && size < importBatchMax && !in.ended; {
		line, n, err := in.next()
		if err != nil {
			return lineError(in.number, err)
		}
		if err := in.permitted(&line); err != nil {
			return err
		}
		size += n
		lines = append(lines, line)
	}
	return in.write(first, lines)
}

// write writes a batch of lines. It parses their schemas before it takes the write
// lock, so that no other writer waits for this work.
func (in *importer) write(first int, lines []exportLine) error {
	work := in.r.newJob(in.ctx)
	work.parsed = map[parseID]parsedSchema{}
	for range maxAttempts {
		st, err := in.r.machine.Fresh(in.ctx)
		if err != nil {
			return err
		}
		planned, err := in.records(work, st, first, lines)
		if err != nil {
			return err
		}
		done, err := in.commit(work, st, planned, first, lines)
		switch {
		case errors.Is(err, errStale):
			continue
		case err != nil:
			return err
		}
		in.total.Versions += done.count.Versions
		in.total.Levels += done.count.Levels
		in.total.Unchanged += done.count.Unchanged
		return nil
	}
	return statemachine.ErrContended
}

// commit writes a batch of lines if the quotas allow what planned, the batch applied to st, adds.
func (in *importer) commit(work *job, st *state, planned *importBatch, first int,
	lines []exportLine,
) (done *importBatch, err error) {
	subjects, size := planned.st.subjects.Len()-st.subjects.Len(), planned.st.bytes-st.bytes
	taken, err := in.r.reserve(in.ctx, max(subjects, 0), int(max(size, 0)))
	if err != nil {
		return nil, err
	}
	defer taken.release()
	_, err = in.r.machine.Update(context.WithoutCancel(in.ctx), func(st *state) ([][]byte, error) {
		if done, err = in.records(work.inLock(), st, first, lines); err != nil {
			return nil, err
		}
		return done.records, nil
	})
	return done, err
}

// records converts lines into records for a state.
func (in *importer) records(work *job, st *state, first int, lines []exportLine) (*importBatch, error) {
	if st.mode.readOnly() {
		return nil, readOnly(lines[0].Subject)
	}
	b := &importBatch{in: in, work: work, st: st.Clone()}
	for i := range lines {
		if err := b.add(&lines[i]); err != nil {
			if isTransient(err) {
				return nil, err
			}
			return nil, lineError(first+1+i, lines[i].named(err))
		}
	}
	return b, nil
}

// permitted returns an error if the caller may not write the subject of the line.
func (in *importer) permitted(line *exportLine) error {
	if in.permit == nil || (line.Kind != lineVersion && line.Kind != lineLevel) {
		return nil
	}
	if err := CheckSubject(line.Subject); err != nil {
		return lineError(in.number, err)
	}
	if err := in.permit(line.Subject); err != nil {
		return fmt.Errorf("Line %d: %w", in.number, err) //nolint:staticcheck // a text for clients, as in lineError
	}
	return nil
}

// next reads a line and checks that its kind is allowed at its position.
func (in *importer) next() (exportLine, int, error) {
	in.number++
	raw, err := readLine(in.lines)
	if err != nil {
		return exportLine{}, 0, err
	}
	var line exportLine
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&line); err != nil {
		return line, 0, err
	}
	switch {
	case (in.number == 1) != (line.Kind == lineRegistry):
		return line, 0, errors.New(`first line, and no other line, must have the kind "registry"`)
	case line.Kind == lineRegistry && (line.Format != exportFormat || line.Edition != exportVersion):
		return line, 0, fmt.Errorf("format %q edition %d is unknown", line.Format, line.Edition)
	case line.Kind == lineEnd && line.Lines != in.number-1:
		return line, 0, fmt.Errorf("file is incomplete: it has %d of its %d lines", in.number-1, line.Lines)
	}
	in.ended = line.Kind == lineEnd
	return line, len(raw), nil
}

// readLine reads one line of bounded length.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxImportLine {
			return nil, fmt.Errorf("line is longer than %d bytes", maxImportLine)
		}
		line = append(line, part...)
		switch {
		case err == nil, errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		case errors.Is(err, io.EOF):
			return nil, errors.New(`file is incomplete: it has no line of the kind "end"`)
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// importBatch converts lines into records, and applies each record to st before it
// converts the next line.
type importBatch struct {
	in      *importer
	work    *job
	st      *state
	records [][]byte
	count   Imported
}

func (b *importBatch) append(rec *record) error {
	data := rec.encode()
	if err := b.st.Apply(0, data); err != nil {
		return err
	}
	b.records = append(b.records, data)
	return nil
}

func (b *importBatch) add(line *exportLine) error {
	switch line.Kind {
	case lineRegistry:
		if line.LastID <= b.st.lastID {
			return nil
		}
		return b.append(&record{op: opReserve, id: line.LastID})
	case lineVersion:
		return b.addVersion(line)
	case lineLevel:
		return b.addLevel(line)
	case lineEnd:
		return nil
	}
	return fmt.Errorf("kind %q is unknown", line.Kind)
}

func (b *importBatch) addLevel(line *exportLine) error {
	if err := CheckSubject(line.Subject); err != nil {
		return err
	}
	level, err := ParseLevel(line.Compatibility)
	if err != nil {
		return err
	}
	if sub, ok := b.st.subjects.Get(line.Subject); ok && sub.level == level {
		b.count.Unchanged++
		return nil
	}
	b.count.Levels++
	return b.append(&record{op: opSetLevel, at: time.Now().UnixMilli(), subject: line.Subject, level: level})
}

func (b *importBatch) addVersion(line *exportLine) error {
	if err := CheckSubject(line.Subject); err != nil {
		return err
	}
	t, err := ParseType(line.SchemaType)
	if err != nil {
		return err
	}
	if line.ID < 1 || line.Version < 1 {
		return errors.New("id and version must be positive")
	}
	d := &Draft{Type: t, Text: line.Schema, References: line.References, ID: line.ID, Version: line.Version}
	p, err := b.in.r.prepare(b.work, b.st, line.Subject, d, prepareOptions{deleted: true, imported: true})
	if err != nil {
		return err
	}
	bound, known := b.st.schemas.Get(line.ID)
	if known && bound.sum != p.sum {
		return overwriteNotPermitted(line.ID)
	}
	sub, _ := b.st.subjects.Get(line.Subject)
	if sub != nil {
		if i, taken := sub.find(line.Version); taken {
			if e := sub.versions[i]; e.schema.ID != line.ID || e.deleted != line.Deleted {
				return overwriteNotPermitted(line.ID)
			}
			b.count.Unchanged++
			return nil
		}
	}
	at := time.Now()
	if registered, err := time.Parse(time.RFC3339Nano, line.RegisteredAt); err == nil {
		at = registered
	}
	rec := &record{op: opRegister, at: at.UnixMilli(), subject: line.Subject, version: line.Version, id: line.ID}
	if !known {
		rec.fresh, rec.unchecked, rec.algorithm, rec.typ, rec.text, rec.refs = true, p.unchecked, canonAlgorithm, p.typ,
			p.text, p.refs
	}
	if err := b.append(rec); err != nil {
		return err
	}
	b.count.Versions++
	if !line.Deleted {
		return nil
	}
	return b.append(&record{
		op: opSoftDelete, at: time.Now().UnixMilli(), subject: line.Subject,
		versions: []int32{line.Version},
	})
}
