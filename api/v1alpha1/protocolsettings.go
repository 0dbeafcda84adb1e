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

// ProtocolSettings are the settings of one protocol of a cluster: an object with any fields, at
// most 16 KiB as JSON and 16 levels deep.
//
// +protobuf.options.marshal=false
// +protobuf.options.(gogoproto.goproto_stringer)=false
type ProtocolSettings struct {
	// Raw is the object as compact JSON with sorted keys. It is empty after decoding null, which
	// disables a protocol: the service drops the entry. An empty Raw is encoded as {}.
	Raw []byte `json:"-" protobuf:"bytes,1,opt,name=raw"`
}

var (
	jsonNull    = []byte("null")
	jsonNothing = []byte("{}")
)

// UnmarshalJSON implements json.Unmarshaler. It stores equal settings as equal bytes, whatever
// their formatting.
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

// canonicalJSON decodes numbers as the API machinery does, so that settings that went through a
// patch or an apply are the same bytes as settings that did not.
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

// String returns the settings as JSON.
func (s *ProtocolSettings) String() string {
	if s == nil {
		return "nil"
	}
	return "&ProtocolSettings{" + string(s.Raw) + "}"
}

// OpenAPISchemaType is called by openapi-gen.
func (ProtocolSettings) OpenAPISchemaType() []string { return []string{"object"} }

// OpenAPISchemaFormat is called by openapi-gen.
func (ProtocolSettings) OpenAPISchemaFormat() string { return "" }

const rawField = protowire.Number(1)

// Size implements the protobuf interface of the API machinery, as the methods below do.
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

var errProtobuf = errors.New("protocol settings are not a protobuf message")

// Unmarshal reads the message. It rejects settings that are not JSON, because MarshalJSON could not
// write them. Servers and clients from before there were settings wrote an empty message for an
// enabled protocol, so an empty message is {}.
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
		return fmt.Errorf("protocol settings are not JSON: %w", err)
	}
	return nil
}
