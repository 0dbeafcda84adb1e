package kafkaapi

import (
	"bytes"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// unpadded returns the body of a Metadata request without the padding that librdkafka sends.
//
// Quirk: from Metadata version 9 on librdkafka requests all topics with an array length of four
// zero bytes, although the length has one byte. Apache Kafka ignores bytes after the last field and
// accepts that, so this server must too.
func unpadded(request kmsg.Request, body []byte) ([]byte, bool) {
	const padding = 3
	if _, ok := request.(*kmsg.MetadataRequest); !ok || !request.IsFlexible() ||
		!bytes.HasPrefix(body, make([]byte, 1+padding)) {
		return nil, false
	}
	return body[padding:], true
}

// transactionCode returns the code that refuses a transactional id, after which the client must not retry.
//
// Quirk: clients show the text of FindCoordinator after UNSUPPORTED_VERSION. But librdkafka retries forever after
// that code. It stops after the code for a missing permission, and then shows the text too. Its old versions do
// not report their name.
func (c *call) transactionCode() code {
	known := c.conn.client.Load()
	if known == nil || strings.Contains(known.Name, "rdkafka") || strings.HasPrefix(known.Name, "confluent-kafka") {
		return codeTransactionDenied
	}
	return codeVersion
}
