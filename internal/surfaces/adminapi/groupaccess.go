package adminapi

import (
	"errors"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/internal/surfaces/brokerhttp"
)

// Permissions on consumer groups are the same as over the Kafka protocol (docs/spec/stream.md#permissions): on the
// group itself, or on every topic that it reads.

// seeGroupPermissions are the permissions to see a group; any one of them on the group is enough.
var seeGroupPermissions = append(need("subscriptions", "describe"), brokerhttp.PermitConsume)

// errUnresolved means that a topic that a group reads is not in the cached catalogue.
var errUnresolved = errors.New("topic of the group is not in the cached catalogue")

// groupCheck decides whether the caller may act on a group.
type groupCheck struct {
	c        *call
	group    access.Consumers
	onTopics []access.Permission
	named    []names.Topic // topics that the request adds to the group
	denied   error         // the denial of the permission on the group; nil if the caller has it
	gone     map[uint64]bool
}

// checkGroup returns a check of permissions on a group: one of onGroup on the group itself, otherwise one of
// onTopics on each of its topics.
func (c *call) checkGroup(key groups.Key, onGroup, onTopics []access.Permission, named ...names.Topic) (*groupCheck,
	error,
) {
	item := c.itemCall(key.Tenant, names.Namespace{}, names.Topic{})
	item.Group = key.Group
	k := &groupCheck{
		c: c, group: access.Consumers{Scope: item.Scope()}, onTopics: onTopics, named: named,
		gone: make(map[uint64]bool),
	}
	if k.denied = c.Require(onGroup...); k.denied != nil && errs.KindOf(k.denied) != errs.Denied {
		return nil, k.denied
	}
	return k, nil
}

// caller returns the caller for the coordinator.
func (k *groupCheck) caller() groups.Caller {
	caller := groups.Caller{Principal: access.PrincipalID(k.c.Principal)}
	if k.denied != nil {
		caller.May = k.may
	}
	return caller
}

// may implements groups.Caller.May. It does not block.
func (k *groupCheck) may(reads groups.Reads) error {
	group := k.group
	// The namespace for topic names that members of an earlier version of the server sent is not known.
	group.Unknown = reads.Unknown || len(reads.Names) > 0
	group.Topics = append(group.Topics, k.named...)
	group.Topics = append(group.Topics, reads.Topics...)
	for _, id := range reads.IDs {
		name, ok := k.c.Cluster.Kafka.TopicNameCached(id)
		switch {
		case ok:
			group.Topics = append(group.Topics, name)
		case !k.gone[uint64(id)]:
			return errUnresolved
		}
	}
	ok, err := group.MayUse(k.c.HasOn, nil, k.onTopics...)
	if err == nil && !ok {
		err = groups.ErrDenied
	}
	return err
}

// lookUp looks up the topics that the cached catalogue does not have. It may block. Afterwards the cached
// catalogue has those that exist.
func (k *groupCheck) lookUp(reads groups.Reads) error {
	for _, id := range reads.IDs {
		if _, ok := k.c.Cluster.Kafka.TopicNameCached(id); ok || k.gone[uint64(id)] {
			continue
		}
		_, err := k.c.Cluster.Kafka.KafkaTopicByID(k.c.R.Context(), uint64(id))
		if err != nil && !errors.Is(err, messaging.ErrNoTopic) {
			return err
		}
		k.gone[uint64(id)] = err != nil
	}
	return nil
}

// allow returns an error unless the caller may act on a group that reads these topics.
func (k *groupCheck) allow(reads groups.Reads) error {
	if k.denied == nil {
		return nil
	}
	if err := k.lookUp(reads); err != nil {
		return err
	}
	return k.asDenial(k.may(reads))
}

// asDenial returns the denial of the permission on the group for a caller who has none on its topics either.
func (k *groupCheck) asDenial(err error) error {
	if errors.Is(err, groups.ErrDenied) {
		return k.denied
	}
	return err
}

// act calls a function of the coordinator that checks the permission. It repeats the call if the group got topics
// that are not in the cached catalogue.
func (k *groupCheck) act(coordinator *groups.Coordinator, key groups.Key, do func(groups.Caller) error) error {
	for {
		reads, err := coordinator.Reads(key)
		if err == nil {
			err = k.allow(reads)
		}
		if err != nil {
			return err
		}
		if err = do(k.caller()); !errors.Is(err, errUnresolved) {
			return k.asDenial(err)
		}
	}
}

// sees reports whether the caller may see a group. It does not change the audit record of the call.
func (c *call) sees(key groups.Key, reads groups.Reads) bool {
	item := *c
	item.Call = c.itemCall(key.Tenant, names.Namespace{}, names.Topic{})
	item.Group = key.Group
	return item.maySee(key, reads) == nil
}

// maySee returns an error unless the caller may see a group that reads these topics.
func (c *call) maySee(key groups.Key, reads groups.Reads) error {
	check, err := c.checkGroup(key, seeGroupPermissions, []access.Permission{brokerhttp.PermitConsume})
	if err != nil {
		return err
	}
	return check.allow(reads)
}
