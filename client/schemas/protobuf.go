package schemas

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"freshet.dev/client/schemas/builtin"
)

// protobufFormat is the Protobuf binary encoding after the indexes of the message in its file:
// the number of indexes and the indexes, as zigzag varints. A single zero is the first message.
type protobufFormat struct {
	file  protoreflect.FileDescriptor
	types linker.Resolver
}

// protobufBase is the name of the schema's own file.
const protobufBase = "schema.proto"

// standardImports resolves the standard imports, google/protobuf. They have precedence over
// references, as in the registry.
var standardImports = protocompile.WithStandardImports(
	protocompile.ResolverFunc(func(string) (protocompile.SearchResult, error) {
		return protocompile.SearchResult{}, fs.ErrNotExist
	}))

func newProtobuf(text string, imports []imported) (format, error) {
	sources := map[string]string{protobufBase: text}
	for _, i := range imports {
		sources[i.name] = i.text
	}
	compiler := protocompile.Compiler{Resolver: protocompile.CompositeResolver{
		standardImports,
		&protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(sources)},
		&protocompile.SourceResolver{Accessor: builtin.Open},
	}}
	files, err := compiler.Compile(context.Background(), protobufBase)
	if err != nil {
		return nil, err
	}
	if files[0].Messages().Len() == 0 {
		return nil, errors.New("schema has no message")
	}
	return &protobufFormat{file: files[0], types: linker.ResolverFromFile(files[0])}, nil
}

func (f *protobufFormat) encode(value any) ([]byte, error) {
	message, ok := value.(proto.Message)
	if !ok {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		return f.encodeJSON(text)
	}
	path := f.pathOf(message.ProtoReflect().Descriptor().FullName())
	if path == nil {
		return nil, fmt.Errorf("schema has no message %s", message.ProtoReflect().Descriptor().FullName())
	}
	return proto.MarshalOptions{}.MarshalAppend(appendPath(nil, path), message)
}

// encodeJSON encodes a JSON text as the first message of the file.
func (f *protobufFormat) encodeJSON(text []byte) ([]byte, error) {
	message := dynamicpb.NewMessage(f.file.Messages().Get(0))
	if err := (protojson.UnmarshalOptions{Resolver: f.types}).Unmarshal(text, message); err != nil {
		return nil, err
	}
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend(appendPath(nil, []int{0}), message)
}

func (f *protobufFormat) decode(data []byte, into any) error {
	descriptor, payload, err := f.message(data)
	if err != nil {
		return err
	}
	if message, ok := into.(proto.Message); ok {
		if name := message.ProtoReflect().Descriptor().FullName(); name != descriptor.FullName() {
			return fmt.Errorf("payload is a message %s, not %s", descriptor.FullName(), name)
		}
		return proto.Unmarshal(payload, message)
	}
	text, err := f.decodeJSON(data)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func (f *protobufFormat) decodeJSON(data []byte) ([]byte, error) {
	descriptor, payload, err := f.message(data)
	if err != nil {
		return nil, err
	}
	message := dynamicpb.NewMessage(descriptor)
	if err := (proto.UnmarshalOptions{Resolver: f.types}).Unmarshal(payload, message); err != nil {
		return nil, err
	}
	text, err := protojson.MarshalOptions{Resolver: f.types}.Marshal(message)
	if err != nil {
		return nil, err
	}
	return compact(text)
}

// maxPath bounds the nesting of message declarations.
const maxPath = 64

// message reads the indexes of a payload and returns the message type and the rest.
func (f *protobufFormat) message(data []byte) (protoreflect.MessageDescriptor, []byte, error) {
	short := errors.New("payload does not start with valid message indexes")
	count, n := binary.Varint(data)
	if n <= 0 || count < 0 || count > maxPath {
		return nil, nil, short
	}
	data = data[n:]
	path := []int64{0}
	if count > 0 {
		path = path[:0]
		for range count {
			index, n := binary.Varint(data)
			if n <= 0 {
				return nil, nil, short
			}
			path, data = append(path, index), data[n:]
		}
	}
	var found protoreflect.MessageDescriptor
	messages := f.file.Messages()
	for _, index := range path {
		if index < 0 || index >= int64(messages.Len()) {
			return nil, nil, fmt.Errorf("schema has no message with the indexes %v", path)
		}
		found = messages.Get(int(index))
		messages = found.Messages()
	}
	return found, data, nil
}

// pathOf returns the indexes of a message in the file, or nil.
func (f *protobufFormat) pathOf(name protoreflect.FullName) []int {
	var walk func(protoreflect.MessageDescriptors, []int) []int
	walk = func(messages protoreflect.MessageDescriptors, path []int) []int {
		for i := range messages.Len() {
			here := append(path[:len(path):len(path)], i)
			if messages.Get(i).FullName() == name {
				return here
			}
			if found := walk(messages.Get(i).Messages(), here); found != nil {
				return found
			}
		}
		return nil
	}
	return walk(f.file.Messages(), nil)
}

func appendPath(b []byte, path []int) []byte {
	if len(path) == 1 && path[0] == 0 {
		return append(b, 0)
	}
	b = binary.AppendVarint(b, int64(len(path)))
	for _, index := range path {
		b = binary.AppendVarint(b, int64(index))
	}
	return b
}
