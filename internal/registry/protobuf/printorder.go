package protobuf

import (
	"cmp"
	"slices"
)

// A group is a message, and records contain the index of their message among its siblings.
// The layout has a section for each kind of declaration, which can change that index. If it
// would, the declarations that contain messages are printed in their original order instead.

// holders are the declarations of a message that contain messages, and those of the same
// kinds that do not.
type holders struct {
	oneofs, plainOneofs   []*oneof
	extends, plainExtends []*extend
}

// shuffled returns the holders of m, and whether the sections would change the order of its
// messages.
func (m *message) shuffled() (holders, bool) {
	var h holders
	var orders []int
	for _, o := range m.oneofs {
		if len(o.groups) == 0 {
			h.plainOneofs = append(h.plainOneofs, o)
			continue
		}
		h.oneofs = append(h.oneofs, o)
		orders = appendOrders(orders, o.groups)
	}
	orders = appendOrders(orders, m.groups)
	for _, e := range m.extends {
		if len(e.groups) == 0 {
			h.plainExtends = append(h.plainExtends, e)
			continue
		}
		h.extends = append(h.extends, e)
		orders = appendOrders(orders, e.groups)
	}
	for _, nested := range m.messages {
		orders = append(orders, nested.order)
	}
	return h, !slices.IsSorted(orders)
}

// shuffled returns the extends that contain messages, the other extends, and whether the
// sections would change the order of the messages of f.
func (f *file) shuffled() (extends, rest []*extend, ok bool) {
	var orders []int
	for _, m := range f.messages {
		orders = append(orders, m.order)
	}
	for _, e := range f.extends {
		if len(e.groups) == 0 {
			rest = append(rest, e)
			continue
		}
		extends = append(extends, e)
		orders = appendOrders(orders, e.groups)
	}
	return extends, rest, !slices.IsSorted(orders)
}

func appendOrders(orders []int, groups []*group) []int {
	for _, g := range groups {
		orders = append(orders, g.body.order)
	}
	return orders
}

// inOrder prints the declarations that contain messages, by the index of the first message
// of each. The messages of one declaration have consecutive indexes.
func (p *printer) inOrder(extends []*extend, oneofs []*oneof, groups []*group, messages []*message) {
	type holder struct {
		order int
		print func()
	}
	var all []holder
	for i, e := range extends {
		all = append(all, holder{e.groups[0].body.order, func() { p.extendBlocks(extends[i : i+1]) }})
	}
	for i, o := range oneofs {
		all = append(all, holder{o.groups[0].body.order, func() { p.oneofs(oneofs[i : i+1]) }})
	}
	for i, g := range groups {
		all = append(all, holder{g.body.order, func() { p.groups(groups[i : i+1]) }})
	}
	for i, m := range messages {
		all = append(all, holder{m.order, func() { p.types(messages[i:i+1], nil) }})
	}
	slices.SortStableFunc(all, func(a, b holder) int { return cmp.Compare(a.order, b.order) })
	for _, h := range all {
		h.print()
	}
}
