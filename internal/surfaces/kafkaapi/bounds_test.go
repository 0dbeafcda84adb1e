package kafkaapi_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/test/tally"
)

// errorCodes collects the error codes of a response and of its rows.
func errorCodes(v reflect.Value, into map[int16]int) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			errorCodes(v.Elem(), into)
		}
	case reflect.Slice:
		for i := range v.Len() {
			errorCodes(v.Index(i), into)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name == "ErrorCode" {
				into[int16(v.Field(i).Int())]++
				continue
			}
			errorCodes(v.Field(i), into)
		}
	}
}

// TestAttackLongLists checks that a list over the limit is rejected with code 42 in every version
// of every API that has one, and that the connection stays usable.
func TestAttackLongLists(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("orders", 1)
	r := w.wire(w.token)
	const tooMany = 10_001
	lists := map[int16]string{
		0: "Topics", 1: "Topics", 2: "Topics", 3: "Topics", 8: "Topics", 9: "Topics", 10: "CoordinatorKeys",
		13: "Members", 15: "Groups",
		19: "Topics", 20: "Topics", 21: "Topics", 23: "Topics", 32: "Resources", 33: "Resources", 35: "Topics",
		37: "Topics", 42: "Groups",
		44: "Resources", 47: "Topics", 61: "Topics", 68: "Topics", 69: "Groups", 75: "Topics",
	}
	advertised := roundTrip[*kmsg.ApiVersionsResponse](r, kmsg.NewPtrApiVersionsRequest())
	attempts, successes := 0, 0
	for _, api := range advertised.ApiKeys {
		name, ok := lists[api.ApiKey]
		if !ok {
			continue
		}
		for version := max(api.MinVersion, 3*b2i(api.ApiKey == 0)); version <= api.MaxVersion; version++ {
			if version > api.MinVersion && version < api.MaxVersion && version%4 > 0 && !tally.Long() {
				continue
			}
			request := kmsg.RequestForKey(api.ApiKey)
			request.SetVersion(version)
			list := reflect.ValueOf(request).Elem().FieldByName(listOf(api.ApiKey, version, name))
			if !list.IsValid() {
				continue // this version has no list
			}
			list.Set(reflect.MakeSlice(list.Type(), tooMany, tooMany))
			for i := range tooMany {
				fillRow(list.Index(i), i)
			}
			if produce, ok := request.(*kmsg.ProduceRequest); ok {
				produce.Acks = 1
			}
			attempts++
			response, err := r.exchange(request, nil)
			if err != nil {
				successes++
				t.Errorf("%s version %d: got %v, want a response", kmsg.NameForKey(api.ApiKey), version, err)
				r.close()
				r.open()
				continue
			}
			codes := make(map[int16]int)
			errorCodes(reflect.ValueOf(response), codes)
			delete(codes, 0) // code of the whole response, where each row has its own
			if len(codes) != 1 || codes[42] == 0 {
				successes++
				t.Errorf("%s version %d: got codes %v, want only 42", kmsg.NameForKey(api.ApiKey), version, codes)
			}
		}
	}
	if attempts < 50 {
		t.Errorf("got %d versions with lists, want at least 50", attempts)
	}
	tally.Attack(t, "stream: lists that are too long", attempts, successes)
}

func b2i(b bool) int16 {
	if b {
		return 1
	}
	return 0
}

// listOf returns the name of the list field in a version.
func listOf(key, version int16, name string) string {
	switch {
	case key == 9 && version >= 8:
		return "Groups"
	case key == 10 && version < 4, key == 13 && version < 3:
		return ""
	case key == 20 && version < 6:
		return "TopicNames"
	}
	return name
}

// fillRow sets the name and the partition of a row, where it has such fields.
func fillRow(row reflect.Value, i int) {
	text := fmt.Sprint("n", i)
	if row.Kind() == reflect.String {
		row.SetString(text)
		return
	}
	for _, name := range []string{"Topic", "Group", "ResourceName", "MemberID"} {
		switch f := row.FieldByName(name); {
		case !f.IsValid():
		case f.Kind() == reflect.String:
			f.SetString(text)
		case f.Kind() == reflect.Pointer:
			f.Set(reflect.ValueOf(&text))
		}
	}
	if kind := row.FieldByName("ResourceType"); kind.IsValid() {
		kind.SetInt(int64(kmsg.ConfigResourceTypeTopic))
	}
	if parts := row.FieldByName("Partitions"); parts.IsValid() && parts.Kind() == reflect.Slice {
		parts.Set(reflect.MakeSlice(parts.Type(), 1, 1))
	}
}

// TestOldProducersHaveNoZstd checks that Produce versions without zstd reject zstd batches.
func TestOldProducersHaveNoZstd(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("orders", 1)
	r := w.wire(w.token)
	batch := make([]byte, 61)
	batch[16], batch[22], batch[11] = 2, 4, 49
	for version, want := range map[int16]int16{3: 76, 6: 76, 7: 2} { // 2: the rest of the batch is corrupt
		request := kmsg.NewPtrProduceRequest()
		request.Version, request.Acks = version, -1
		request.Topics = []kmsg.ProduceRequestTopic{{
			Topic:      "orders",
			Partitions: []kmsg.ProduceRequestTopicPartition{{Records: batch}},
		}}
		if got := roundTrip[*kmsg.ProduceResponse](r, request).Topics[0].Partitions[0].ErrorCode; got != want {
			t.Errorf("zstd in version %d: got code %d, want %d", version, got, want)
		}
	}
}
