package protobuf

import (
	"fmt"
	"strings"

	"github.com/bufbuild/protocompile/linker"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Validate reports whether data is an encoded message of the schema. An empty
// name means the first message; a name may leave out the package.
func (s *Schema) Validate(messageName string, data []byte) error {
	md, err := s.message(messageName)
	if err != nil {
		return err
	}
	if err := proto.Unmarshal(data, dynamicpb.NewMessage(md)); err != nil {
		return fmt.Errorf("%w: %s: %s", ErrRecord, md.FullName(), cleanText(err))
	}
	return nil
}

// cleanText drops the random spaces that the protobuf module puts into its
// messages, so that ours are the same each time.
func cleanText(err error) string {
	text := strings.ReplaceAll(err.Error(), "\u00a0", " ")
	return strings.TrimPrefix(text, "proto: ")
}

func (s *Schema) message(name string) (protoreflect.MessageDescriptor, error) {
	linked, err := s.descriptor()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotLinkable, err)
	}
	if name == "" {
		return messageAt(linked, []int{0})
	}
	for _, full := range []string{name, qualify(s.root.model.pkg, name)} {
		if md := findMessage(linked, protoreflect.FullName(full), maxFiles); md != nil {
			return md, nil
		}
	}
	return nil, fmt.Errorf("%w: %s", ErrNoMessage, name)
}

// findMessage looks in a file and in what it passes on by public imports, hops
// of them at most.
func findMessage(f linker.File, name protoreflect.FullName, hops int) protoreflect.MessageDescriptor {
	if md, ok := f.FindDescriptorByName(name).(protoreflect.MessageDescriptor); ok {
		return md
	}
	for i := range f.Imports().Len() {
		imp := f.Imports().Get(i)
		if !imp.IsPublic || hops == 0 {
			continue
		}
		if next := f.FindImportByPath(imp.Path()); next != nil {
			if md := findMessage(next, name, hops-1); md != nil {
				return md
			}
		}
	}
	return nil
}

// MessageByIndexes returns the full name of the message that a record's index
// path means: the index in the file, then the index in each message on the way
// down, counted as protoc counts them, maps' entry types included. No indexes
// mean the first message.
func (s *Schema) MessageByIndexes(indexes []int) (string, error) {
	linked, err := s.descriptor()
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNotLinkable, err)
	}
	if len(indexes) == 0 {
		indexes = []int{0}
	}
	md, err := messageAt(linked, indexes)
	if err != nil {
		return "", err
	}
	return string(md.FullName()), nil
}

// messageAt walks an index path. A file that declares no message and only
// passes another one on by a public import stands for that one.
func messageAt(fd protoreflect.FileDescriptor, indexes []int) (protoreflect.MessageDescriptor, error) {
	var md protoreflect.MessageDescriptor
	messages := fd.Messages()
	for hops := 0; messages.Len() == 0 && hops < maxDepth; hops++ {
		next := publicImport(fd)
		if next == nil {
			break
		}
		fd, messages = next, next.Messages()
	}
	for _, i := range indexes {
		if i < 0 || i >= messages.Len() {
			return nil, fmt.Errorf("%w: message index %v", ErrNoMessage, indexes)
		}
		md = messages.Get(i)
		messages = md.Messages()
	}
	return md, nil
}

func publicImport(fd protoreflect.FileDescriptor) protoreflect.FileDescriptor {
	for i := range fd.Imports().Len() {
		if imp := fd.Imports().Get(i); imp.IsPublic {
			return imp.FileDescriptor
		}
	}
	return nil
}
