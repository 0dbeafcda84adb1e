package registryapi

import (
	"net/url"
	"strconv"
	"strings"

	"freshet/internal/registry/schemas"
)

// query has the query parameters of a call. Unknown ones are ignored.
type query url.Values

func (c *call) query() query {
	if c.R.URL.RawQuery == "" {
		return nil
	}
	return query(c.R.URL.Query())
}

// flag returns true for "true" in upper or lower case, otherwise false.
func (q query) flag(name string) bool {
	values := q[name]
	return len(values) > 0 && strings.EqualFold(values[0], "true")
}

// visibility parses deleted and deletedOnly; deletedOnly takes precedence.
func (q query) visibility() schemas.Visibility {
	switch {
	case q.flag("deletedOnly"):
		return schemas.OnlyDeleted
	case q.flag("deleted"):
		return schemas.WithDeleted
	}
	return schemas.Active
}

// page is a part of a list: limit entries from offset on. A negative limit means all.
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

// includesNext reports whether the next entry is on the page. done is true after the end of the
// page.
func (p *page) includesNext() (take, done bool) {
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
