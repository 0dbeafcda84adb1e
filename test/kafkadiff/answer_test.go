package kafkadiff

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// answer is a normalised response: path of a field → its value.
type answer map[string]string

// normaliser replaces what may differ between two brokers in the responses of one script.
type normaliser struct {
	prefix  string              // of the names of the script
	topics  map[[16]byte]string // topic id → name without prefix
	members map[string]string   // member id → its number of appearance
}

// bogusByte begins the topic ids that no broker has. They are compared as they are.
const bogusByte = 0xee

// bogus begins the member ids that no broker has given. They are compared as they are.
const bogus = "bogus"

// normalise returns the fields of a response.
func (n *normaliser) normalise(response kmsg.Response) answer {
	out := make(answer)
	n.walk(out, "", "", reflect.ValueOf(response).Elem())
	return out
}

// ignored are the fields that are not compared.
var ignored = map[string]bool{"Version": true, "UnknownTags": true, "Documentation": true}

// addresses are the fields that describe a broker, not its behaviour.
var addresses = map[string]bool{"Host": true, "Port": true, "ClusterID": true, "Rack": true}

func (n *normaliser) walk(out answer, path, field string, v reflect.Value) {
	switch {
	case addresses[field]:
		out[path] = "…"
		return
	case field == "Records" || field == "RecordBatches":
		n.batches(out, path, v.Bytes())
		return
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		out[path] = fmt.Sprintf("%x", v.Bytes())
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			out[path] = "null"
			return
		}
		n.walk(out, path, field, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if ignored[name] {
				continue
			}
			at := name
			if path != "" {
				at = path + "." + name
			}
			n.walk(out, at, name, v.Field(i))
		}
	case reflect.Slice:
		n.list(out, path, v)
	default:
		out[path] = n.scalar(field, v)
	}
}

// list adds the rows of a list in the order of their keys. Brokers may order them differently.
func (n *normaliser) list(out answer, path string, v reflect.Value) {
	type row struct {
		key   string
		value reflect.Value
	}
	var rows []row
	for i := range v.Len() {
		r := row{key: n.rowKey(v.Index(i)), value: v.Index(i)}
		if n.own(r.value) {
			rows = append(rows, r)
		}
	}
	if v.Len() == 0 || v.Index(0).Kind() == reflect.Struct {
		slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.key, b.key) })
	}
	out[path+".length"] = fmt.Sprint(len(rows))
	if v.IsNil() {
		out[path+".length"] = "0"
	}
	seen := make(map[string]int)
	for i, r := range rows {
		key := r.key
		if key == "" {
			key = fmt.Sprint(i)
		}
		if seen[key]++; seen[key] > 1 {
			key = fmt.Sprintf("%s#%d", key, seen[key])
		}
		n.walk(out, path+"["+key+"]", "", r.value)
	}
}

// own reports whether a row belongs to the script. Lists of all topics or groups have others too.
func (n *normaliser) own(row reflect.Value) bool {
	if row.Kind() != reflect.Struct {
		return true
	}
	for _, field := range []string{"Topic", "Group"} {
		f := reflect.Indirect(row.FieldByName(field))
		if f.IsValid() && f.Kind() == reflect.String && strings.HasPrefix(f.String(), namePrefix) {
			return strings.HasPrefix(f.String(), n.prefix)
		}
		if f.IsValid() && f.Kind() == reflect.String && strings.HasPrefix(f.String(), "__") {
			return false // an internal topic of Kafka
		}
	}
	return true
}

// keyFields identify a row of a list, the first that it has.
var keyFields = []string{
	"Topic", "Name", "Group", "Partition", "ResourceName", "MemberID", "NodeID", "TopicID", "APIKey", "ApiKey", "Key",
}

func (n *normaliser) rowKey(row reflect.Value) string {
	if row.Kind() != reflect.Struct {
		return ""
	}
	var parts []string
	for _, field := range keyFields {
		f := reflect.Indirect(row.FieldByName(field))
		if !f.IsValid() {
			continue
		}
		parts = append(parts, n.scalar(field, f))
		if field != "Topic" || f.Len() > 0 {
			break
		}
	}
	return strings.Join(parts, "/")
}

// scalar returns the normalised value of a field.
func (n *normaliser) scalar(field string, v reflect.Value) string {
	switch {
	case v.Type() == reflect.TypeFor[[16]byte]():
		id, _ := v.Interface().([16]byte)
		return n.topicID(id)
	case field == "ErrorMessage" && v.Len() > 0:
		return "text"
	case (field == "MemberEpoch" || field == "AssignmentEpoch" || field == "Epoch") && v.Int() > 0:
		return "<epoch>" // an epoch only grows; how fast is the coordinator's choice
	case field == "MemberID" || field == "LeaderID" && v.Kind() == reflect.String:
		return n.memberID(v.String())
	case field == "ProducerID" && v.Int() >= 0:
		return "<producer id>"
	case field == "SessionID" && v.Kind() == reflect.Int32 && v.Int() != 0:
		return "<session id>"
	case (field == "LogAppendTime" || field == "LastTimestamp") && v.Int() > 0:
		return "<time>"
	case (field == "Size" || field == "TotalBytes" || field == "UsableBytes") && v.Int() > 0:
		return "<size>"
	case v.Kind() == reflect.String:
		return strings.ReplaceAll(v.String(), n.prefix, "")
	}
	return fmt.Sprint(v.Interface())
}

func (n *normaliser) topicID(id [16]byte) string {
	switch name, ok := n.topics[id]; {
	case ok:
		return "<id of " + name + ">"
	case id == [16]byte{}:
		return "0"
	case id[0] == bogusByte:
		return fmt.Sprintf("%x", id)
	}
	return "<id>"
}

func (n *normaliser) memberID(id string) string {
	if id == "" || strings.HasPrefix(id, bogus) {
		return id
	}
	if n.members[id] == "" {
		n.members[id] = fmt.Sprintf("<member %d>", len(n.members)+1)
	}
	return n.members[id]
}

// batches adds what a client sees of the headers of record batches, and their records.
func (n *normaliser) batches(out answer, path string, data []byte) {
	count := 0
	for ; len(data) > 12; count++ {
		size := min(12+int(binary.BigEndian.Uint32(data[8:])), len(data))
		var batch kmsg.RecordBatch
		if err := batch.ReadFrom(data[:size]); err != nil {
			break // an incomplete batch, as Kafka sends at the limit of a response
		}
		at := fmt.Sprintf("%s[%d]", path, count)
		out[at+".FirstOffset"] = fmt.Sprint(batch.FirstOffset)
		out[at+".Attributes"] = fmt.Sprint(batch.Attributes)
		out[at+".LastOffsetDelta"] = fmt.Sprint(batch.LastOffsetDelta)
		out[at+".NumRecords"] = fmt.Sprint(batch.NumRecords)
		out[at+".FirstSequence"] = fmt.Sprint(batch.FirstSequence)
		out[at+".PartitionLeaderEpoch"] = fmt.Sprint(batch.PartitionLeaderEpoch)
		out[at+".MaxTimestamp"] = "<time>"
		if batch.Attributes&appendTimeBit == 0 {
			out[at+".MaxTimestamp"] = fmt.Sprint(batch.MaxTimestamp)
		}
		out[at+".Records"] = fmt.Sprintf("%x", batch.Records)
		data = data[size:]
	}
	out[path+".batches"] = fmt.Sprint(count)
}

// appendTimeBit of a batch's attributes means that the broker set its timestamps.
const appendTimeBit = 1 << 3
