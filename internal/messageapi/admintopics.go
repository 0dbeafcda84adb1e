package messageapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"freshet/internal/errs"
	"freshet/internal/messaging"
	"freshet/internal/names"
)

func (c *call) createTopic() error {
	var properties map[string]string
	if _, err := c.decode(&properties, maxAdminBody); err != nil {
		return err
	}
	return c.done(c.broker().CreateTopic(c.r.Context(), c.topic, 0, properties))
}

// partitionsBody reads a number of partitions: a bare integer, or Pulsar's
// object of application/vnd.partitioned-topic-metadata+json.
func (c *call) partitionsBody() (int32, map[string]string, error) {
	b, err := c.body(maxAdminBody)
	if err != nil {
		return 0, nil, err
	}
	var body struct {
		Partitions json.Number       `json:"partitions"`
		Properties map[string]string `json:"properties"`
	}
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) {
		if _, err := decodeJSON(b, &body); err != nil {
			return 0, nil, err
		}
	} else if ok, err := decodeJSON(b, &body.Partitions); err != nil {
		return 0, nil, err
	} else if !ok {
		return 0, nil, badBody("it must be the number of partitions")
	}
	n, err := strconv.ParseInt(body.Partitions.String(), 10, 32)
	if err != nil {
		return 0, nil, badBody("the number of partitions must be an integer")
	}
	return int32(n), body.Properties, nil
}

func (c *call) createPartitioned() error {
	n, properties, err := c.partitionsBody()
	if err != nil {
		return err
	}
	if n <= 0 {
		// Quirk: 406 for a count that cannot be, as in Pulsar.
		return status(http.StatusNotAcceptable, errs.Newf(errs.Invalid, "%w: must be more than 0", messaging.ErrPartitionCount))
	}
	err = c.broker().CreateTopic(c.r.Context(), c.topic, n, properties)
	return c.done(statusIf(err, messaging.ErrPartitionCount, http.StatusNotAcceptable))
}

func (c *call) growTopic() error {
	n, _, err := c.partitionsBody()
	if err != nil {
		return err
	}
	return c.done(c.broker().GrowTopic(c.r.Context(), c.topic, n))
}

func (c *call) getPartitions() error {
	t, err := c.broker().Topic(c.r.Context(), c.topic)
	if err != nil {
		return err
	}
	n := t.Partitions
	if t.Partition >= 0 {
		n = 0 // a partition has no partitions
	}
	return c.json(http.StatusOK, struct {
		Partitions int32             `json:"partitions"`
		Deleted    bool              `json:"deleted"`
		Properties map[string]string `json:"properties"`
	}{n, false, orEmpty(t.Policies.Properties)})
}

func (c *call) deleteTopic() error { return c.delete(false) }

func (c *call) deletePartitioned() error { return c.delete(true) }

// delete removes a topic when it is of the kind that the call is for.
func (c *call) delete(partitioned bool) error {
	t, err := c.broker().Topic(c.r.Context(), c.topic)
	if err != nil {
		return err
	}
	if t.Partition < 0 && (t.Partitions > 0) != partitioned {
		return errs.Newf(errs.Conflict, "%w: %s has %d partitions", messaging.ErrWrongKind, c.topic, t.Partitions)
	}
	return c.done(c.broker().DeleteTopic(c.r.Context(), c.topic, c.flag("force")))
}

func (c *call) topicProperties() error {
	t, err := c.broker().Topic(c.r.Context(), c.topic)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, orEmpty(t.Policies.Properties))
}

func (c *call) setTopicProperties() error {
	properties, err := c.propertiesBody()
	if err != nil {
		return err
	}
	return c.done(c.broker().SetProperties(c.r.Context(), c.topic, properties))
}

func (c *call) clearTopicProperty() error {
	key := c.r.URL.Query().Get("key")
	if key == "" {
		return badQuery("key is missing")
	}
	return c.done(c.broker().UpdateTopic(c.r.Context(), c.topic, func(p *messaging.Policies) error {
		delete(p.Properties, key)
		return nil
	}))
}

// topicPermissions shows what the topic grants and what its namespace does.
func (c *call) topicPermissions() error {
	t, err := c.broker().Topic(c.r.Context(), c.topic)
	if err != nil {
		return err
	}
	p, err := c.broker().Namespace(c.r.Context(), c.namespace)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, renderPermissions(p.Permissions, t.Policies.Permissions))
}

func (c *call) grantTopic() error {
	granted, err := c.grantBody()
	if err != nil {
		return err
	}
	return c.done(c.broker().UpdateTopic(c.r.Context(), c.topic, func(p *messaging.Policies) error {
		grant(p, c.args[0], granted)
		return nil
	}))
}

var errNoGrant = errs.New(errs.Precondition, "permissions are not set at the topic level")

func (c *call) revokeTopic() error {
	return c.done(c.broker().UpdateTopic(c.r.Context(), c.topic, func(p *messaging.Policies) error {
		if _, ok := p.Permissions[c.args[0]]; !ok {
			return errNoGrant
		}
		delete(p.Permissions, c.args[0])
		return nil
	}))
}

// idBody is Pulsar's MessageId in JSON.
type idBody struct {
	LedgerID       int64 `json:"ledgerId"`
	EntryID        int64 `json:"entryId"`
	PartitionIndex int32 `json:"partitionIndex"`
}

func renderID(id names.MessageID) idBody {
	return idBody{LedgerID: id.Ledger, EntryID: id.Entry, PartitionIndex: id.Partition}
}

func (c *call) terminate() error {
	id, err := c.broker().Terminate(c.r.Context(), c.topic)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, renderID(id))
}

func (c *call) lastMessageID() error {
	id, err := c.broker().LastMessageID(c.r.Context(), c.topic)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, renderID(id))
}

// number reads the free part of the path as a number.
func (c *call) number(i int, what string) (int64, error) {
	n, err := strconv.ParseInt(c.args[i], 10, 64)
	if err != nil || n < 0 {
		return 0, errs.Newf(errs.Invalid, "%w: %s must be a number of at least 0", errPathNumber, what)
	}
	return n, nil
}

var errPathNumber = errs.New(errs.Invalid, "path is not valid")

func (c *call) messageIDAt() error {
	at, err := c.number(0, "timestamp")
	if err != nil {
		return err
	}
	id, err := c.broker().MessageIDAt(c.r.Context(), c.topic, time.UnixMilli(at))
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, renderID(id))
}

func (c *call) messageAt() error {
	ledger, err := c.number(0, "ledger")
	if err != nil {
		return err
	}
	entry, err := c.number(1, "entry")
	if err != nil {
		return err
	}
	id := names.MessageID{Ledger: ledger, Entry: entry, Partition: -1}
	if _, index, ok := c.topic.Partition(); ok {
		id.Partition = index
	}
	m, err := c.broker().Message(c.r.Context(), c.topic, id)
	if err != nil {
		return err
	}
	return c.pulsarMessage(&m)
}
