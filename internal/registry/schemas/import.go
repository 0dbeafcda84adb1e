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
	maxImportLine  = 16 << 20 // a schema of 5 MB, escaped
	importLines    = 200      // lines that are written together
	importBatchMax = 4 << 20  // bytes of them
)

// Imported counts what an import did.
type Imported struct {
	Versions int `json:"versions"` // written
	Levels   int `json:"levels"`   // written
	Known    int `json:"known"`    // lines that said what was so already
}

// Import reads a file of Export into this registry, ids and versions as they
// are. What is there already is passed over; a line that contradicts it ends
// the import, with the lines before it written. So an import can be repeated.
// What permit says against a subject ends it, too; nil permits all.
func (r *Registry) Import(ctx context.Context, file io.Reader, permit func(subject string) error) (Imported, error) {
	in := &importer{r: r, ctx: ctx, lines: bufio.NewReaderSize(file, 256<<10), permit: permit}
	for !in.ended {
		if err := in.batch(); err != nil {
			return in.total, err
		}
	}
	return in.total, nil
}

// badLine is what is wrong with the file.
func badLine(number int, err error) error {
	return refuse(ErrImport, "Line %d: %s", number, err.Error())
}

type importer struct {
	r      *Registry
	ctx    context.Context // one call's
	lines  *bufio.Reader
	permit func(subject string) error
	number int // of the line read last
	ended  bool
	total  Imported
}

// batch reads some lines and writes them together.
func (in *importer) batch() error {
	var lines []exportLine
	first := in.number
	for size := 0; len(lines) < importLines && size < importBatchMax && !in.ended; {
		line, n, err := in.next()
		if err != nil {
			return badLine(in.number, err)
		}
		if err := in.permitted(&line); err != nil {
			return err
		}
		size += n
		lines = append(lines, line)
	}
	return in.write(first, lines)
}

// write writes a batch of lines. They are read once before the lock is taken, so
// that nobody waits while they are parsed.
func (in *importer) write(first int, lines []exportLine) error {
	subjects, size := in.needs(lines)
	taken, err := in.r.reserve(in.ctx, subjects, size)
	if err != nil {
		return err
	}
	defer taken.done()
	work := in.r.effort(in.ctx)
	work.parsed = map[parseID]form{}
	for range attempts {
		st, err := in.r.machine.Fresh(in.ctx)
		if err != nil {
			return err
		}
		if _, err := in.records(work, st, first, lines); err != nil {
			return err
		}
		var done *importBatch
		_, err = in.r.machine.Update(context.WithoutCancel(in.ctx), func(st *state) ([][]byte, error) {
			if done, err = in.records(work.inLock(), st, first, lines); err != nil {
				return nil, err
			}
			return done.records, nil
		})
		switch {
		case errors.Is(err, errStale):
			continue
		case err != nil:
			return err
		}
		in.total.Versions += done.count.Versions
		in.total.Levels += done.count.Levels
		in.total.Known += done.count.Known
		return nil
	}
	return statemachine.ErrContended
}

// records turns lines into records, as of a state.
func (in *importer) records(work *effort, st *state, first int, lines []exportLine) (*importBatch, error) {
	if st.mode.readOnly() {
		return nil, readOnly(lines[0].Subject)
	}
	b := &importBatch{in: in, work: work, st: st.Clone()}
	for i := range lines {
		if err := b.add(&lines[i]); err != nil {
			if passes(err) {
				return nil, err
			}
			return nil, badLine(first+1+i, err)
		}
	}
	return b, nil
}

// permitted says whether the caller may write what the line is about.
func (in *importer) permitted(line *exportLine) error {
	if in.permit == nil || (line.Kind != lineVersion && line.Kind != lineLevel) {
		return nil
	}
	if err := CheckSubject(line.Subject); err != nil {
		return badLine(in.number, err)
	}
	if err := in.permit(line.Subject); err != nil {
		return fmt.Errorf("Line %d: %w", in.number, err) //nolint:staticcheck // a text for clients, as badLine's
	}
	return nil
}

// next reads a line and checks its place in the file.
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
		return line, 0, errors.New("a file begins with a line of kind registry, and has one")
	case line.Kind == lineRegistry && (line.Format != exportFormat || line.Edition != exportVersion):
		return line, 0, fmt.Errorf("format %q edition %d is unknown", line.Format, line.Edition)
	case line.Kind == lineEnd && line.Lines != in.number-1:
		return line, 0, fmt.Errorf("the file had %d lines, and has %d", line.Lines, in.number-1)
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
			return nil, errors.New("the file is cut short: it has no line of kind end")
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// importBatch turns lines into records, each seeing the ones before.
type importBatch struct {
	in      *importer
	work    *effort
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
		b.count.Known++
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
	p, err := b.in.r.prepare(b.work, b.st, line.Subject, d, preparing{deleted: true, imported: true})
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
			b.count.Known++
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
