package schemas

import (
	"slices"
	"testing"
)

func TestNamesInSchemas(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		kind Type
		text string
		want []string
	}{
		{Avro, `{"type":"record","name":"Order","namespace":"acme.shop","fields":[]}`, []string{"acme.shop.Order"}},
		{Avro, `{"type":"record","name":"acme.Order","namespace":"ignored","fields":[]}`, []string{"acme.Order"}},
		{Avro, `{"type":"record","name":"Order","fields":[]}`, []string{"Order"}},
		{Avro, `"string"`, nil},
		{Avro, `["null","string"]`, nil},
		{JSON, `{"title":"Order","type":"object"}`, []string{"Order"}},
		{JSON, `{"type":"object"}`, nil},
		{
			Protobuf, `syntax = "proto3"; package acme.shop; message Order { message Line {} } message Other {}`,
			[]string{"acme.shop.Order", "acme.shop.Order.Line", "acme.shop.Other"},
		},
		{Protobuf, `syntax = "proto3"; message Order {}`, []string{"Order"}},
		{Protobuf, `no schema`, nil},
	} {
		if got := namesIn(tc.kind, tc.text); !slices.Equal(got, tc.want) {
			t.Errorf("%s %s: got %q, want %q", tc.kind, tc.text, got, tc.want)
		}
	}
}
