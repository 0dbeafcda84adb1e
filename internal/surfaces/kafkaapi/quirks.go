package kafkaapi

import (
	"bytes"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// unpadded returns the body of a request that a widespread client sends with bytes
// too many, without them.
//
// Quirk: from Metadata version 9 on librdkafka asks for all topics with their number
// in four bytes of zero, of which one is the number and three are nothing. Apache
// Kafka does not look at what follows the last field, so nobody noticed.
func unpadded(request kmsg.Request, body []byte) ([]byte, bool) {
	const padding = 3
	if _, ok := request.(*kmsg.MetadataRequest); !ok || !request.IsFlexible() ||
		!bytes.HasPrefix(body, make([]byte, 1+padding)) {
		return nil, false
	}
	return body[padding:], true
}
