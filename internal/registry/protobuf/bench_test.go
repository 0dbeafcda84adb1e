package protobuf

import (
	"os"
	"testing"
)

func BenchmarkParse(b *testing.B) {
	text, err := os.ReadFile("testdata/print/proto3.input.proto")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		s, err := Parse(string(text), nil)
		if err != nil {
			b.Fatal(err)
		}
		_ = s.Canonical()
	}
}

func BenchmarkCompare(b *testing.B) {
	text, err := os.ReadFile("testdata/print/proto3.input.proto")
	if err != nil {
		b.Fatal(err)
	}
	old, err := Parse(string(text), nil)
	if err != nil {
		b.Fatal(err)
	}
	new, err := Parse(string(text)+" message More {}", nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compare(old, new, nil); err != nil {
			b.Fatal(err)
		}
	}
}
