package adminapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp"
)

func (c *call) createTopic() error {
	var properties map[string]string
	if _, err := c.Decode(&properties, maxAdminBody); err != nil {
		return err
	}
	return c.done(c.create(messaging.NewTopic{Properties: properties, Contract: c.R.URL.Query().Get("require")}))
}

// create creates the topic. Compiling a contract is work for the caller.
func (c *call) create(opts messaging.NewTopic) error {
	ctx := c.R.Context()
	if opts.Contract != "" {
		ctx = c.WorkContext()
	}
	return c.Cluster.Catalogue.CreateTopic(ctx, c.Topic, opts)
}

// partitionsBody decodes a number of partitions: an integer, or Pulsar's object of
// application/vnd.partitioned-topic-metadata+json.
func (c *call) partitionsBody() (int32, map[string]string, error) {
	b, err := c.Body(maxAdminBody)
	if err != nil {
		return 0, nil, err
	}
	var body struct {
		Partitions json.Number       `json:"partitions"`
		Properties map[string]string `json:"properties"`
	}
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) {
		if _, err := brokerhttp.DecodeJSON(b, &body); err != nil {
			return 0, nil, err
		}
	} else if ok, err := brokerhttp.DecodeJSON(b, &body.Partitions); err != nil {
		return 0, nil, err
	} else if !ok {
		return 0, nil, brokerhttp.BadBody("the number of partitions is missing")
	}
	n, err := strconv.ParseInt(body.Partitions.String(), 10, 32)
	if err != nil {
		return 0, nil, brokerhttp.BadBody("the number of partitions must be an integer")
	}
	return int32(n), body.Properties, nil
}

func (c *call) createPartitioned() error {
	n, properties, err := c.partitionsBody()
	if err != nil {
		return err
	}
	if n <= 0 {
		// Quirk: 406 for an invalid count, as in Pulsar.
		return brokerhttp.WithStatus(http.StatusNotAcceptable,
			errs.Newf(errs.Invalid, "%w: must be more than 0", messaging.ErrPartitionCount))
	}
	err = c.create(messaging.NewTopic{
		Partitions: n, Properties: properties, Contract: c.R.URL.Query().Get("require"),
	})
	return c.done(brokerhttp.WithStatusIf(err, messaging.ErrPartitionCount, http.StatusNotAcceptable))
}

func (c *call) growTopic() error {
	n, _, err := c.partitionsBody()
	if err != nil {
		return err
	}
	return c.done(c.Cluster.Catalogue.GrowTopic(c.R.Context(), c.Topic, n))
}

func (c *call) getPartitions() error {
	t, err := c.Cluster.Catalogue.Topic(c.R.Context(), c.Topic)
	if err != nil {
		return err
	}
	n := t.Partitions
	if t.Partition >= 0 {
		n = 0 // a partition has no partitions
	}
	return c.JSON(http.StatusOK, struct {
		Partitions int32             `json:"partitions"`
		Deleted    bool              `json:"deleted"`
		Properties map[string]string `json:"properties"`
	}{n, false, orEmpty(t.Policies.Properties)})
}

func (c *call) deleteTopic() error { return c.delete(false) }

func (c *call) deletePartitioned() error { return c.delete(true) }

// delete deletes a topic, if it is partitioned or not as the route requires.
func (c *call) delete(partitioned bool) error {
	t, err := c.Cluster.Catalogue.Topic(c.R.Context(), c.Topic)
	if err != nil {
		return err
	}
	if t.Partition < 0 && (t.Partitions > 0) != partitioned {
		return errs.Newf(errs.Conflict, "%w: %s has %d partitions", messaging.ErrWrongKind, c.Topic, t.Partitions)
	}
	return c.done(c.Cluster.Catalogue.DeleteTopic(c.R.Context(), c.Topic, c.queryFlag("force")))
}

func (c *call) topicProperties() error {
	t, err := c.Cluster.Catalogue.Topic(c.R.Context(), c.Topic)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, orEmpty(t.Policies.Properties))
}

func (c *call) setTopicProperties() error {
	properties, err := c.propertiesBody()
	if err != nil {
		return err
	}
	return c.done(c.Cluster.Catalogue.SetProperties(c.R.Context(), c.Topic, properties))
}

func (c *call) clearTopicProperty() error {
	key := c.R.URL.Query().Get("key")
	if key == "" {
		return brokerhttp.BadQuery("key is missing")
	}
	return c.done(c.Cluster.Catalogue.UpdateTopic(c.R.Context(), c.Topic, func(p *messaging.Policies) error {
		delete(p.Properties, key)
		return nil
	}))
}

// topicPermissions responds with the permissions of the topic and its namespace.
func (c *call) topicPermissions() error {
	t, err := c.Cluster.Catalogue.Topic(c.R.Context(), c.Topic)
	if err != nil {
		return err
	}
	p, err := c.Cluster.Catalogue.Namespace(c.R.Context(), c.Namespace)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, renderPermissions(p.Permissions, t.Policies.Permissions))
}

func (c *call) grantTopic() error {
	granted, err := c.grantBody()
	if err != nil {
		return err
	}
	return c.doneWithWarnings(c.Cluster.Catalogue.UpdateTopic(c.R.Context(), c.Topic,
		func(p *messaging.Policies) error { return c.grant(p, granted) }), c.param("role"))
}

var errNoTopicPermissions = errs.New(errs.Precondition, "permissions are not set at the topic level")

func (c *call) revokeTopic() error {
	return c.done(c.Cluster.Catalogue.UpdateTopic(c.R.Context(), c.Topic, func(p *messaging.Policies) error {
		if !p.Revoke(c.param("role")) {
			return errNoTopicPermissions
		}
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
	id, err := c.Cluster.Catalogue.Terminate(c.R.Context(), c.Topic)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, renderID(id))
}

func (c *call) lastMessageID() error {
	id, err := c.Cluster.Consumer.LastMessageID(c.R.Context(), c.Topic)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, renderID(id))
}

func (c *call) messageIDAt() error {
	at, err := c.pathNumber("timestamp")
	if err != nil {
		return err
	}
	id, err := c.Cluster.Consumer.MessageIDAt(c.WorkContext(), c.Topic, time.UnixMilli(at))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, renderID(id))
}

func (c *call) messageAt() error {
	ledger, err := c.pathNumber("ledger")
	if err != nil {
		return err
	}
	entry, err := c.pathNumber("entry")
	if err != nil {
		return err
	}
	id := names.MessageID{Ledger: ledger, Entry: entry, Partition: -1}
	if _, index, ok := c.Topic.Partition(); ok {
		id.Partition = index
	}
	m, err := c.Cluster.Consumer.Message(c.WorkContext(), c.Topic, id)
	if err != nil {
		return err
	}
	return c.pulsarMessage(&m)
}
