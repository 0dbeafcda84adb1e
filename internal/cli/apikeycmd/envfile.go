package apikeycmd

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet/internal/base/errs"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/hint"
)

// handover is what the recipient of a key needs: the key, and where it is valid.
type handover struct {
	Server        string `json:"server"`
	Organization  string `json:"organization"`
	Cluster       string `json:"cluster,omitempty"`
	Instance      string `json:"instance,omitempty"`
	Token         string `json:"token"`
	CAData        string `json:"caData,omitempty"` // PEM of the certificate authority, in base64
	Kafka         string `json:"kafka,omitempty"`  // address of the Kafka protocol
	KafkaSecurity string `json:"kafkaSecurity,omitempty"`
	KafkaUser     string `json:"kafkaUser,omitempty"`
}

// handOver returns what the recipient of a key for an instance ("" for all) needs. After an error
// about the cluster, it has all but the cluster.
func (k *keys) handOver(ctx context.Context, instance, token string) (handover, error) {
	cluster, err := k.clusterFor(ctx, instance)
	h := handover{
		Server: k.at.Server, Organization: k.at.Organization, Cluster: cluster.name, Instance: cluster.instance,
		Token: token, Kafka: cluster.kafka, KafkaSecurity: cluster.kafkaSecurity,
	}
	if k.at.CA != "" && strings.HasPrefix(k.at.Server, "https:") {
		h.CAData = base64.StdEncoding.EncodeToString([]byte(k.at.CA))
	}
	if cluster.kafka != "" { // the user name selects the cluster
		h.KafkaUser = "public/default@" + k.at.Organization + "/" + cluster.name
	}
	return h, err
}

// variables returns the environment variables that the command line and the examples read, one
// per line.
func (h *handover) variables() string {
	var b strings.Builder
	for _, v := range []struct{ name, value string }{
		{"SERVER", h.Server},
		{"ORGANIZATION", h.Organization},
		{"CLUSTER", h.Cluster},
		{"INSTANCE", h.Instance},
		{"API_KEY", h.Token},
		{"CA_DATA", h.CAData},
		{"KAFKA", h.Kafka},
		{"KAFKA_SECURITY", h.KafkaSecurity},
		{"KAFKA_USER", h.KafkaUser},
	} {
		if v.value != "" {
			fmt.Fprintf(&b, "FRESHET_%s=%s\n", v.name, v.value)
		}
	}
	return b.String()
}

// clusterTarget is the cluster that an environment file names.
type clusterTarget struct {
	name, instance       string
	kafka, kafkaSecurity string // address and protocol; empty without the Kafka protocol
}

// clusterFor returns the cluster of the context if a key for an instance ("" for all) is valid for
// it, else the only cluster for which the key is valid.
func (k *keys) clusterFor(ctx context.Context, instance string) (clusterTarget, error) {
	all, err := k.List(ctx, resources.MessagingClusters, k.at.Organization, resources.ListOptions{})
	if errors.Is(err, client.ErrDenied) {
		return clusterTarget{name: k.at.Cluster, instance: instance}, nil
	}
	if err != nil {
		return clusterTarget{}, err
	}
	usable := slices.DeleteFunc(all, func(o resources.Object) bool {
		return instance != "" && o.Text("spec", "instanceName") != instance
	})
	i := slices.IndexFunc(usable, func(o resources.Object) bool { return o.Name() == k.at.Cluster })
	explicit := k.env.Selection().Cluster != ""
	switch {
	case i >= 0:
		return targetOf(usable[i]), nil
	case explicit:
		return clusterTarget{}, hint.Add(errs.Newf(errs.NotFound, "key is not valid for cluster %s: organization %s "+
			"has no such cluster in %s", k.at.Cluster, k.at.Organization, instanceText(instance)),
			"'freshet get mc' lists the clusters with their instances; choose one with --cluster.")
	case len(usable) == 1:
		return targetOf(usable[0]), nil
	case len(usable) == 0:
		return clusterTarget{instance: instance}, nil // the key is valid for clusters that are created later
	}
	names := make([]string, len(usable))
	for i, o := range usable {
		names[i] = o.Name()
	}
	return clusterTarget{}, hint.Add(errs.Newf(errs.Invalid, "key is valid for several clusters: %s",
		strings.Join(names, ", ")), "Choose the one for the environment file with --cluster.")
}

func instanceText(instance string) string {
	if instance == "" {
		return "any instance"
	}
	return "instance " + instance
}

func targetOf(o resources.Object) clusterTarget {
	target := clusterTarget{name: o.Name(), instance: o.Text("spec", "instanceName")}
	target.kafka, target.kafkaSecurity = kafkaAddress(o)
	return target
}

// kafkaAddress returns the address of the cluster's Kafka listener and its protocol: the listener
// without TLS if it is on this machine, else the one with TLS.
func kafkaAddress(cluster resources.Object) (address, security string) {
	endpoints, _ := cluster.Field("status", "endpoints").([]any)
	for _, endpoint := range endpoints {
		fields, ok := endpoint.(map[string]any)
		if !ok || fields["type"] != "stream" {
			continue
		}
		for _, name := range []string{"pathURL", "url"} {
			protocol, at, ok := strings.Cut(fmt.Sprint(fields[name]), "://")
			host, _, err := net.SplitHostPort(at)
			if ok && err == nil && (protocol == "SASL_SSL" || contexts.IsLoopback(host)) {
				return at, protocol
			}
		}
	}
	return "", ""
}
