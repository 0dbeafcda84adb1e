package registryapi

import (
	"net/url"
	"strconv"
	"strings"

	"freshet/internal/registry/schemas"
)

// query reads the parameters of a call. Unknown ones are ignored.
type query url.Values

func (c *call) query() query {
	if c.r.URL.RawQuery == "" {
		return nil
	}
	return query(c.r.URL.Query())
}

// flag is true for "true" in any case, and for nothing else.
func (q query) flag(name string) bool {
	values := q[name]
	return len(values) > 0 && strings.EqualFold(values[0], "true")
}

// visibility reads deleted and deletedOnly, of which the latter wins.
func (q query) visibility() schemas.Visibility {
	switch {
	case q.flag("deletedOnly"):
		return schemas.OnlyDeleted
	case q.flag("deleted"):
		return schemas.WithDeleted
	}
	return schemas.Active
}

// page is a part of a list: limit entries from offset on, all of them unless a
// limit above 0 is given.
type page struct{ offset, limit int }

func (q query) page() page {
	p := page{limit: -1}
	if n, err := strconv.Atoi(url.Values(q).Get("offset")); err == nil && n > 0 {
		p.offset = n
	}
	if n, err := strconv.Atoi(url.Values(q).Get("limit")); err == nil && n > 0 {
		p.limit = n
	}
	return p
}

// takes says whether the entry that comes next is on the page; done is true
// behind its end.
func (p *page) takes() (take, done bool) {
	switch {
	case p.limit == 0:
		return false, true
	case p.offset > 0:
		p.offset--
		return false, false
	case p.limit > 0:
		p.limit--
	}
	return true, false
}
