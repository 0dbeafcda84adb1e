package protobuf

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile/linker"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// noTypes is an empty resolver, so that decoding does not use the extensions that are linked
// into this binary.
var noTypes = new(protoregistry.Types)

// decodeDescriptor decodes base64 of a serialized FileDescriptorProto, the form in which some
// clients send schemas. It returns nil for other texts: no .proto file consists only of the
// characters of base64.
func decodeDescriptor(text string) *descriptorpb.FileDescriptorProto {
	packed := strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == ' ' || r == '\t' {
			return -1
		}
		return r
	}, text)
	encoding := base64.StdEncoding
	if strings.ContainsAny(packed, "-_") {
		encoding = base64.URLEncoding
	}
	raw, err := encoding.WithPadding(base64.NoPadding).DecodeString(strings.TrimRight(packed, "="))
	if err != nil {
		return nil
	}
	var fd descriptorpb.FileDescriptorProto
	if err := (proto.UnmarshalOptions{Resolver: noTypes, RecursionLimit: maxDepth * 4}).Unmarshal(raw,
		&fd); err != nil {
		return nil
	}
	if len(fd.GetMessageType())+len(fd.GetEnumType())+len(fd.GetService())+len(fd.GetExtension())+
		len(fd.GetDependency()) == 0 {
		return nil // a word that is also valid base64
	}
	return &fd
}

// descriptorText prints a descriptor as .proto text. The caller parses the text like any
// other, which checks the descriptor. Without check, custom options that cannot be decoded
// are omitted.
func descriptorText(fd *descriptorpb.FileDescriptorProto, refs []Reference, check bool) (string, error) {
	if depth := descriptorDepth(fd.GetMessageType()); depth > maxDepth {
		return "", invalidf("messages are nested too deeply")
	}
	model := modelOf(fd, nil)
	if !hasUnknownBytes(fd.ProtoReflect()) {
		return printFile(model), nil
	}
	// Custom options are opaque bytes until this file and the files that define them are
	// linked.
	root := &source{path: rootPath, model: model}
	linked, err := linkDescriptor(root, refs, check)
	if err != nil && check {
		return "", err
	}
	if err != nil {
		return printFile(model), nil //nolint:nilerr // unchecked schemas need not be linkable
	}
	return printFile(modelOf(fd, &optionDecoder{root: root, types: linker.ResolverFromFile(linked)})), nil
}

func linkDescriptor(root *source, refs []Reference, check bool) (linker.File, error) {
	if err := closure(root, refs, check); err != nil {
		return nil, err
	}
	if err := checkClosure(root); err != nil {
		return nil, err
	}
	return newSession().link(root)
}

func descriptorDepth(messages []*descriptorpb.DescriptorProto) int {
	deepest := 0
	for _, m := range messages {
		deepest = max(deepest, 1+descriptorDepth(m.GetNestedType()))
	}
	return deepest
}

func hasUnknownBytes(m protoreflect.Message) bool {
	if len(m.GetUnknown()) > 0 {
		return true
	}
	found := false
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Message() == nil || fd.IsMap(): // descriptors have no maps
		case fd.IsList():
			for i := range v.List().Len() {
				found = found || hasUnknownBytes(v.List().Get(i).Message())
			}
		default:
			found = hasUnknownBytes(v.Message())
		}
		return !found
	})
	return found
}

// modelOf converts a descriptor to a model. It keeps the names of the descriptor, which
// usually have a leading dot. If decoder is nil, only built-in options are read.
func modelOf(fd *descriptorpb.FileDescriptorProto, decoder *optionDecoder) *file {
	d := &descriptorReader{decoder: decoder, syntax: fd.GetSyntax()}
	f := &file{pkg: fd.GetPackage(), options: d.options(fd.GetOptions())}
	if fd.GetSyntax() == "editions" || fd.Edition != nil {
		f.edition = strings.TrimPrefix(fd.GetEdition().String(), "EDITION_")
		d.syntax = "editions"
	} else {
		f.syntax = fd.GetSyntax()
	}
	for _, path := range fd.GetDependency() {
		f.imports = append(f.imports, importDecl{path: path})
	}
	for kind, indexes := range map[importKind][]int32{
		importPublic: fd.GetPublicDependency(), importWeak: fd.GetWeakDependency(),
	} {
		for _, i := range indexes {
			if int(i) < len(f.imports) && i >= 0 {
				f.imports[i].kind = kind
			}
		}
	}
	groups := map[string]bool{}
	f.extends = d.extends(fd.GetExtension(), fd.GetMessageType(), groups)
	for i, m := range fd.GetMessageType() {
		if !groups[m.GetName()] {
			f.messages = append(f.messages, d.messageAt(i, m))
		}
	}
	for _, e := range fd.GetEnumType() {
		f.enums = append(f.enums, d.enum(e))
	}
	for _, s := range fd.GetService() {
		f.services = append(f.services, d.service(s))
	}
	f.custom = d.custom
	return f
}

type descriptorReader struct {
	decoder *optionDecoder
	syntax  string
	custom  bool
}

func (d *descriptorReader) message(md *descriptorpb.DescriptorProto) *message {
	m := &message{name: md.GetName(), options: d.options(md.GetOptions())}
	generated := map[string]bool{} // nested types that fields declare: map entries and groups
	m.extends = d.extends(md.GetExtension(), md.GetNestedType(), generated)
	for _, o := range md.GetOneofDecl() {
		m.oneofs = append(m.oneofs, &oneof{name: o.GetName(), options: d.options(o.GetOptions())})
	}
	for _, fld := range md.GetField() {
		fields, groups := &m.fields, &m.groups
		if i := fld.GetOneofIndex(); fld.OneofIndex != nil && !fld.GetProto3Optional() && i >= 0 &&
			int(i) < len(m.oneofs) {
			fields, groups = &m.oneofs[i].fields, &m.oneofs[i].groups
		}
		if body := groupOf(fld, md.GetNestedType()); body != nil {
			generated[body.GetName()] = true
			*groups = append(*groups, d.group(fld, slices.Index(md.GetNestedType(), body), body))
			continue
		}
		*fields = append(*fields, d.field(fld, mapEntryOf(fld, md, generated)))
	}
	m.oneofs = dropEmpty(m.oneofs)
	for i, nested := range md.GetNestedType() {
		if !generated[nested.GetName()] {
			m.messages = append(m.messages, d.messageAt(i, nested))
		}
	}
	for _, e := range md.GetEnumType() {
		m.enums = append(m.enums, d.enum(e))
	}
	for _, r := range md.GetReservedRange() {
		m.reserved = append(m.reserved, reserved{ranges: []tagRange{inclusive(r.GetStart(), r.GetEnd()-1)}})
	}
	m.reserved = append(m.reserved, d.reservedNames(md.GetReservedName())...)
	for _, r := range md.GetExtensionRange() {
		m.extensions = append(m.extensions, extensionRange{
			ranges: []tagRange{inclusive(r.GetStart(), r.GetEnd()-1)}, options: d.options(r.GetOptions()),
		})
	}
	return m
}

// messageAt is message with the index among its siblings.
func (d *descriptorReader) messageAt(order int, md *descriptorpb.DescriptorProto) *message {
	m := d.message(md)
	m.order = order
	return m
}

// dropEmpty removes the synthetic oneofs of proto3 optional fields.
func dropEmpty(oneofs []*oneof) []*oneof {
	var real []*oneof
	for _, o := range oneofs {
		if len(o.fields)+len(o.groups) > 0 {
			real = append(real, o)
		}
	}
	return real
}

func inclusive(start, end int32) tagRange {
	return tagRange{start: int64(start), end: int64(end), single: start == end}
}

func (d *descriptorReader) reservedNames(names []string) []reserved {
	var out []reserved
	for _, name := range names {
		out = append(out, reserved{names: []string{name}, idents: d.syntax == "editions"})
	}
	return out
}

func (d *descriptorReader) enum(ed *descriptorpb.EnumDescriptorProto) *enum {
	e := &enum{name: ed.GetName(), options: d.options(ed.GetOptions())}
	for _, v := range ed.GetValue() {
		e.values = append(e.values, enumValue{
			name: v.GetName(), number: int64(v.GetNumber()), options: d.options(v.GetOptions()),
		})
	}
	for _, r := range ed.GetReservedRange() {
		e.reserved = append(e.reserved, reserved{ranges: []tagRange{inclusive(r.GetStart(), r.GetEnd())}})
	}
	e.reserved = append(e.reserved, d.reservedNames(ed.GetReservedName())...)
	return e
}

func (d *descriptorReader) service(sd *descriptorpb.ServiceDescriptorProto) *service {
	s := &service{name: sd.GetName(), options: d.options(sd.GetOptions())}
	for _, m := range sd.GetMethod() {
		s.methods = append(s.methods, &method{
			name: m.GetName(), input: m.GetInputType(), output: m.GetOutputType(),
			clientStreams: m.GetClientStreaming(), serverStreams: m.GetServerStreaming(),
			options: d.options(m.GetOptions()),
		})
	}
	return s
}

// extends collects consecutive extensions of the same type into blocks. It marks the messages
// of groups in generated.
func (d *descriptorReader) extends(
	fields []*descriptorpb.FieldDescriptorProto, siblings []*descriptorpb.DescriptorProto, generated map[string]bool,
) []*extend {
	var out []*extend
	for _, fld := range fields {
		if len(out) == 0 || out[len(out)-1].extendee != fld.GetExtendee() {
			out = append(out, &extend{extendee: fld.GetExtendee()})
		}
		e := out[len(out)-1]
		if body := groupOf(fld, siblings); body != nil {
			generated[body.GetName()] = true
			order := slices.Index(siblings, body)
			if n := len(e.groups); n > 0 && e.groups[n-1].body.order+1 != order {
				// A message is declared between the two groups, so they are in two blocks.
				e = &extend{extendee: fld.GetExtendee()}
				out = append(out, e)
			}
			e.groups = append(e.groups, d.group(fld, order, body))
			continue
		}
		e.fields = append(e.fields, d.field(fld, nil))
	}
	return out
}
