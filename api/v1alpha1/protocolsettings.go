package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// ProtocolSettings are the settings of one protocol of a cluster: an object of any
// shape, at most 16 KiB as JSON and 16 levels deep.
//
// +protobuf.options.marshal=false
// +protobuf.options.(gogoproto.goproto_stringer)=false
type ProtocolSettings struct {
	// Raw is the object as JSON: compact, the keys in order. Nothing is written as
	// an object without settings. After a null was read it is empty: that switches a
	// protocol off, and the service drops the entry.
	Raw []byte `json:"-" protobuf:"bytes,1,opt,name=raw"`
}

var (
	jsonNull    = []byte("null")
	jsonNothing = []byte("{}")
)

// UnmarshalJSON implements json.Unmarshaler. Equal settings are equal bytes
// afterwards, however they were written.
func (s *ProtocolSettings) UnmarshalJSON(data []byte) error {
	if data = bytes.TrimSpace(data); bytes.Equal(data, jsonNull) {
		s.Raw = nil
		return nil
	}
	raw, err := canonicalJSON(data)
	if err != nil {
		return err
	}
	s.Raw = raw
	return nil
}

// canonicalJSON reads numbers as the machinery does, so that what went through a
// patch or an apply is the same bytes as what did not.
func canonicalJSON(data []byte) ([]byte, error) {
	var value any
	if err := utiljson.Unmarshal(data, &value); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// MarshalJSON implements json.Marshaler.
func (s ProtocolSettings) MarshalJSON() ([]byte, error) {
	if len(s.Raw) == 0 {
		return jsonNothing, nil
	}
	return s.Raw, nil
}

// String shows the settings as JSON.
func (s *ProtocolSettings) String() string {
	if s == nil {
		return "nil"
	}
	return "&ProtocolSettings{" + string(s.Raw) + "}"
}

// OpenAPISchemaType is asked by the generator of the OpenAPI definitions.
func (ProtocolSettings) OpenAPISchemaType() []string { return []string{"object"} }

// OpenAPISchemaFormat is asked by the generator of the OpenAPI definitions.
func (ProtocolSettings) OpenAPISchemaFormat() string { return "" }

const rawField = protowire.Number(1)

// Size implements the machinery's protobuf interface, as do the methods below.
func (s *ProtocolSettings) Size() int {
	if s == nil || len(s.Raw) == 0 {
		return 0
	}
	return protowire.SizeTag(rawField) + protowire.SizeBytes(len(s.Raw))
}

// Marshal writes the message.
func (s *ProtocolSettings) Marshal() ([]byte, error) {
	out := make([]byte, s.Size())
	n, err := s.MarshalToSizedBuffer(out)
	return out[:n], err
}

// MarshalTo writes the message to the beginning of data.
func (s *ProtocolSettings) MarshalTo(data []byte) (int, error) {
	return s.MarshalToSizedBuffer(data[:s.Size()])
}

// MarshalToSizedBuffer writes the message to the end of data.
func (s *ProtocolSettings) MarshalToSizedBuffer(data []byte) (int, error) {
	size := s.Size()
	if size == 0 {
		return 0, nil
	}
	out := protowire.AppendTag(data[len(data)-size:len(data)-size], rawField, protowire.BytesType)
	protowire.AppendBytes(out, s.Raw)
	return size, nil
}

var errProtobuf = errors.New("the settings of a protocol are not a protobuf message")

// Unmarshal reads the message. What is not JSON is refused here, so that it can be
// written as JSON later. An empty message is what servers and clients wrote that knew
// no settings: a protocol that is on.
func (s *ProtocolSettings) Unmarshal(data []byte) error {
	raw := jsonNothing
	for len(data) > 0 {
		number, wireType, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errProtobuf
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(number, wireType, data); n < 0 {
			return errProtobuf
		}
		if number == rawField && wireType == protowire.BytesType {
			raw, _ = protowire.ConsumeBytes(data)
		}
		data = data[n:]
	}
	if err := s.UnmarshalJSON(slices.Clone(raw)); err != nil {
		return fmt.Errorf("the settings of a protocol are not JSON: %w", err)
	}
	return nil
}
