package protobuf

// rewriter copies a model. It passes the options and the type names of every declaration to
// functions, with their scope, and sorts declarations if arrange is set. It produces the
// linker's input and the normalized text.
type rewriter struct {
	options  func(scope string, options []option) []option
	typeName func(scope, name string) string
	arrange  bool
}

func (r *rewriter) file(f *file) *file {
	out := *f
	scope := f.pkg
	out.options = r.options(scope, f.options)
	out.messages = r.messages(scope, f.messages)
	out.enums = r.enums(scope, f.enums)
	out.extends = r.extends(scope, f.extends)
	out.services = nil
	for _, s := range f.services {
		out.services = append(out.services, r.service(scope, s))
	}
	if r.arrange {
		arrangeFile(&out)
	}
	return &out
}

func (r *rewriter) messages(scope string, messages []*message) []*message {
	var out []*message
	for _, m := range messages {
		out = append(out, r.message(scope, m))
	}
	return out
}

// message rewrites m. The names in its own options are resolved in the outer scope, because
// Protobuf does not allow a message to use its nested extensions by their short names.
func (r *rewriter) message(outer string, m *message) *message {
	scope := qualify(outer, m.name)
	out := &message{
		name:     m.name,
		order:    m.order,
		reserved: m.reserved,
		options:  r.options(outer, m.options),
		fields:   r.fields(scope, m.fields),
		groups:   r.groups(scope, m.groups),
		extends:  r.extends(scope, m.extends),
		messages: r.messages(scope, m.messages),
		enums:    r.enums(scope, m.enums),
	}
	for _, o := range m.oneofs {
		out.oneofs = append(out.oneofs, &oneof{
			name:    o.name,
			options: r.options(scope, o.options),
			fields:  r.fields(scope, o.fields),
			groups:  r.groups(scope, o.groups),
		})
	}
	for _, e := range m.extensions {
		out.extensions = append(out.extensions, extensionRange{
			ranges: e.ranges, options: r.options(scope, e.options),
		})
	}
	if r.arrange {
		arrangeMessage(out)
	}
	return out
}

func (r *rewriter) fields(scope string, fields []*field) []*field {
	var out []*field
	for _, f := range fields {
		copied := *f
		copied.typ = r.typeName(scope, f.typ)
		copied.options = r.options(scope, f.options)
		out = append(out, &copied)
	}
	return out
}

func (r *rewriter) groups(scope string, groups []*group) []*group {
	var out []*group
	for _, g := range groups {
		copied := *g
		copied.options = r.options(scope, g.options)
		copied.body = r.message(scope, g.body)
		out = append(out, &copied)
	}
	return out
}

func (r *rewriter) enums(scope string, enums []*enum) []*enum {
	var out []*enum
	for _, e := range enums {
		copied := *e
		copied.options = r.options(scope, e.options)
		copied.values = nil
		for _, v := range e.values {
			v.options = r.options(scope, v.options)
			copied.values = append(copied.values, v)
		}
		if r.arrange {
			arrangeEnum(&copied)
		}
		out = append(out, &copied)
	}
	return out
}

func (r *rewriter) extends(scope string, extends []*extend) []*extend {
	var out []*extend
	for _, e := range extends {
		out = append(out, &extend{
			extendee: r.typeName(scope, e.extendee),
			fields:   r.fields(scope, e.fields),
			groups:   r.groups(scope, e.groups),
		})
	}
	if r.arrange {
		return arrangeExtends(out)
	}
	return out
}

func (r *rewriter) service(outer string, s *service) *service {
	scope := qualify(outer, s.name)
	out := &service{name: s.name, options: r.options(outer, s.options)}
	for _, m := range s.methods {
		copied := *m
		copied.input = r.typeName(scope, m.input)
		copied.output = r.typeName(scope, m.output)
		copied.options = r.options(scope, m.options)
		out.methods = append(out.methods, &copied)
	}
	return out
}
