package protobuf

import (
	"encoding/base64"

	"google.golang.org/protobuf/proto"
)

// descriptorName is the file name in a serialized schema, which has no path. Clients replace
// it.
const descriptorName = "default"

// Serialized returns base64 of the compiled FileDescriptorProto. It does not contain custom
// options without a definition. A schema that was stored without checks may not compile.
func (s *Schema) Serialized() (text string, err error) {
	defer recovered(&err)
	if err := checkClosure(s.root); err != nil {
		return "", err
	}
	tree, exact, err := s.root.compilable()
	if err != nil {
		return "", err
	}
	linked, err := newSession().linkTree(s.root, tree, &problems{positions: exact})
	if err != nil {
		return "", err
	}
	fd := proto.CloneOf(linked.FileDescriptorProto())
	fd.Name = proto.String(descriptorName)
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(fd)
	if err != nil {
		return "", invalidf("%v", err)
	}
	return base64.StdEncoding.EncodeToString(data), nil
}

// WithoutExtensions returns the canonical text without extend blocks and
// without options that extensions define.
func (s *Schema) WithoutExtensions() string {
	r := rewriter{
		options:  func(_ string, options []option) []option { return plainOptions(options) },
		typeName: func(_, name string) string { return name },
	}
	f := r.file(s.written)
	f.extends = nil
	for _, m := range f.messages {
		m.dropExtends()
	}
	return printFile(f)
}

func plainOptions(options []option) []option {
	var plain []option
	for _, o := range options {
		custom := false
		for _, part := range o.name {
			custom = custom || part.ext
		}
		if !custom {
			plain = append(plain, o)
		}
	}
	return plain
}

// dropExtends removes the extends of m and its nested messages. It changes m, which must not
// be shared.
func (m *message) dropExtends() {
	m.extends = nil
	for _, nested := range m.messages {
		nested.dropExtends()
	}
	for _, g := range m.groups {
		g.body.dropExtends()
	}
	for _, o := range m.oneofs {
		for _, g := range o.groups {
			g.body.dropExtends()
		}
	}
}
