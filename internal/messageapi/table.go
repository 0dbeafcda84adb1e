package messageapi

import (
	"net/http"
	"slices"
	"strings"

	"freshet/internal/access"
	"freshet/internal/web"
)

// route is an administrative call.
type route struct {
	method  string
	pattern string              // as in the OpenAPI document
	needs   []access.Permission // any one of them; none means the handler asks itself
	handle  func(*call) error

	root  string
	parts []string // behind the root
}

// table finds routes by path and method. Its paths are short and its calls
// rare, so it looks at the routes of the same length one by one.
type table struct {
	routes []*route
	bySize map[size][]*route
}

type size struct {
	root string
	n    int
}

func newTable(routes []route) *table {
	t := &table{bySize: make(map[size][]*route)}
	for _, r := range routes {
		for _, root := range []string{adminRoot, streamRoot} {
			if rest, ok := strings.CutPrefix(r.pattern, root); ok {
				r.root, r.parts = root, strings.Split(rest, "/")
			}
		}
		key := size{r.root, len(r.parts)}
		t.bySize[key] = append(t.bySize[key], &r)
		t.routes = append(t.routes, &r)
	}
	return t
}

// find returns the route, or the methods that the path does have.
func (t *table) find(root, method string, list []string) (*route, string) {
	var allowed []string
	for _, r := range t.bySize[size{root, len(list)}] {
		if !r.matches(list) {
			continue
		}
		if r.method == method {
			return r, ""
		}
		if !slices.Contains(allowed, r.method) {
			allowed = append(allowed, r.method)
		}
	}
	slices.Sort(allowed)
	return nil, strings.Join(allowed, ", ")
}

func (r *route) matches(list []string) bool {
	for i, part := range r.parts {
		switch {
		case part == "{domain}":
			if list[i] != "persistent" && list[i] != "non-persistent" {
				return false
			}
		case part[0] == '{':
			if list[i] == "" {
				return false
			}
		case part != list[i]:
			return false
		}
	}
	return true
}

// serveAdmin routes an administrative call.
func (c *call) serveAdmin(root string) error {
	var path segments
	if err := path.split(c.r, root); err != nil {
		return err
	}
	list := path.list[:path.n]
	r, allowed := c.api.routes.find(root, c.r.Method, list)
	if r == nil {
		if c.allow = allowed; allowed != "" {
			return errMethod
		}
		return errNoRoute
	}
	c.route = r
	web.RecordOf(c.r.Context()).SetRoute(surfaceName, r.pattern)
	if err := c.api.opts.Gate.Enter(); err != nil {
		return err
	}
	defer c.api.opts.Gate.Leave()
	if err := c.enter(); err != nil {
		return err
	}
	if err := c.bind(r, list); err != nil {
		return err
	}
	if len(r.needs) > 0 {
		if err := c.authorize(r.needs...); err != nil {
			return err
		}
	}
	if err := r.handle(c); err != nil {
		return err
	}
	c.audit(http.StatusOK)
	return nil
}

// bind takes what the path names out of it.
func (c *call) bind(r *route, list []string) error {
	var tenant, namespace, local string
	free := 0
	domain := ""
	for i, part := range r.parts {
		switch part {
		case "{domain}":
			domain = list[i]
		case "{tenant}":
			tenant = list[i]
		case "{namespace}":
			namespace = list[i]
		case "{topic}":
			local = list[i]
		case "{subscription}":
			if err := c.setSubscription(list[i]); err != nil {
				return err
			}
		default:
			if part[0] == '{' {
				c.args[free] = list[i]
				free++
			}
		}
	}
	c.tenant = tenant
	switch {
	case local != "":
		if err := setDomain(domain); err != nil {
			return err
		}
		return c.setTopic(tenant, namespace, local)
	case namespace != "":
		c.domain = domain
		return c.setNamespace(tenant, namespace)
	}
	return nil
}

// json answers with a JSON value.
func (c *call) json(code int, v any) error {
	c.began = true
	return web.WriteJSON(c.w, code, contentJSON, v)
}

// done answers 204 to a call that succeeded.
func (c *call) done(err error) error {
	if err != nil {
		return err
	}
	c.noContent()
	return nil
}

// flag reads a boolean of the query: true in any case, anything else is false.
func (c *call) flag(name string) bool {
	return strings.EqualFold(c.r.URL.Query().Get(name), "true")
}
