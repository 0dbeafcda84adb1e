package streamapi

import (
	"bytes"
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// skimmed says whether the codec may have a body, and which part of it, and what
// memory that takes.
func skimmed(request kmsg.Request, body []byte) (readable []byte, memory int, err error) {
	shape := shapeOf(request.Key(), request.GetVersion())
	memory, err = skim(shape, body)
	if shorter, ok := unpadded(request, body); ok && errors.Is(err, errLeftOver) {
		if small, fits := skim(shape, shorter); fits == nil {
			return shorter, small, nil
		}
	}
	return body, memory, err
}

// unpadded returns the body of a request that a widespread client sends with bytes
// too many, without them.
//
// Quirk: from Metadata version 9 on librdkafka asks for all topics with their number
// in four bytes of zero, of which one is the number and three are nothing. Apache
// Kafka does not look at what follows the last field, so nobody noticed.
func unpadded(request kmsg.Request, body []byte) ([]byte, bool) {
	const padding = 3
	if _, ok := request.(*kmsg.MetadataRequest); !ok || !request.IsFlexible() || !bytes.HasPrefix(body, make([]byte, 1+padding)) {
		return nil, false
	}
	return body[padding:], true
}
