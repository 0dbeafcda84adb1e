package messageapi

import (
	"maps"
	"net/http"
	"slices"

	"freshet/internal/errs"
	"freshet/internal/messaging"
	"freshet/internal/names"
)

func (c *call) listNamespaces() error {
	seen, err := c.see("namespaces")
	if err != nil {
		return err
	}
	all, err := c.broker().Namespaces(c.r.Context(), c.tenant)
	if err != nil && !seen.all {
		err = seen.why // who may see nothing is not told what exists
	}
	if err != nil {
		return err
	}
	list := []string{}
	for _, ns := range all {
		if seen.allows(c.beneath(c.tenant, ns, names.Topic{}), need("namespaces", "describe")...) {
			list = append(list, ns.String())
		}
	}
	if err := seen.none(len(list)); err != nil {
		return err
	}
	return c.json(http.StatusOK, list)
}

func (c *call) getNamespace() error {
	p, err := c.broker().Namespace(c.r.Context(), c.namespace)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, c.renderPolicies(p))
}

func (c *call) createNamespace() error {
	var body policiesBody
	if _, err := c.decode(&body, maxAdminBody); err != nil {
		return err
	}
	p, err := body.policies()
	if err != nil {
		return err
	}
	return c.done(c.broker().CreateNamespace(c.r.Context(), c.namespace, p))
}

func (c *call) deleteNamespace() error {
	return c.done(c.broker().DeleteNamespace(c.r.Context(), c.namespace, c.flag("force")))
}

func (c *call) namespacePermissions() error {
	p, err := c.broker().Namespace(c.r.Context(), c.namespace)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, renderPermissions(p.Permissions))
}

func renderPermissions(lists ...map[string][]messaging.Action) map[string][]messaging.Action {
	out := map[string][]messaging.Action{}
	for _, permissions := range lists {
		for role, granted := range permissions {
			for _, a := range granted {
				if !slices.Contains(out[role], a) {
					out[role] = append(out[role], a)
				}
			}
		}
	}
	return out
}

// grantBody reads the actions that a role is to have.
func (c *call) grantBody() ([]messaging.Action, error) {
	var granted []messaging.Action
	ok, err := c.decode(&granted, maxSmallBody)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, badBody("it must be an array of actions")
	}
	slices.Sort(granted)
	return slices.Compact(granted), nil
}

func grant(p *messaging.Policies, role string, granted []messaging.Action) {
	if p.Permissions == nil {
		p.Permissions = make(map[string][]messaging.Action)
	}
	p.Permissions[role] = granted
}

func (c *call) grantNamespace() error {
	granted, err := c.grantBody()
	if err != nil {
		return err
	}
	return c.done(c.updateNamespace(func(p *messaging.Policies) error {
		grant(p, c.args[0], granted)
		return nil
	}))
}

func (c *call) revokeNamespace() error {
	return c.done(c.updateNamespace(func(p *messaging.Policies) error {
		delete(p.Permissions, c.args[0])
		return nil
	}))
}

func (c *call) updateNamespace(change func(*messaging.Policies) error) error {
	return c.broker().UpdateNamespace(c.r.Context(), c.namespace, change)
}

func (c *call) namespaceProperties() error {
	p, err := c.broker().Namespace(c.r.Context(), c.namespace)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, orEmpty(p.Properties))
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// propertiesBody reads a map of properties.
func (c *call) propertiesBody() (map[string]string, error) {
	var properties map[string]string
	if ok, err := c.decode(&properties, maxAdminBody); err != nil {
		return nil, err
	} else if !ok {
		return nil, badBody("it must be an object of strings")
	}
	return properties, nil
}

func (c *call) setNamespaceProperties() error {
	properties, err := c.propertiesBody()
	if err != nil {
		return err
	}
	return c.done(c.updateNamespace(func(p *messaging.Policies) error {
		if p.Properties == nil {
			p.Properties = make(map[string]string, len(properties))
		}
		maps.Copy(p.Properties, properties)
		return nil
	}))
}

func (c *call) clearNamespaceProperties() error {
	return c.done(c.updateNamespace(func(p *messaging.Policies) error {
		p.Properties = nil
		return nil
	}))
}

// listTopics lists the full names of topics, partitions one by one.
func (c *call) listTopics() error {
	return c.list(func(t messaging.Topic, list []string) []string {
		if t.Partitions == 0 {
			return append(list, t.Name.String())
		}
		for i := range t.Partitions {
			list = append(list, t.Name.WithPartition(i).String())
		}
		return list
	})
}

// listPartitioned lists the full names of topics with partitions.
func (c *call) listPartitioned() error {
	return c.list(func(t messaging.Topic, list []string) []string {
		if t.Partitions == 0 {
			return list
		}
		return append(list, t.Name.String())
	})
}

func (c *call) list(add func(messaging.Topic, []string) []string) error {
	seen, err := c.see("topics")
	if err != nil {
		return err
	}
	list, shown := []string{}, 0
	err = c.broker().Topics(c.r.Context(), &c.namespace, func(t messaging.Topic) bool {
		if seen.allows(c.beneath(c.tenant, c.namespace, t.Name), need("topics", "describe", "produce", "consume")...) {
			list = add(t, list)
			shown++
		}
		return true
	})
	if err != nil {
		if !seen.all && errs.KindOf(err) == errs.NotFound {
			return seen.why
		}
		return err
	}
	if err := seen.none(shown); err != nil {
		return err
	}
	if names.Domain(c.domain) == names.NonPersistent {
		list = []string{} // the namespace is there, and has none of these
	}
	return c.json(http.StatusOK, list)
}
