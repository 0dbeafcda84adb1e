package apiserver

import (
	"bufio"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"freshet/internal/base/web"
)

// readableStatuses rewrites the API machinery's errors about bodies that cannot be decoded. Its
// handlers create these texts in many places, but all of them pass through an encoder.
type readableStatuses struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (s readableStatuses) SupportedMediaTypes() []runtime.SerializerInfo {
	infos := s.NegotiatedSerializer.SupportedMediaTypes()
	out := make([]runtime.SerializerInfo, 0, len(infos))
	for _, info := range infos {
		if info.Serializer != nil {
			info.Serializer = locatingSerializer{info.Serializer}
		}
		if info.StrictSerializer != nil {
			info.StrictSerializer = locatingSerializer{info.StrictSerializer}
		}
		out = append(out, info)
	}
	return out
}

// EncoderForVersion implements runtime.NegotiatedSerializer. It unwraps the encoder, because
// encoders implement more interfaces than the decoder's wrapper.
func (s readableStatuses) EncoderForVersion(encoder runtime.Encoder, version runtime.GroupVersioner) runtime.Encoder {
	if wrapped, ok := encoder.(locatingSerializer); ok {
		encoder = wrapped.Serializer
	}
	out := s.NegotiatedSerializer.EncoderForVersion(encoder, version)
	if allocating, ok := out.(runtime.EncoderWithAllocator); ok {
		return readableAllocatingEncoder{allocating}
	}
	return readableEncoder{out}
}

type readableEncoder struct{ runtime.Encoder }

// Encode implements runtime.Encoder.
func (e readableEncoder) Encode(obj runtime.Object, w io.Writer) error {
	return encodeBuffered(obj, w, func(w io.Writer) error { return e.Encoder.Encode(readableStatus(obj), w) })
}

type readableAllocatingEncoder struct{ runtime.EncoderWithAllocator }

// Encode implements runtime.Encoder.
func (e readableAllocatingEncoder) Encode(obj runtime.Object, w io.Writer) error {
	return encodeBuffered(obj, w,
		func(w io.Writer) error { return e.EncoderWithAllocator.Encode(readableStatus(obj), w) })
}

// EncodeWithAllocator implements runtime.EncoderWithAllocator.
func (e readableAllocatingEncoder) EncodeWithAllocator(obj runtime.Object, w io.Writer,
	memory runtime.MemoryAllocator,
) error {
	return encodeBuffered(obj, w, func(w io.Writer) error {
		return e.EncoderWithAllocator.EncodeWithAllocator(readableStatus(obj), w, memory)
	})
}

// listBuffers contains buffers for lists.
var listBuffers = sync.Pool{New: func() any { return bufio.NewWriterSize(io.Discard, 64<<10) }}

// encodeBuffered writes a list in chunks of 64 KiB: the API machinery writes it item by item, and
// every small write would be a system call.
func encodeBuffered(obj runtime.Object, w io.Writer, encode func(io.Writer) error) error {
	if !meta.IsListType(obj) {
		return encode(w)
	}
	piece := listBuffers.Get().(*bufio.Writer)
	piece.Reset(w)
	defer func() {
		piece.Reset(io.Discard)
		listBuffers.Put(piece)
	}()
	if err := encode(piece); err != nil {
		return err
	}
	return piece.Flush()
}

func readableStatus(obj runtime.Object) runtime.Object {
	status, ok := obj.(*metav1.Status)
	if !ok || status.Status != metav1.StatusFailure {
		return obj
	}
	plain := status.DeepCopy()
	plain.Message = web.DecodeText(plain.Message)
	if plain.Details != nil {
		for i := range plain.Details.Causes {
			cause := &plain.Details.Causes[i]
			cause.Message = web.DecodeText(cause.Message)
		}
	}
	return plain
}
