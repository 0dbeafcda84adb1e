package protobuf

// workCounter estimates the linker's work that is not linear in the size of a file: the scopes
// that it searches for every name, and the fields that it examines for every oneof. A proto3
// optional field counts as a oneof.
type workCounter struct {
	lookups, oneofs int
	depth           int
	proto3          bool
}

func (c *workCounter) file(f *file) {
	c.proto3 = f.syntax == "proto3"
	c.depth = 2
	for i := range len(f.pkg) {
		if f.pkg[i] == '.' {
			c.depth++
		}
	}
	c.lookups += len(f.options) * c.depth
	for _, m := range f.messages {
		c.message(m)
	}
	for _, e := range f.enums {
		c.enum(e)
	}
	for _, e := range f.extends {
		c.fields(e.fields, e.groups)
	}
	for _, s := range f.services {
		for _, m := range s.methods {
			c.lookups += (2 + len(m.options)) * c.depth
		}
	}
}

func (c *workCounter) message(m *message) {
	c.depth++
	c.lookups += len(m.options) * c.depth
	c.fields(m.fields, m.groups)
	fields, oneofs := len(m.fields)+len(m.groups), len(m.oneofs)
	for _, f := range m.fields {
		if c.proto3 && f.label == labelOptional {
			oneofs++
		}
	}
	for _, o := range m.oneofs {
		c.fields(o.fields, o.groups)
		fields += len(o.fields) + len(o.groups)
	}
	c.oneofs += fields * oneofs
	for _, e := range m.extends {
		c.fields(e.fields, e.groups)
	}
	for _, e := range m.enums {
		c.enum(e)
	}
	for _, nested := range m.messages {
		c.message(nested)
	}
	c.depth--
}

func (c *workCounter) fields(fields []*field, groups []*group) {
	for _, f := range fields {
		c.lookups += (1 + len(f.options)) * c.depth
	}
	for _, g := range groups {
		c.lookups += (1 + len(g.options)) * c.depth
		c.message(g.body)
	}
}

func (c *workCounter) enum(e *enum) {
	for _, v := range e.values {
		c.lookups += len(v.options) * c.depth
	}
}
