// Package schemas talks to a cluster's schema registry: it registers schemas,
// looks them up, checks whether a change is compatible, and encodes and decodes
// payloads that begin with the id of their schema, as the serializers of other
// languages do.
//
// Errors are those of package client; Error.Code is the registry's error_code.
package schemas
