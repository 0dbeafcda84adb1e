package messaging

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"freshet/internal/base/errs"
	"freshet/internal/storage/engine"
)

// Snapshot implements statemachine.State. It writes a header, then one record per tenant, namespace
// and topic, each as a line of JSON.
func (c *catalogueState) Snapshot(w io.Writer) error {
	out := &lineWriter{w: bufio.NewWriterSize(w, 64<<10)}
	out.write(record{Op: opSeed, Seeded: c.seeded})
	c.tenants.Scan(func(_ string, t *Tenant) bool {
		out.write(record{Op: opTenant, Tenant: t})
		return out.err == nil
	})
	c.namespaces.Scan(func(n *namespace) bool {
		out.write(record{Op: opNamespace, Name: n.name.String(), Policies: n.policies, Pending: n.pending})
		return out.err == nil
	})
	c.byID.Scan(func(id engine.TopicID, t *topic) bool {
		r := record{
			Op: opCreateTopic, Name: path(t.name), ID: id, At: t.created, History: t.schemas, Pending: t.pending,
			Topic: &topicRecord{Partitions: t.partitions, Terminated: t.terminated},
		}
		if t.policies != noPolicies {
			r.Topic.Policies = t.policies
		}
		out.write(r)
		return out.err == nil
	})
	c.groups.Scan(func(item groupItem) bool {
		out.write(record{
			Op:         opGroup,
			ShareGroup: &groupRecord{Tenant: item.tenant, Name: item.group, Configs: item.configs},
		})
		return out.err == nil
	})
	if out.err != nil {
		return out.err
	}
	return out.w.Flush()
}

type lineWriter struct {
	w   *bufio.Writer
	err error
}

func (l *lineWriter) write(r record) {
	if l.err == nil {
		_, l.err = l.w.Write(append(r.encode(), '\n'))
	}
}

// Restore implements statemachine.State.
func (c *catalogueState) Restore(r io.Reader) error {
	in := json.NewDecoder(bufio.NewReaderSize(r, 64<<10))
	for line := 1; ; line++ {
		var r record
		if err := in.Decode(&r); errors.Is(err, io.EOF) {
			if line == 1 {
				return errs.New(errs.Internal, "catalogue snapshot is empty")
			}
			return nil
		} else if err != nil {
			return fmt.Errorf("catalogue snapshot, line %d: %w", line, err)
		}
		if r.Format > recordFormat {
			return fmt.Errorf("catalogue snapshot of format %d: %w", r.Format, engine.ErrNewerFormat)
		}
		if err := c.restoreRecord(r); err != nil {
			return fmt.Errorf("catalogue snapshot, line %d: %w", line, err)
		}
	}
}

func (c *catalogueState) restoreRecord(r record) error {
	switch r.Op {
	case opSeed:
		c.seeded = r.Seeded
		return nil
	case opTenant, opGroup:
		return c.Apply(0, r.encode())
	case opNamespace:
		name, err := namespaceOfPath(r.Name)
		if err != nil {
			return err
		}
		if r.Policies == nil {
			return incomplete(r)
		}
		c.namespaces.Set(&namespace{name: name, policies: r.Policies, pending: r.Pending})
		return nil
	case opCreateTopic:
		if err := c.applyCreateTopic(uint64(r.ID), r); err != nil {
			return err
		}
		t, _ := c.byID.Get(r.ID)
		c.schemaBytes += r.History.size()
		// The topic was created above and is not published yet, so it may be modified.
		t.terminated, t.schemas, t.pending = r.Topic.Terminated, r.History, r.Pending
		if t.schemas != nil {
			for _, v := range t.schemas.Versions {
				v.sum = v.Schema.sum()
			}
		}
		return nil
	}
	return fmt.Errorf("catalogue operation %q in a snapshot: %w", r.Op, engine.ErrNewerFormat)
}
