package registryapi

import (
	"errors"

	"freshet/internal/registry/schemas"
)

func (c *call) checkSubject() error {
	d, err := c.draft()
	if err != nil {
		return err
	}
	verdict, err := c.Registry.CheckSubjectVersions(c.R.Context(), c.subject, d)
	return c.replyVerdict(verdict, err)
}

func (c *call) checkVersion() error {
	v, err := schemas.ParseVersion(c.param("version"))
	if err != nil {
		return err
	}
	d, err := c.draft()
	if err != nil {
		return err
	}
	verdict, err := c.Registry.CheckVersion(c.R.Context(), c.subject, v, d)
	return c.replyVerdict(verdict, err)
}

// replyVerdict responds with the result of a check. With verbose, an invalid schema is
// reported as incompatible with a message, not as an error.
func (c *call) replyVerdict(verdict schemas.Verdict, err error) error {
	verbose := c.query().flag("verbose")
	if verbose && errors.Is(err, schemas.ErrInvalidSchema) {
		verdict, err = schemas.Verdict{Messages: []string{err.Error()}}, nil
	}
	if err != nil {
		return err
	}
	body := []byte(`{"is_compatible":false`)
	if verdict.Compatible {
		body = []byte(`{"is_compatible":true`)
	}
	if verbose {
		body = append(body, `,"messages":[`...)
		for i, m := range verdict.Messages {
			if i > 0 {
				body = append(body, ',')
			}
			body = schemas.AppendQuoted(body, m)
		}
		body = append(body, ']')
	}
	return c.reply(append(body, '}'))
}
