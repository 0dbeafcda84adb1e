package quantities

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Checked returns serializers that reject bodies with oversized quantities.
func Checked(serializers runtime.NegotiatedSerializer) runtime.NegotiatedSerializer {
	return checked{serializers}
}

type checked struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (c checked) SupportedMediaTypes() []runtime.SerializerInfo {
	infos := c.NegotiatedSerializer.SupportedMediaTypes()
	out := make([]runtime.SerializerInfo, 0, len(infos))
	for _, info := range infos {
		look := checkOf(info.MediaType)
		if info.Serializer != nil {
			info.Serializer = careful{info.Serializer, look}
		}
		if info.StrictSerializer != nil {
			info.StrictSerializer = careful{info.StrictSerializer, look}
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
func (c checked) EncoderForVersion(encoder runtime.Encoder, version runtime.GroupVersioner) runtime.Encoder {
	if wrapped, ok := encoder.(careful); ok {
		encoder = wrapped.Serializer
	}
	return c.NegotiatedSerializer.EncoderForVersion(encoder, version)
}

type careful struct {
	runtime.Serializer
	look func([]byte) error
}

// Decode implements runtime.Decoder.
func (c careful) Decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	if err := c.look(data); err != nil {
		return nil, nil, err
	}
	return c.Serializer.Decode(data, defaults, into)
}
