package registryapi

import (
	"context"
	"net/url"
	"strconv"

	"freshet/internal/registry/schemas"
)

func (c *call) getTypes() error {
	return c.reply([]byte(`["AVRO","JSON","PROTOBUF"]`))
}

// schemaByID returns the schema with the id of the path, if the caller may read it.
func (c *call) schemaByID() (*schemas.Schema, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	s, err := c.Registry.SchemaByID(c.R.Context(), id)
	if err != nil {
		return nil, err
	}
	if err := c.authorizeID(id); err != nil {
		return nil, err
	}
	return c.formatted(s)
}

// formatted returns a schema in the requested format, if the cluster supports formats
// (docs/spec/registry.md#d12).
func (c *call) formatted(s *schemas.Schema) (*schemas.Schema, error) {
	if !c.HonourFormat {
		return s, nil
	}
	format := schemas.ParseFormat(url.Values(c.query()).Get("format"))
	if format == schemas.Stored {
		return s, nil
	}
	ctx, cancel := context.WithTimeout(c.WorkContext(), c.api.opts.Timeout)
	defer cancel()
	return c.Registry.Formatted(ctx, s, format)
}

func (c *call) id() (int32, error) {
	id, err := strconv.ParseInt(c.param("id"), 10, 32)
	if err != nil {
		return 0, errBadID
	}
	return int32(id), nil
}

// getSchema ignores the parameter subject, which is a hint for registries whose ids are
// not global.
func (c *call) getSchema() error {
	s, err := c.schemaByID()
	if err != nil {
		return err
	}
	return c.replyImmutable(s, s.Body())
}

func (c *call) getSchemaText() error {
	s, err := c.schemaByID()
	if err != nil {
		return err
	}
	return c.replyImmutable(s, []byte(s.Text()))
}

// usages calls visit for every subject version that has the id of the path and that the
// caller may read.
func (c *call) usages(q query, visit func(schemas.Usage)) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	usages, err := c.Registry.Usages(c.R.Context(), id, q.flag("deleted"))
	if err != nil {
		return err
	}
	if err := c.authorizeID(id); err != nil {
		return err
	}
	filter, err := c.newFilter(describeSubject)
	if err != nil {
		return err
	}
	for _, u := range usages {
		show, err := filter.includes(u.Subject)
		if err != nil {
			return err
		}
		if show {
			visit(u)
		}
	}
	return nil
}

func (c *call) getSchemaVersions() error {
	q := c.query()
	p, body := q.page(), []byte{'['}
	err := c.usages(q, func(u schemas.Usage) {
		if take, _ := p.includesNext(); !take {
			return
		}
		if len(body) > 1 {
			body = append(body, ',')
		}
		body = append(body, `{"subject":`...)
		body = schemas.AppendQuoted(body, u.Subject)
		body = append(body, `,"version":`...)
		body = strconv.AppendInt(body, int64(u.Version), 10)
		body = append(body, '}')
	})
	if err != nil {
		return err
	}
	return c.reply(append(body, ']'))
}

func (c *call) getSchemaSubjects() error {
	q := c.query()
	p, body, last := q.page(), []byte{'['}, ""
	err := c.usages(q, func(u schemas.Usage) {
		if u.Subject == last {
			return
		}
		last = u.Subject
		if take, _ := p.includesNext(); !take {
			return
		}
		if len(body) > 1 {
			body = append(body, ',')
		}
		body = schemas.AppendQuoted(body, u.Subject)
	})
	if err != nil {
		return err
	}
	return c.reply(append(body, ']'))
}
