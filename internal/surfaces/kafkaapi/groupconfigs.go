package kafkaapi

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
)

// groupConfigs returns the configurations of a group, which need not exist. The intervals and timeouts of members are
// the same for all groups and cannot be changed. The others are those of the share group of that name.
func (c *call) groupConfigs(ctx context.Context, group string) ([]messaging.KafkaConfig, error) {
	if err := c.authorizeGroup(ctx, group, describeGroup); err != nil {
		return nil, err
	}
	heartbeat, session := c.coordinator().ConsumerTimeouts()
	all, err := c.session.cluster.Shares.GroupConfigs(ctx, c.session.namespace.Tenant, group)
	if err != nil {
		return nil, err
	}
	for _, kind := range []string{"consumer", groups.TypeShare} {
		for name, value := range map[string]int64{
			".heartbeat.interval.ms": heartbeat.Milliseconds(), ".session.timeout.ms": session.Milliseconds(),
		} {
			text := strconv.FormatInt(value, 10)
			all = append(all, messaging.KafkaConfig{
				Name: kind + name, Value: text, Default: text, ReadOnly: true, Kind: messaging.ConfigInt,
				Doc: "The same for all groups.",
			})
		}
	}
	slices.SortFunc(all, func(a, b messaging.KafkaConfig) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// alterGroupConfig changes the configurations of a share group. They apply to all topics of the tenant, so the caller
// needs its permission on the group in the whole tenant; and to limit deliveries, permissions on dead-letter topics.
func (c *call) alterGroupConfig(ctx context.Context, group string, changes []messaging.ConfigChange,
	dryRun bool,
) error {
	scope := c.groupScopeOf(group)
	whole, err := (&access.Consumers{Scope: scope}).MayUse(c.may(ctx), alterGroup.onGroup)
	if err != nil {
		return err
	}
	if !whole {
		return c.deniedGroup(alterGroup, scope)
	}
	if messaging.LimitsDeliveries(changes) {
		scope.Subscription = ""
		for _, p := range []access.Permission{permitProduce, permitCreate} {
			ok, err := c.has(ctx, p, scope)
			if err != nil {
				return err
			}
			if !ok {
				c.auditDenied(p, scope)
				return fmt.Errorf("%w: a limit of deliveries creates dead-letter topics, which needs the permissions "+
					"to create topics in the tenant and to produce to them", errGroupDenied)
			}
		}
	}
	err = c.session.cluster.Shares.AlterGroupConfig(ctx, c.session.namespace.Tenant, group, changes, dryRun)
	if !dryRun {
		c.auditAllowed(permitUpdateSubscription, c.groupScope(group), err)
	}
	return err
}

// configuredGroups returns the groups with configurations that the caller may describe.
func (c *call) configuredGroups(ctx context.Context) []string {
	quiet := *c
	quiet.unaudited = true
	return slices.DeleteFunc(c.session.cluster.Shares.ConfiguredGroups(c.session.namespace.Tenant),
		func(group string) bool {
			scope := &access.Consumers{Scope: c.groupScopeOf(group)}
			ok, err := scope.MayUse(quiet.may(ctx), describeGroup.onGroup)
			return !ok || err != nil
		})
}
