package adminapi

import (
	"errors"
	"net/http"

	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp"
)

// schemaBody is Pulsar's PostSchemaPayload.
type schemaBody struct {
	Type       string            `json:"type"`
	Schema     string            `json:"schema"`
	Properties map[string]string `json:"properties"`
}

func (c *call) schemaOf() (messaging.Schema, error) {
	var body schemaBody
	if ok, err := c.Decode(&body, maxAdminBody); err != nil {
		return messaging.Schema{}, err
	} else if !ok {
		return messaging.Schema{}, brokerhttp.BadBody("expected an object with type and schema")
	}
	return messaging.Schema{Type: messaging.SchemaType(body.Type), Text: body.Schema, Properties: body.Properties}, nil
}

// version is Pulsar's LongSchemaVersion.
type version struct {
	Version int64 `json:"version"`
}

func (c *call) addSchema() error {
	s, err := c.schemaOf()
	if err != nil {
		return err
	}
	if err := c.authorizeAutoCreate(); err != nil {
		return err
	}
	// The policy isAllowAutoUpdateSchema=false restricts new versions to callers with this
	// permission.
	v, err := c.Cluster.Schemas.Add(c.WorkContext(), c.Topic, s, c.Has("messaging.schemas.manage"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, struct {
		Version version `json:"version"`
	}{version{v}})
}

// schemaResponse is Pulsar's GetSchemaResponse.
type schemaResponse struct {
	Version    int64                `json:"version"`
	Type       messaging.SchemaType `json:"type"`
	Timestamp  int64                `json:"timestamp"`
	Data       string               `json:"data"`
	Properties map[string]string    `json:"properties"`
}

func renderSchema(v *messaging.SchemaVersion) schemaResponse {
	return schemaResponse{
		Version: v.Version, Type: v.Type, Timestamp: v.At, Data: v.Text, Properties: orEmpty(v.Properties),
	}
}

func (c *call) latestSchema() error {
	v, err := c.Cluster.Schemas.Latest(c.R.Context(), c.Topic)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, renderSchema(&v))
}

func (c *call) schemaVersion() error {
	n, err := c.pathNumber("version")
	if err != nil {
		return err
	}
	v, err := c.Cluster.Schemas.ByVersion(c.R.Context(), c.Topic, n)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, renderSchema(&v))
}

func (c *call) listSchemas() error {
	all, err := c.Cluster.Schemas.List(c.R.Context(), c.Topic)
	if err != nil {
		return err
	}
	out := struct {
		List []schemaResponse `json:"getSchemaResponses"`
	}{make([]schemaResponse, len(all))}
	for i := range all {
		out.List[i] = renderSchema(&all[i])
	}
	return c.JSON(http.StatusOK, out)
}

func (c *call) deleteSchema() error {
	v, err := c.Cluster.Schemas.Delete(c.R.Context(), c.Topic, c.queryFlag("force"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, version{v})
}

func (c *call) testSchema() error {
	s, err := c.schemaOf()
	if err != nil {
		return err
	}
	strategy, err := c.Cluster.Schemas.Check(c.WorkContext(), c.Topic, s)
	if err != nil && !errors.Is(err, messaging.ErrIncompatibleSchema) {
		return err
	}
	// Quirk: 202, as in Pulsar.
	return c.JSON(http.StatusAccepted, struct {
		Compatibility bool               `json:"compatibility"`
		Strategy      messaging.Strategy `json:"schemaCompatibilityStrategy"`
	}{err == nil, strategy})
}

func (c *call) findSchema() error {
	s, err := c.schemaOf()
	if err != nil {
		return err
	}
	v, err := c.Cluster.Schemas.Find(c.R.Context(), c.Topic, s)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, version{v})
}

// schemaMetadata lists the versions without their schema texts.
func (c *call) schemaMetadata() error {
	all, err := c.Cluster.Schemas.List(c.R.Context(), c.Topic)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return messaging.ErrNoSchema
	}
	type info struct {
		Version   int64                `json:"version"`
		Type      messaging.SchemaType `json:"type"`
		Timestamp int64                `json:"timestamp"`
	}
	list := make([]info, len(all))
	for i := range all {
		list[i] = info{all[i].Version, all[i].Type, all[i].At}
	}
	return c.JSON(http.StatusOK, struct {
		Info  info   `json:"info"`
		Index []info `json:"index"`
	}{list[len(list)-1], list})
}
