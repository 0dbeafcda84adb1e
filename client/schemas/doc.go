// Package schemas is the Go client of a cluster's schema registry: it registers schemas, looks
// them up, checks their compatibility, and encodes and decodes payloads with a schema id
// prefix, in the format of the Confluent serializers.
//
// Errors are those of package client; Error.Code is the registry's error_code.
//
// # Locks
//
// Codec.mu and TopicCodec.mu each protect the caches of their type. They are not held during
// calls, and never at the same time.
package schemas
