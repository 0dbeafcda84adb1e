package messaging

import (
	"context"
	"maps"
	"slices"

	"github.com/tidwall/btree"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
)

// maxConfiguredGroups bounds the groups of a tenant that have configurations.
const maxConfiguredGroups = 1000

// groupKey identifies a configured group in the catalogue. The group "" is before all groups of the tenant.
type groupKey struct{ tenant, group string }

// groupRecord is a group with configurations in the catalogue's journal.
type groupRecord struct {
	Tenant  string            `json:"tenant"`
	Name    string            `json:"name"`
	Configs map[string]string `json:"configs,omitempty"` // none removes the group
}

type groupItem struct {
	groupKey
	configs map[string]string
}

func newGroupTree(opts btree.Options) *btree.BTreeG[groupItem] {
	return btree.NewBTreeGOptions(func(a, b groupItem) bool {
		if a.tenant != b.tenant {
			return a.tenant < b.tenant
		}
		return a.group < b.group
	}, opts)
}

func (c *catalogueState) applyGroup(r record) error {
	if r.ShareGroup == nil {
		return incomplete(r)
	}
	item := groupItem{groupKey{r.ShareGroup.Tenant, r.ShareGroup.Name}, r.ShareGroup.Configs}
	if len(item.configs) == 0 {
		c.groups.Delete(item)
	} else {
		c.groups.Set(item)
	}
	return nil
}

// groupsOf returns the configured groups of a tenant.
func (c *catalogueState) groupsOf(tenant string) (all []groupItem) {
	c.groups.Ascend(groupItem{groupKey: groupKey{tenant: tenant}}, func(item groupItem) bool {
		if item.tenant == tenant {
			all = append(all, item)
		}
		return item.tenant == tenant
	})
	return all
}

func (c *catalogueState) groupConfigs(tenant, group string) map[string]string {
	item, _ := c.groups.Get(groupItem{groupKey: groupKey{tenant, group}})
	return item.configs
}

// GroupConfigs returns the configuration of a share group in order of the names. A group need not exist.
func (s *Shares) GroupConfigs(ctx context.Context, tenant, group string) ([]KafkaConfig, error) {
	c, err := s.consumer.catalogue.state.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	set := c.groupConfigs(tenant, group)
	var all []KafkaConfig
	for _, name := range slices.Sorted(maps.Keys(groupConfigs)) {
		config := groupConfigs[name]
		row := KafkaConfig{
			Name: name, Value: config.defaultValue, Default: config.defaultValue, Kind: config.kind,
			Doc: groupConfigDocs[name],
		}
		if value, ok := set[name]; ok {
			row.Value, row.Set = value, true
		}
		all = append(all, row)
	}
	return all, nil
}

// ConfiguredGroups returns the groups of a tenant that have configurations.
func (s *Shares) ConfiguredGroups(tenant string) (all []string) {
	for _, item := range s.consumer.catalogue.state.View().groupsOf(tenant) {
		all = append(all, item.group)
	}
	return all
}

// LimitsDeliveries reports whether changes set a limit of deliveries, for which the group moves records to dead-letter
// topics.
func LimitsDeliveries(changes []ConfigChange) bool {
	return slices.ContainsFunc(changes, func(c ConfigChange) bool {
		return c.Name == configShareLimit && c.Op == ConfigSet
	})
}

// AlterGroupConfig changes configurations of a share group. With dryRun it only validates them.
func (s *Shares) AlterGroupConfig(ctx context.Context, tenant, group string, changes []ConfigChange,
	dryRun bool,
) error {
	if err := names.CheckSubscription(group); err != nil {
		return errs.Newf(errs.Invalid, "%w: %w", ErrName, err)
	}
	for i := range changes {
		if err := s.checkGroupChange(&changes[i]); err != nil {
			return err
		}
	}
	if dryRun {
		return nil
	}
	_, err := s.consumer.catalogue.state.Update(ctx, func(c *catalogueState) ([][]byte, error) {
		if _, ok := c.tenants.Get(tenant); !ok {
			return nil, ErrNoTenant
		}
		before := c.groupConfigs(tenant, group)
		if before == nil && len(c.groupsOf(tenant)) >= maxConfiguredGroups {
			return nil, errs.Newf(errs.Precondition, "%w: a tenant may have %d groups with configurations",
				ErrTopicLimit, maxConfiguredGroups)
		}
		after := maps.Clone(before)
		if after == nil {
			after = make(map[string]string)
		}
		for i := range changes {
			if changes[i].Op == ConfigReset {
				delete(after, changes[i].Name)
			} else {
				after[changes[i].Name] = changes[i].Value
			}
		}
		if maps.Equal(before, after) {
			return nil, nil
		}
		return [][]byte{groupConfigRecord(tenant, group, after)}, nil
	})
	return err
}

func groupConfigRecord(tenant, group string, configs map[string]string) []byte {
	return record{Op: opGroup, ShareGroup: &groupRecord{Tenant: tenant, Name: group, Configs: configs}}.encode()
}

func (s *Shares) checkGroupChange(change *ConfigChange) error {
	config, known := groupConfigs[change.Name]
	switch {
	case change.Op == ConfigReset:
		return nil
	case !known:
		return errs.Newf(errs.Invalid, "%w: %s is not a configuration of groups that can be changed", ErrConfig,
			change.Name)
	case change.Op != ConfigSet:
		return errs.Newf(errs.Invalid, "%w: %s is not a list, so append and subtract do not apply; set it", ErrConfig,
			change.Name)
	}
	if err := config.check(change.Value, s.consumer.limits); err != nil {
		return errs.Newf(errs.Invalid, "%w: %s: %w", ErrConfig, change.Name, err)
	}
	return nil
}

// dropGroupConfig removes the configurations of a group that is deleted.
func (s *Shares) dropGroupConfig(ctx context.Context, tenant, group string) error {
	_, err := s.consumer.catalogue.state.UpdateWhenDiskFull(ctx, func(c *catalogueState) ([][]byte, error) {
		if c.groupConfigs(tenant, group) == nil {
			return nil, nil
		}
		return [][]byte{groupConfigRecord(tenant, group, nil)}, nil
	})
	return err
}
