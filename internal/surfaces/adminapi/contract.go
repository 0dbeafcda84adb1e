package adminapi

import (
	"encoding/json"

	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp"
)

// contractPolicy is the contract of a topic: an expression that every message must fulfil. Namespaces have none.
var contractPolicy = policy{topic: "require", get: getContract, defaultValue: constant("")}

func getContract(p *messaging.Policies) any {
	if text := p.Contract(); text != "" {
		return text
	}
	return nil
}

// contractRoutes returns the routes of contractPolicy. In contrast to other policies the value is compiled before
// the catalogue is changed, because that takes a while.
func contractRoutes() []route {
	const pattern = topicPath + "/require"
	return []route{
		get(pattern, need("topics", "describe"), func(c *call) error { return c.getPolicy(&contractPolicy) }),
		post(pattern, need("topics", "update"), (*call).setContract),
		put(pattern, need("topics", "update"), (*call).setContract),
		remove(pattern, need("topics", "update"), (*call).clearContract),
	}
}

func (c *call) setContract() error {
	var raw json.RawMessage
	ok, err := c.Decode(&raw, maxAdminBody)
	if err != nil {
		return err
	}
	if !ok {
		return brokerhttp.BadBody("the expression is missing; send it as a JSON string")
	}
	var text string
	if err := unmarshal(raw, &text); err != nil {
		return err
	}
	return c.done(c.Cluster.Catalogue.SetContract(c.WorkContext(), c.Topic, text))
}

func (c *call) clearContract() error {
	return c.done(c.Cluster.Catalogue.SetContract(c.WorkContext(), c.Topic, ""))
}
