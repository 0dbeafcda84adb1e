package messaging_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"freshet/internal/base/names"
	"freshet/internal/broker/filter"
	"freshet/internal/broker/messaging"
)

func record(fields string) string {
	return `{"type":"record","name":"Order","fields":[` + fields + `]}`
}

var (
	orderV0 = record(`{"name":"id","type":"string"}`)
	orderV1 = record(`{"name":"id","type":"string"},{"name":"n","type":"int","default":0}`)
	orderNo = record(`{"name":"id","type":"string"},{"name":"must","type":"int"}`)
)

func avroSchema(text string) messaging.Schema {
	return messaging.Schema{Type: messaging.SchemaAvro, Text: text}
}

func TestSchemaVersions(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	name := topic("orders") // created automatically with its schema
	add := func(text string) int64 {
		t.Helper()
		v, err := c.Schemas.Add(ctx, name, avroSchema(text), false)
		c.do(err)
		return v
	}
	if v := add(orderV0); v != 0 {
		t.Errorf("first version is %d", v)
	}
	if v := add(orderV0 + "\n"); v != 0 {
		t.Errorf("same definition again: got version %d", v)
	}
	if v := add(orderV1); v != 1 {
		t.Errorf("second version is %d", v)
	}
	if v := add(orderV0); v != 0 {
		t.Errorf("first definition again: got version %d", v)
	}
	_, err := c.Schemas.Add(ctx, name, avroSchema(orderNo), false)
	wantErr(t, err, messaging.ErrIncompatibleSchema)
	if latest, err := c.Schemas.Latest(ctx, name); err != nil || latest.Version != 1 || latest.At == 0 {
		t.Errorf("latest %+v, %v", latest, err)
	}
	if v, err := c.Schemas.Find(ctx, name, avroSchema(orderV1)); err != nil || v != 1 {
		t.Errorf("found version %d, %v", v, err)
	}
	_, err = c.Schemas.Find(ctx, name, avroSchema(orderNo))
	wantErr(t, err, messaging.ErrNoSchema)

	v, err := c.Schemas.Delete(ctx, name, false)
	if err != nil || v != 2 {
		t.Errorf("deleted at version %d, %v", v, err)
	}
	_, err = c.Schemas.Latest(ctx, name)
	wantErr(t, err, messaging.ErrNoSchema)
	_, err = c.Schemas.Delete(ctx, name, false)
	wantErr(t, err, messaging.ErrNoSchema)
	if old, err := c.Schemas.ByVersion(ctx, name, 1); err != nil || old.Text != orderV1 {
		t.Errorf("deleted version: got %+v, %v; want it readable", old, err)
	}
	_, err = c.Schemas.ByVersion(ctx, name, 2)
	wantErr(t, err, messaging.ErrNoSchema)
	_, err = c.Producer.Produce(ctx, name, &messaging.Message{SchemaVersion: 1})
	wantErr(t, err, messaging.ErrNoSchema)
	if v := add(orderNo); v != 3 {
		t.Errorf("after the deletion: got version %d", v)
	}
	list, err := c.Schemas.List(ctx, name)
	if err != nil || len(list) != 1 || list[0].Version != 3 {
		t.Errorf("list %+v, %v", list, err)
	}
	if _, err := c.Schemas.Delete(ctx, name, true); err != nil {
		t.Error(err)
	}
	_, err = c.Schemas.ByVersion(ctx, name, 1)
	wantErr(t, err, messaging.ErrNoSchema)
	if v := add(orderV0); v != 4 {
		t.Errorf("after a forced deletion: got version %d", v)
	}
}

func TestSchemaStrategies(t *testing.T) {
	t.Parallel()
	withDefault := record(`{"name":"id","type":"string"},{"name":"n","type":"int","default":0}`)
	without := record(`{"name":"id","type":"string"},{"name":"n","type":"int"}`)
	for _, tc := range []struct {
		strategy messaging.Strategy
		versions []string // all but the last must be accepted
		ok       bool
	}{
		{messaging.StrategyFull, []string{orderV0, withDefault}, true},
		{messaging.StrategyFull, []string{orderV0, without}, false},
		{messaging.StrategyUndefined, []string{orderV0, without}, false},
		{messaging.StrategyBackward, []string{without, orderV0}, true},
		{messaging.StrategyBackward, []string{orderV0, without}, false},
		{messaging.StrategyForward, []string{orderV0, without}, true},
		{messaging.StrategyForward, []string{without, orderV0}, false},
		{messaging.StrategyBackward, []string{orderV0, withDefault, without}, true},
		{messaging.StrategyBackwardTransitive, []string{orderV0, withDefault, without}, false},
		{messaging.StrategyForwardTransitive, []string{without, withDefault, orderV0}, false},
		{messaging.StrategyForward, []string{without, withDefault, orderV0}, true},
		{messaging.StrategyFullTransitive, []string{orderV0, withDefault}, true},
		{messaging.StrategyAlwaysCompatible, []string{orderV0, without}, true},
		{messaging.StrategyAlwaysIncompatible, []string{orderV0, withDefault}, false},
		{messaging.StrategyAlwaysIncompatible, []string{orderV0}, true},
	} {
		t.Run(fmt.Sprintf("%s/%d versions", tc.strategy, len(tc.versions)), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, messaging.Options{})
			ctx := t.Context()
			c.do(c.Catalogue.UpdateNamespace(ctx, names.PublicDefault, func(p *messaging.Policies) error {
				p.Compatibility = tc.strategy
				return nil
			}))
			last := len(tc.versions) - 1
			for _, text := range tc.versions[:last] {
				_, err := c.Schemas.Add(ctx, topic("t"), avroSchema(text), false)
				c.do(err)
			}
			if last > 0 {
				if _, err := c.Schemas.Check(ctx, topic("t"), avroSchema(tc.versions[last])); (err == nil) != tc.ok {
					t.Errorf("TestSchema returned %v, want ok %v", err, tc.ok)
				}
			}
			_, err := c.Schemas.Add(ctx, topic("t"), avroSchema(tc.versions[last]), false)
			if (err == nil) != tc.ok || err != nil && !errors.Is(err, messaging.ErrIncompatibleSchema) {
				t.Errorf("got %v, want ok %v", err, tc.ok)
			}
		})
	}
}

func TestSchemaTypeCannotChange(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	name := c.create("orders", 0)
	_, err := c.Schemas.Add(ctx, name, messaging.Schema{Type: messaging.SchemaString}, false)
	c.do(err)
	_, err = c.Schemas.Add(ctx, name, avroSchema(orderV0), false)
	wantErr(t, err, messaging.ErrIncompatibleSchema)
	c.do(c.Catalogue.UpdateTopic(ctx, name, func(p *messaging.Policies) error {
		p.Compatibility = messaging.StrategyAlwaysCompatible
		return nil
	}))
	v, err := c.Schemas.Add(ctx, name, avroSchema(orderV0), false)
	if err != nil || v != 1 {
		t.Errorf("got version %d, %v", v, err)
	}
}

func TestSchemaUpdatesCanBeLeftToAdministrators(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	no := false
	c.do(c.Catalogue.UpdateNamespace(ctx, names.PublicDefault, func(p *messaging.Policies) error {
		p.AllowSchemaUpdates = &no
		return nil
	}))
	_, err := c.Schemas.Add(ctx, topic("orders"), avroSchema(orderV0), false)
	wantErr(t, err, messaging.ErrSchemaUpdate)
	if _, err := c.Schemas.Add(ctx, topic("orders"), avroSchema(orderV0), true); err != nil {
		t.Error(err)
	}
}

func TestConcurrentSchemasGetOneNumberEach(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	name := c.create("orders", 0)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var versions []int64
	for i := range 8 {
		wg.Go(func() {
			field := fmt.Sprintf(`{"name":"f%d","type":"int","default":0}`, i)
			v, err := c.Schemas.Add(ctx, name, avroSchema(record(field)), false)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			versions = append(versions, v)
		})
	}
	wg.Wait()
	slices.Sort(versions)
	if !slices.Equal(versions, []int64{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("got %v", versions)
	}
}

func nativeSchema(t *testing.T) messaging.Schema {
	t.Helper()
	set := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{
		Name: proto.String("order.proto"), Package: proto.String("acme"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{
			Name: proto.String("Order"),
			Field: []*descriptorpb.FieldDescriptorProto{{
				Name: proto.String("id"), Number: proto.Int32(1),
				Type:  descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(),
				Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
			}},
		}},
	}}}
	raw, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{
		"fileDescriptorSet":      base64.StdEncoding.EncodeToString(raw),
		"rootMessageTypeName":    "acme.Order",
		"rootFileDescriptorName": "order.proto",
	})
	if err != nil {
		t.Fatal(err)
	}
	return messaging.Schema{Type: messaging.SchemaProtobufNative, Text: string(text)}
}

func TestPayloadValidation(t *testing.T) {
	t.Parallel()
	pair := func(encoding string) messaging.Schema {
		return messaging.Schema{
			Type: messaging.SchemaKeyValue, Text: `{"key":"","value":` + orderV0 + `}`,
			Properties: map[string]string{
				"key.schema.type": "STRING", "value.schema.type": "JSON",
				"kv.encoding.type": encoding,
			},
		}
	}
	for _, tc := range []struct {
		name      string
		schema    messaging.Schema
		good, bad string
	}{
		{"string", messaging.Schema{Type: messaging.SchemaString}, "größe", "\xff"},
		{"json", messaging.Schema{Type: messaging.SchemaJSON, Text: orderV0}, `{"id":"a"}`, `{"id":1}`},
		{"json that is none", messaging.Schema{Type: messaging.SchemaJSON, Text: orderV0}, `{"id":"a"}`, `{"id"`},
		{"avro", avroSchema(orderV0), "\x02a", "\x04a"},
		{"avro with a rest", avroSchema(orderV0), "\x02a", "\x02ab"},
		{"protobuf", messaging.Schema{Type: messaging.SchemaProtobuf, Text: orderV0}, "\x0a\x01a", "\x0a\x05a"},
		{"protobuf native", nativeSchema(t), "\x0a\x01a", "\x0a\x01\xff"},
		{"boolean", messaging.Schema{Type: messaging.SchemaBoolean}, "\x01", "\x02"},
		{"empty boolean", messaging.Schema{Type: messaging.SchemaBoolean}, "\x01", ""},
		{"int32", messaging.Schema{Type: messaging.SchemaInt32}, "\x00\x00\x00\x01", "\x01"},
		{"instant", messaging.Schema{Type: messaging.SchemaInstant}, "123456789012", "1"},
		{
			"pair inline", pair("INLINE"), "\x00\x00\x00\x01k\x00\x00\x00\x0a" + `{"id":"a"}`,
			"\x00\x00\x00\x01k\x00\x00\x00\x02{}",
		},
		{"pair with null", pair("INLINE"), "\xff\xff\xff\xff\x00\x00\x00\x0a" + `{"id":"a"}`, "\xff\xff\xff\xfe"},
		{"pair separated", pair("SEPARATED"), `{"id":"a"}`, `{}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, messaging.Options{})
			ctx := t.Context()
			name := c.create("t", 0)
			_, err := c.Schemas.Add(ctx, name, tc.schema, false)
			c.do(err)
			if v := c.produce(name, text(tc.bad)).SchemaVersion; v != 0 {
				t.Errorf("stamped with version %d", v)
			}
			yes := true
			c.do(c.Catalogue.UpdateNamespace(ctx, names.PublicDefault, func(p *messaging.Policies) error {
				p.ValidatePayload = &yes
				return nil
			}))
			c.produce(name, text(tc.good))
			c.produce(name, text(tc.good)) // with the cached schema
			_, err = c.Producer.Produce(ctx, name, text(tc.bad))
			wantErr(t, err, messaging.ErrPayload)
		})
	}
}

// TestPayloadsThatParse checks policy ParsePayload: payloads must have the format of the type, but
// need not match the schema.
func TestPayloadsThatParse(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for _, tc := range []struct {
		name            string
		schema          messaging.Schema
		parses, garbage string
	}{
		{"json", messaging.Schema{Type: messaging.SchemaJSON, Text: orderV0}, `{"id":5}`, `{"id":`},
		{"avro", avroSchema(orderV0), "\x02a", "\x02"},
		{"protobuf", messaging.Schema{Type: messaging.SchemaProtobuf, Text: orderV0}, "\x08\x01", "\x08"},
		{"string", messaging.Schema{Type: messaging.SchemaString}, "a", "\xff"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, messaging.Options{})
			ctx := t.Context()
			name := c.create("t", 0)
			_, err := c.Schemas.Add(ctx, name, tc.schema, false)
			c.do(err)
			c.do(c.Catalogue.UpdateNamespace(ctx, names.PublicDefault, func(p *messaging.Policies) error {
				p.ParsePayload = &yes
				return nil
			}))
			c.produce(name, text(tc.parses))
			_, err = c.Producer.Produce(ctx, name, text(tc.garbage))
			wantErr(t, err, messaging.ErrPayload)
			c.do(c.Catalogue.UpdateTopic(ctx, name, func(p *messaging.Policies) error {
				p.ParsePayload = &no
				return nil
			}))
			c.produce(name, text(tc.garbage))
			c.do(c.Catalogue.UpdateTopic(ctx, name, func(p *messaging.Policies) error {
				p.ValidatePayload = &yes // takes precedence
				return nil
			}))
			_, err = c.Producer.Produce(ctx, name, text(tc.garbage))
			wantErr(t, err, messaging.ErrPayload)
			if tc.name == "json" {
				_, err = c.Producer.Produce(ctx, name, text(tc.parses))
				wantErr(t, err, messaging.ErrPayload)
			}
		})
	}
}

func TestSchemaVersionIsRequired(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	name := c.create("t", 0)
	yes := true
	c.do(c.Catalogue.UpdateNamespace(ctx, names.PublicDefault, func(p *messaging.Policies) error {
		p.RequireSchemaVersion = &yes
		return nil
	}))
	c.produce(name, text("no schema, nothing to name"))
	_, err := c.Schemas.Add(ctx, name, avroSchema(orderV0), false)
	c.do(err)
	c.produce(name, text("one version leaves no doubt"))
	_, err = c.Schemas.Add(ctx, name, avroSchema(orderV1), false)
	c.do(err)
	_, err = c.Producer.Produce(ctx, name, text("which"))
	wantErr(t, err, messaging.ErrMessage)
	results, err := c.Producer.ProduceBatch(ctx, name, []messaging.Message{*text("which")})
	c.do(err)
	wantErr(t, results[0].Err, messaging.ErrMessage)
	named := text("this")
	named.SchemaVersion = 0
	if got := c.produce(name, named).SchemaVersion; got != 0 {
		t.Errorf("version: got %d, want 0", got)
	}
}

func TestBadSchemas(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{Limits: messaging.Limits{SchemaBytes: 1000}})
	ctx := t.Context()
	for name, tc := range map[string]struct {
		schema messaging.Schema
		want   error
	}{
		"no type":          {messaging.Schema{}, messaging.ErrInvalidSchema},
		"unknown type":     {messaging.Schema{Type: "XML"}, messaging.ErrInvalidSchema},
		"text of a string": {messaging.Schema{Type: messaging.SchemaString, Text: "x"}, messaging.ErrInvalidSchema},
		"no record":        {avroSchema(`"string"`), messaging.ErrInvalidSchema},
		"no avro":          {avroSchema(`{`), messaging.ErrInvalidSchema},
		"empty":            {avroSchema(``), messaging.ErrInvalidSchema},
		"pair of nothing":  {messaging.Schema{Type: messaging.SchemaKeyValue, Text: "x"}, messaging.ErrInvalidSchema},
		"native of nothing": {
			messaging.Schema{Type: messaging.SchemaProtobufNative, Text: "{}"},
			messaging.ErrInvalidSchema,
		},
		"too long": {avroSchema(string(make([]byte, 1001))), messaging.ErrTooMuchData},
	} {
		if _, err := c.Schemas.Add(ctx, topic("t"), tc.schema, false); !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, want %v", name, err, tc.want)
		}
	}
	_, err := c.Catalogue.Topic(ctx, topic("t"))
	wantErr(t, err, messaging.ErrNoTopic) // no topic was created
}

func TestSchemaOfMessages(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	name := c.create("orders", 2)
	c.subscribe(name, "s")
	for _, s := range []string{orderV0, orderV1} {
		_, err := c.Schemas.Add(ctx, name.WithPartition(1), avroSchema(s), false) // schemas belong to the parent topic
		c.do(err)
	}
	m := text("x")
	if got := c.produce(name, m).SchemaVersion; got != 1 {
		t.Errorf("version of a message without one is %d", got)
	}
	m.SchemaVersion = 0
	if got := c.produce(name, m).SchemaVersion; got != 0 {
		t.Errorf("requested version 0, got %d", got)
	}
	m.SchemaVersion = 2
	_, err := c.Producer.Produce(ctx, name, m)
	wantErr(t, err, messaging.ErrNoSchema)
	seen := map[int64]bool{}
	for _, r := range c.receive(name, "s", 5) {
		seen[r.SchemaVersion] = true
	}
	if !seen[0] || !seen[1] {
		t.Errorf("received versions %v", seen)
	}
}

// fakeRegistry is a registry with some schema ids by subject.
type fakeRegistry map[string]int32

func (r fakeRegistry) SubjectHasID(_ context.Context, subject string, id int32) (bool, error) {
	known, ok := r[subject]
	return ok && known == id, nil
}

// RecordNames returns names for the schemas 20 and 21 only.
func (r fakeRegistry) RecordNames(_ context.Context, id int32) ([]string, error) {
	return map[int32][]string{20: {"acme.Order"}, 21: {"acme.Line", "acme.Other"}}[id], nil
}

// PayloadSchema returns JSON for the schema 7 only.
func (fakeRegistry) PayloadSchema(_ context.Context, id int32) (*filter.Schema, error) {
	if id != 7 {
		return nil, nil
	}
	return filter.JSON(), nil
}

func TestRegisteredSchemaIDs(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{Schemas: fakeRegistry{
		"orders-value": 7, "orders-key": 8, "acme.sales.orders-value": 9, "persistent://acme/sales/orders-key": 10,
	}})
	ctx := t.Context()
	both := map[string]string{messaging.PropertyKeyValidation: "true", messaging.PropertyValueValidation: "true"}
	c.do(c.Catalogue.CreateTenant(ctx, messaging.Tenant{Name: "acme"}))
	ns := names.Namespace{Tenant: "acme", Name: "sales"}
	c.do(c.Catalogue.CreateNamespace(ctx, ns, messaging.Policies{}))
	other := names.Topic{Namespace: ns, Local: "orders"}
	c.do(c.Catalogue.CreateTopic(ctx, topic("orders"), messaging.NewTopic{Properties: both}))
	c.do(c.Catalogue.CreateTopic(ctx, other, messaging.NewTopic{Properties: both}))
	for _, tc := range []struct {
		name     string
		topic    names.Topic
		key      string
		value    string
		rejected bool
	}{
		{"good", topic("orders"), "", "\x00\x00\x00\x00\x07rest", false},
		{"good key", topic("orders"), "\x00\x00\x00\x00\x08k", "\x00\x00\x00\x00\x07", false},
		{"good key in base64", topic("orders"), "AAAAAAhr", "\x00\x00\x00\x00\x07", false},
		{"bad key", topic("orders"), "plain", "\x00\x00\x00\x00\x07", true},
		{"key of the value's id", topic("orders"), "AAAAAAdr", "\x00\x00\x00\x00\x07", true},
		{"no prefix", topic("orders"), "", "rest and more", true},
		{"too short", topic("orders"), "", "\x00\x00\x00\x07", true},
		{"empty", topic("orders"), "", "", true},
		{"unknown id", topic("orders"), "", "\x00\x00\x00\x00\x09", true},
		{"dotted subject", other, "", "\x00\x00\x00\x00\x09", false},
		{"full subject", other, "AAAAAApr", "\x00\x00\x00\x00\x09", false},
		{"id of another subject", other, "", "\x00\x00\x00\x00\x07", true},
	} {
		m := text(tc.value)
		m.Key = tc.key
		_, err := c.Producer.Produce(ctx, tc.topic, m)
		if (err != nil) != tc.rejected || err != nil && !errors.Is(err, messaging.ErrSchemaPrefix) {
			t.Errorf("%s: got %v, want rejected %v", tc.name, err, tc.rejected)
		}
	}
	alone := newCluster(t, messaging.Options{})
	alone.do(alone.Catalogue.CreateTopic(ctx, topic("orders"), messaging.NewTopic{Properties: both}))
	_, err := alone.Producer.Produce(ctx, topic("orders"), text("\x00\x00\x00\x00\x07"))
	wantErr(t, err, messaging.ErrNoRegistry)
}
