package quantities

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Checked returns serializers that reject bodies with oversized quantities.
func Checked(serializers runtime.NegotiatedSerializer) runtime.NegotiatedSerializer {
	return checkedSerializers{serializers}
}

type checkedSerializers struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (c checkedSerializers) SupportedMediaTypes() []runtime.SerializerInfo {
	infos := c.NegotiatedSerializer.SupportedMediaTypes()
	out := make([]runtime.SerializerInfo, 0, len(infos))
	for _, info := range infos {
		check := checkOf(info.MediaType)
		if info.Serializer != nil {
			info.Serializer = checkedSerializer{info.Serializer, check}
		}
		if info.StrictSerializer != nil {
			info.StrictSerializer = checkedSerializer{info.StrictSerializer, check}
		}
		out = append(out, info)
	}
	return out
}

func checkOf(mediaType string) func([]byte) error {
	switch mediaType {
	case runtime.ContentTypeProtobuf:
		return CheckProtobuf
	case runtime.ContentTypeYAML:
		return CheckYAML
	}
	return CheckJSON
}

// EncoderForVersion implements runtime.NegotiatedSerializer. It unwraps the encoder, because only
// decoding needs the check and encoders implement more interfaces than runtime.Encoder.
func (c checkedSerializers) EncoderForVersion(encoder runtime.Encoder, version runtime.GroupVersioner) runtime.Encoder {
	if wrapped, ok := encoder.(checkedSerializer); ok {
		encoder = wrapped.Serializer
	}
	return c.NegotiatedSerializer.EncoderForVersion(encoder, version)
}

type checkedSerializer struct {
	runtime.Serializer
	check func([]byte) error
}

// Decode implements runtime.Decoder.
func (c checkedSerializer) Decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	if err := c.check(data); err != nil {
		return nil, nil, err
	}
	return c.Serializer.Decode(data, defaults, into)
}
