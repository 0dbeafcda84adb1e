package protobuf

import "google.golang.org/protobuf/reflect/protoreflect"

// Descriptor returns the linked file, with which payloads can be decoded. It links the closure with
// every call.
func (s *Schema) Descriptor() (file protoreflect.FileDescriptor, err error) {
	defer recovered(&err)
	if err := checkClosure(s.root); err != nil {
		return nil, err
	}
	return newSession().link(s.root)
}
