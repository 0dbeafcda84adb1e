package registryapi

import (
	"strconv"

	"freshet/internal/registry/schemas"
)

// getSubjects lists the subjects that the caller may see. It never returns a denial: an
// empty list can mean that no subject exists or that the caller may see none.
func (c *call) getSubjects() error {
	filter, err := c.newFilter(listSubjects)
	if err != nil {
		return err
	}
	q := c.query()
	p, body := q.page(), append(make([]byte, 0, 4096), '[')
	var failed error
	err = c.Registry.Subjects(c.R.Context(), q.visibility(), func(subject string) bool {
		show, err := filter.includes(subject)
		if err != nil {
			failed = err
			return false
		}
		if !show {
			return true
		}
		take, done := p.includesNext()
		if take {
			if len(body) > 1 {
				body = append(body, ',')
			}
			body = schemas.AppendQuoted(body, subject)
		}
		return !done
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	return c.reply(append(body, ']'))
}

func (c *call) lookUp() error {
	d, err := c.draft()
	if err != nil {
		return err
	}
	q := c.query()
	d.Normalize = q.flag("normalize")
	v, err := c.Registry.Lookup(c.R.Context(), c.subject, d, q.flag("deleted"))
	if err != nil {
		return err
	}
	if v.Schema, err = c.formatted(v.Schema); err != nil {
		return err
	}
	return c.reply(v.AppendJSON(nil))
}

func (c *call) deleteSubject() error {
	versions, err := c.Registry.DeleteSubject(c.R.Context(), c.subject, c.query().flag("permanent"))
	if err != nil {
		return err
	}
	c.Changed = true
	return c.replyNumbers(versions, page{limit: -1})
}

func (c *call) getVersions() error {
	q := c.query()
	versions, err := c.Registry.Versions(c.R.Context(), c.subject, q.visibility())
	if err != nil {
		return err
	}
	return c.replyNumbers(versions, q.page())
}

func (c *call) register() error {
	if err := c.requireNamespace(c.subject); err != nil {
		return err
	}
	d, err := c.draft()
	if err != nil {
		return err
	}
	d.Normalize = c.query().flag("normalize")
	done, err := c.Registry.Register(c.R.Context(), c.subject, d)
	if err != nil {
		return err
	}
	c.Changed = done.New
	body := append(make([]byte, 0, 24), `{"id":`...)
	body = strconv.AppendInt(body, int64(done.ID), 10)
	return c.reply(append(body, '}'))
}

func (c *call) version() (schemas.Version, error) {
	v, err := schemas.ParseVersion(c.param("version"))
	if err != nil {
		return schemas.Version{}, err
	}
	found, err := c.Registry.Version(c.R.Context(), c.subject, v, c.query().flag("deleted"))
	if err != nil {
		return schemas.Version{}, err
	}
	found.Schema, err = c.formatted(found.Schema)
	return found, err
}

func (c *call) getVersion() error {
	v, err := c.version()
	if err != nil {
		return err
	}
	return c.reply(v.AppendJSON(make([]byte, 0, len(v.Subject)+len(v.Schema.Body())+64)))
}

func (c *call) getVersionText() error {
	v, err := c.version()
	if err != nil {
		return err
	}
	return c.reply([]byte(v.Schema.Text()))
}

func (c *call) deleteVersion() error {
	v, err := schemas.ParseVersion(c.param("version"))
	if err != nil {
		return err
	}
	number, err := c.Registry.DeleteVersion(c.R.Context(), c.subject, v, c.query().flag("permanent"))
	if err != nil {
		return err
	}
	c.Changed = true
	return c.reply(strconv.AppendInt(nil, int64(number), 10))
}

func (c *call) getReferencedBy() error {
	v, err := schemas.ParseVersion(c.param("version"))
	if err != nil {
		return err
	}
	q := c.query()
	ids, err := c.Registry.ReferencedBy(c.R.Context(), c.subject, v, q.flag("deleted"))
	if err != nil {
		return err
	}
	return c.replyNumbers(ids, q.page())
}
