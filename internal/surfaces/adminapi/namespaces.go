package adminapi

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp"
)

func (c *call) listNamespaces() error {
	visible, err := c.visibilityOf("namespaces")
	if err != nil {
		return err
	}
	all, err := c.Cluster.Catalogue.Namespaces(c.R.Context(), c.Tenant)
	if err != nil && !visible.all {
		err = visible.denial // the response does not reveal which tenants exist
	}
	if err != nil {
		return err
	}
	list := []string{}
	for _, ns := range all {
		if visible.allows(c.itemCall(c.Tenant, ns, names.Topic{}), need("namespaces", "describe")...) {
			list = append(list, ns.String())
		}
	}
	if err := visible.denialIfEmpty(len(list)); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, list)
}

func (c *call) getNamespace() error {
	p, err := c.Cluster.Catalogue.Namespace(c.R.Context(), c.Namespace)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, c.renderPolicies(p))
}

func (c *call) createNamespace() error {
	var body policiesBody
	if _, err := c.Decode(&body, maxAdminBody); err != nil {
		return err
	}
	p, err := body.policies()
	if err != nil {
		return err
	}
	for _, granted := range p.Permissions {
		if err := c.authorizeActions(nil, granted, "messaging.namespaces.manage"); err != nil {
			return c.RecordDenial(err)
		}
	}
	err = c.Cluster.Catalogue.CreateNamespace(c.R.Context(), c.Namespace, p)
	return c.doneWithWarnings(c.nameShadowed(err), slices.Sorted(maps.Keys(p.Permissions))...)
}

// nameShadowed adds to a ShadowError one of the topics that the caller may see. A caller with
// permission to create namespaces in one tenant need not be allowed to see the topics of others.
func (c *call) nameShadowed(err error) error {
	var shadows *messaging.ShadowError
	if !errors.As(err, &shadows) {
		return err
	}
	for _, topic := range shadows.Topics {
		sub := c.itemCall(topic.Namespace.Tenant, topic.Namespace, topic)
		if sub.Require(need("topics", "describe")...) == nil {
			return fmt.Errorf("%w (topic %s)", err, topic)
		}
	}
	return err
}

func (c *call) deleteNamespace() error {
	return c.done(c.Cluster.Catalogue.DeleteNamespace(c.R.Context(), c.Namespace, c.queryFlag("force")))
}

func (c *call) namespacePermissions() error {
	p, err := c.Cluster.Catalogue.Namespace(c.R.Context(), c.Namespace)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, renderPermissions(p.Permissions))
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

// grantBody decodes the actions to grant to a role.
func (c *call) grantBody() ([]messaging.Action, error) {
	var granted []messaging.Action
	ok, err := c.Decode(&granted, maxSmallBody)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, brokerhttp.BadBody("expected an array of actions, such as [\"produce\", \"consume\"]")
	}
	slices.Sort(granted)
	return slices.Compact(granted), nil
}

func (c *call) grantNamespace() error {
	granted, err := c.grantBody()
	if err != nil {
		return err
	}
	return c.doneWithWarnings(c.updateNamespace(func(p *messaging.Policies) error { return c.grant(p, granted) }),
		c.param("role"))
}

func (c *call) revokeNamespace() error {
	return c.done(c.updateNamespace(func(p *messaging.Policies) error {
		p.Revoke(c.param("role"))
		return nil
	}))
}

func (c *call) updateNamespace(change func(*messaging.Policies) error) error {
	return c.Cluster.Catalogue.UpdateNamespace(c.R.Context(), c.Namespace, change)
}

func (c *call) namespaceProperties() error {
	p, err := c.Cluster.Catalogue.Namespace(c.R.Context(), c.Namespace)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, orEmpty(p.Properties))
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// propertiesBody decodes a map of properties.
func (c *call) propertiesBody() (map[string]string, error) {
	var properties map[string]string
	if ok, err := c.Decode(&properties, maxAdminBody); err != nil {
		return nil, err
	} else if !ok {
		return nil, brokerhttp.BadBody("expected an object with string values")
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

// listTopics lists the full names of topics; of a partitioned topic it lists the
// partitions.
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

// listPartitioned lists the full names of partitioned topics.
func (c *call) listPartitioned() error {
	return c.list(func(t messaging.Topic, list []string) []string {
		if t.Partitions == 0 {
			return list
		}
		return append(list, t.Name.String())
	})
}

func (c *call) list(add func(messaging.Topic, []string) []string) error {
	visible, err := c.visibilityOf("topics")
	if err != nil {
		return err
	}
	list, shown := []string{}, 0
	err = c.Cluster.Catalogue.Topics(c.R.Context(), &c.Namespace, func(t messaging.Topic) bool {
		if visible.allows(c.itemCall(c.Tenant, c.Namespace, t.Name),
			need("topics", "describe", "produce", "consume")...) {
			list = add(t, list)
			shown++
		}
		return true
	})
	if err != nil {
		if !visible.all && errs.KindOf(err) == errs.NotFound {
			return visible.denial
		}
		return err
	}
	if err := visible.denialIfEmpty(shown); err != nil {
		return err
	}
	if names.Domain(c.param("domain")) == names.NonPersistent {
		list = []string{} // the namespace exists but cannot have non-persistent topics
	}
	return c.JSON(http.StatusOK, list)
}
