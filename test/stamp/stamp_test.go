package stamp_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"freshet/test/stamp"
)

func TestStamp(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 40, 99, 100, 101, 1000, 70_000, 300_000} {
		value := stamp.Make("orders", "producer 1", 7, size)
		if len(value) < size || size >= 100 && len(value) != size {
			t.Errorf("length: got %d, want %d", len(value), size)
		}
		got, err := stamp.Check(value, "orders", 3)
		want := stamp.Stamp{
			Topic: "orders", Partition: stamp.AnyPartition, Writer: "producer 1",
			Number: 7, Sum: got.Sum,
		}
		if err != nil || got != want || got.Origin() != "orders" {
			t.Errorf("%d bytes: got %+v, %v; want %+v", size, got, err, want)
		}
	}
	chosen := stamp.Stamp{Topic: "orders", Partition: 3, Writer: "producer 1", Number: 7}
	got, err := stamp.Check(chosen.Value(100), "orders", 3)
	if err != nil || got.Partition != 3 || got.Origin() != "orders/3" {
		t.Errorf("with a partition: got %+v, %v; want orders/3", got, err)
	}
}

// TestEachMessageDiffers checks that two messages of one writer have different filler and
// IDs, so that a record made of parts of both is detected as damaged.
func TestEachMessageDiffers(t *testing.T) {
	t.Parallel()
	one, two := stamp.Make("orders", "w", 1, 500), stamp.Make("orders", "w", 2, 500)
	if bytes.Equal(one[100:400], two[100:400]) {
		t.Error("filler of two messages: got the same, want different")
	}
	first, err1 := stamp.Parse(one)
	second, err2 := stamp.Parse(two)
	if err := errors.Join(err1, err2); err != nil || first.ID() == second.ID() {
		t.Errorf("IDs: got %s and %s, %v; want different ones", first.ID(), second.ID(), err)
	}
	mixed := append(bytes.Clone(one[:250]), two[250:]...)
	if _, err := stamp.Parse(mixed); !errors.Is(err, stamp.ErrDamaged) {
		t.Errorf("halves of two messages: got %v, want ErrDamaged", err)
	}
}

func TestForeign(t *testing.T) {
	t.Parallel()
	value := stamp.Stamp{Topic: "orders", Partition: 3, Writer: "w", Number: 7}.Value(200)
	for _, other := range []struct {
		topic     string
		partition int32
	}{{"payments", 3}, {"orders", 4}, {"payments", stamp.AnyPartition}} {
		got, err := stamp.Check(value, other.topic, other.partition)
		if !errors.Is(err, stamp.ErrForeign) || got.Origin() != "orders/3" {
			t.Errorf("delivered under %v: got %+v, %v; want ErrForeign and orders/3", other, got, err)
		}
	}
	if _, err := stamp.Check(value, "orders", stamp.AnyPartition); err != nil {
		t.Errorf("delivered under its topic: got %v, want no error", err)
	}
}

func TestDamaged(t *testing.T) {
	t.Parallel()
	good := stamp.Make("orders", "w", 7, 300)
	cases := map[string][]byte{
		"empty": {}, "no stamp": []byte("hello"), "one byte": []byte("\n"),
		"stamp alone": []byte("stamp\torders\t-1\tw\t7\t30\n"), "two messages": append(bytes.Clone(good), good...),
	}
	for _, cut := range []int{1, 8, 9, 150, 290} {
		cases[fmt.Sprint("cut by ", cut)] = good[:len(good)-cut]
	}
	for i := range good {
		changed := bytes.Clone(good)
		changed[i] ^= 1
		if _, err := stamp.Parse(changed); !errors.Is(err, stamp.ErrDamaged) {
			t.Errorf("byte %d changed: got %v, want ErrDamaged", i, err)
		}
	}
	var count stamp.Count
	for name, value := range cases {
		_, err := stamp.Check(value, "orders", 0)
		if !errors.Is(err, stamp.ErrDamaged) {
			t.Errorf("%s: got %v, want ErrDamaged", name, err)
		}
		count.Add(err)
	}
	_, err := stamp.Check(good, "others", 0)
	count.Add(err)
	count.Add(nil)
	if count.Foreign != 1 || count.Damaged != len(cases) {
		t.Errorf("count: got %+v, want 1 foreign and %d damaged", count, len(cases))
	}
}
